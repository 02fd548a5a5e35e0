"""Imported results are runs: stored, told, compared."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest

from fakes.answered import compare_runs
from uncork.analysis.runs.figures import run_figures
from uncork.errors import StoreError, UsageError
from uncork.report.runs.imported import build_import_document
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.schemas import result_schema
from uncork.store.layout import read_manifest
from uncork.workbench.profile.imports import Labels, import_results

RESULTS = Path(__file__).parents[2] / "fixtures" / "results"
AT = datetime(2026, 5, 31, 8, 30, tzinfo=UTC)


def import_result(root, path, **labels):
    (done,) = import_results(root, path, Labels(**labels))
    return done


def test_an_imported_result_is_a_run_of_its_time(tmp_path):
    done = import_result(tmp_path, RESULTS / "wrk.txt", name="Check out", at=AT, commit="abc")
    manifest = read_manifest(done.folder)
    assert done.folder.name == "import-check-out-20260531-083000"
    assert (manifest.kind, manifest.started_at, manifest.commit) == (
        "import",
        "2026-05-31T08:30:00+00:00",
        "abc",
    )
    run = run_figures(done.folder)
    assert run.figures == done.result.figures
    assert run.asked["series"] == "Check out"


def test_every_result_comes_back_as_it_went_in(tmp_path):
    for path in sorted(RESULTS.glob("*.*")):
        if path.suffix != ".md":
            done = import_result(tmp_path, path)
            assert run_figures(done.folder).figures == done.result.figures, path.name


def test_the_same_result_is_not_imported_twice(tmp_path):
    first = import_result(tmp_path, RESULTS / "wrk.txt", at=AT)
    again = import_result(tmp_path, RESULTS / "wrk.txt", at=AT)
    assert (first.before, again.before) == (False, True)
    assert again.folder == first.folder
    assert not import_result(tmp_path, RESULTS / "wrk.txt", at=AT, name="other").before


def test_a_file_that_tells_no_time_has_that_of_its_last_change(tmp_path):
    path = tmp_path / "wrk.txt"
    path.write_text((RESULTS / "wrk.txt").read_text())
    os.utime(path, (1_700_000_000, 1_700_000_000))
    done = import_result(tmp_path / "runs", path)
    assert done.guessed
    assert done.started_at == "2023-11-14T22:13:20+00:00"
    assert not import_result(tmp_path / "runs", RESULTS / "pgbench-rate.log").guessed


def test_six_imported_results_make_like_runs(tmp_path):
    text = (RESULTS / "wrk.txt").read_text()
    folders = []
    for number, rate in enumerate((44078, 43000, 45100, 44500, 43700, 44900, 43900, 22000)):
        path = tmp_path / f"{number}.txt"
        path.write_text(text.replace("Requests/sec:  44078.17", f"Requests/sec:  {rate}"))
        when = AT.replace(hour=number)
        folders.append(import_result(tmp_path / "runs", path, name="shop", at=when).folder)
    (pair,) = compare_runs(tmp_path / "runs", folders[0], [folders[-1]]).pairs
    found = {one.name: one for one in pair.figures}
    assert found["throughput"].verdict.value == "slower"
    assert found["throughput"].like_runs == 6


def test_every_form_of_an_imported_result(tmp_path):
    run = run_figures(import_result(tmp_path, RESULTS / "hyperfine.json", at=AT).folder)
    jsonschema.validate(json.loads(json_text(run)), result_schema("run-figures"))
    assert "sleep 0.02" in html_page(build_import_document(run))
    assert "sleep 0.02" in markdown_text(build_import_document(run))


def test_figures_that_are_gone_are_told(tmp_path):
    done = import_result(tmp_path, RESULTS / "wrk.txt", at=AT)
    for path in (done.folder / "figures").iterdir():
        path.unlink()
    with pytest.raises(StoreError, match="has no metrics"):
        run_figures(done.folder)


def test_what_cannot_be_read_leaves_nothing_behind(tmp_path):
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for wrong in ("nowhere", "binary", "."):
        with pytest.raises(UsageError):
            import_result(tmp_path / "runs", tmp_path / wrong)
    assert not (tmp_path / "runs").exists()
