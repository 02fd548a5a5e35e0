"""A figure over stored runs: where it changed, since which commit, and what differs there."""

from __future__ import annotations

import io
import json
import random
from dataclasses import replace
from functools import partial

import jsonschema
import pytest
from rich.console import Console

from fakes.answered import read_history
from fakes.load_results import CLOSED_SPEC, ENVIRONMENT
from fakes.stored_loads import store_load
from fakes.terminals import shown
from uncork.analysis.runs.figures import remembered_figures, run_figures
from uncork.errors import SetupError, StoreError, UsageError
from uncork.model.results.run_comparison import RunVerdict
from uncork.report.runs.history import build_history_document, render_history_terminal
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.report.write.schemas import result_schema
from uncork.store.catalogue import set_tag
from uncork.store.figures import recall_figures
from uncork.store.layout import name_run, read_manifest, write_manifest

terminal = partial(shown, render_history_terminal, force_terminal=False)

NEWER = {**ENVIRONMENT, "server": {**ENVIRONMENT["server"], "version": "PostgreSQL 19.0"}}


@pytest.fixture
def root(tmp_path):
    return tmp_path / "runs"


def store(root, slower, start=0, **options):
    draw = random.Random(5)
    return [
        store_load(root, start + n, level * draw.gauss(1, 0.02), commit=f"{start + n:x}" * 8, **options)
        for n, level in enumerate(slower)
    ]


def test_a_step_is_found_with_its_run_commit_and_surroundings(root):
    store(root, [1.0] * 6)
    later = store(root, [1.4] * 5, start=6, environment=NEWER)
    found = read_history(root, "throughput")
    (change,) = found.changes
    assert (change.number, change.since, change.verdict) == (7, later[0].name, RunVerdict.SLOWER)
    assert (change.commit_before, change.commit) == ("55555555", "66666666")
    assert change.ratio == pytest.approx(1 / 1.4, rel=0.05)
    assert change.chance < 0.001
    assert ("server", "version") in {(one.section, one.name) for one in change.differences}
    assert [run.level for run in found.runs[:6]] == [change.before] * 6
    assert [run.level for run in found.runs[6:]] == [change.after] * 5
    assert found.answer.startswith("throughput became ")
    assert found.answer.endswith(
        "This is the only change over 11 runs from 2026-03-01 10:00 to 2026-03-01 20:00."
    )
    assert (
        "% slower, " in found.answer and "The chance that noise alone shows such a change is " in found.answer
    )


def test_runs_of_one_level_show_no_change(root):
    store(root, [1.0] * 8)
    found = read_history(root, "p90")
    assert found.changes == ()
    assert "did not change beyond noise over" in found.answer


def test_one_run_at_the_end_is_only_suspected(root):
    store(root, [1.0] * 8)
    last = store_load(root, 9, 1.5)
    found = read_history(root, "throughput")
    (change,) = found.changes
    assert (change.suspected, change.since) == (True, last.name)
    assert change.verdict is RunVerdict.NOT_ENOUGH_EVIDENCE
    assert "The last runs may be a change" in found.answer
    assert any("Repeat the run." in text for text in found.warnings)


def test_runs_that_a_guard_found_broken_are_left_out_and_counted(root):
    folders = store(root, [1.0] * 6 + [1.6] * 3 + [1.0])
    for folder in folders[6:9]:
        set_tag(folder, "guard-broken", present=True)
    found = read_history(root, "throughput")
    assert (len(found.runs), found.broken, found.changes) == (7, 3, ())
    (told,) = [one for one in found.warnings if "left out" in one]
    assert told == "3 runs left out: a guard found them broken (uncork history --all includes them)."
    everything = read_history(root, "throughput", everything=True)
    assert (len(everything.runs), everything.broken) == (10, 0)
    assert not any("guard" in one for one in everything.warnings)


def test_few_runs_say_so(root):
    store(root, [1.0, 3.0, 1.0])
    assert "too few runs to tell a change from noise" in read_history(root, "throughput").answer


def test_only_like_runs_of_a_like_machine_are_in_it(root):
    like = store(root, [1.0] * 6)
    store(root, [1.0], start=10, spec=replace(CLOSED_SPEC, clients=64))
    other = {**ENVIRONMENT, "machine": {**ENVIRONMENT["machine"], "processor": "Other 9"}}
    store(root, [2.0], start=11, environment=other)
    interrupted = store(root, [2.0], start=12, status="interrupted")
    found = read_history(root, "throughput", like=like[0].name)
    assert [run.id for run in found.runs] == [folder.name for folder in like]
    assert found.left_out == 1
    assert "1 run left out: unfinished" in found.warnings[-1]
    assert interrupted[0].name not in {run.id for run in found.runs}
    assert len(read_history(root, "throughput", like=like[0].name, any_machine=True).runs) == 7


def test_a_damaged_run_is_left_out_and_counted(root):
    folders = store(root, [1.0] * 7)
    (folders[2] / "plan.json").write_text("{")
    (folders[3] / "manifest.json").write_text("{")
    found = read_history(root, "throughput")
    assert (len(found.runs), found.left_out) == (5, 2)


def test_of_whom_must_be_said_where_a_figure_is_told_of_several(root):
    store(root, [1.0] * 2)
    assert read_history(root, "p90").subject == ""
    assert read_history(root, "p90", subject="tpcb").subject == "tpcb-like"
    with pytest.raises(
        UsageError, match='--of "x": no subject has that name; "p90" exists for: the run as a whole'
    ):
        read_history(root, "p90", subject="x")
    with pytest.raises(UsageError, match="several subjects contain that name"):
        read_history(root, "p90", subject="-")


def test_an_unknown_figure_names_those_that_there_are(root):
    store(root, [1.0])
    with pytest.raises(
        UsageError, match=r'no metric "througput"; did you mean "throughput"\? It has throughput,'
    ):
        read_history(root, "througput")


def test_no_runs_and_damaged_ones_are_told(root):
    with pytest.raises(SetupError, match="there are no runs"):
        read_history(root, "p99")
    folder = store_load(root, 1)
    with pytest.raises(SetupError, match='no run "nope"'):
        read_history(root, "p99", like="nope")
    (folder / "manifest.json").write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        read_history(root, "p99", like=folder.name)
    with pytest.raises(UsageError, match="of a kind that has metrics"):
        read_history(root, "p99")


def test_shares_have_a_history_too(root):
    store(root, [1.0] * 6)
    store(root, [1.0] * 4, start=6, failed=200)
    found = read_history(root, "failed")
    assert found.changes[0].verdict is RunVerdict.MORE
    assert found.changes[0].number == 7
    kinds = read_history(root, "error 40001")
    assert [run.value for run in kinds.runs[:6]] == [0.0] * 6


@pytest.mark.parametrize("levels", [[1.0], [1.0] * 8, [1.0] * 6 + [1.4] * 6, [1.0] * 8 + [2.0]])
def test_every_form_says_the_same(root, levels):
    folders = store(root, levels)
    name_run(root, folders[0].name, "baseline")
    found = read_history(root, "p90")
    jsonschema.validate(json.loads(json_text(found)), result_schema("history"))
    page, text = html_page(build_history_document(found)), markdown_text(build_history_document(found))
    assert folders[-1].name in page
    assert folders[-1].name in text
    for width in (60, 80, 160):
        shown = terminal(found, width)
        assert all(
            len(line) <= width for line in shown.splitlines() if "uncork" not in line and "git" not in line
        )
    assert " ".join(found.answer.split()) in " ".join(terminal(found, 400).split())


# ---- figures that are remembered ----


def test_remembered_figures_are_those_of_the_run(root):
    folder = store_load(root, 1)
    fresh = run_figures(folder)
    assert recall_figures(folder) is None
    assert remembered_figures(folder) == fresh
    assert recall_figures(folder) == fresh


def test_a_run_that_changed_is_read_anew(root):
    folder = store_load(root, 1)
    remembered_figures(folder)
    write_manifest(folder, replace(read_manifest(folder), commit="abcdef"))
    assert recall_figures(folder) is None
    assert remembered_figures(folder).commit == "abcdef"


def test_what_did_not_end_is_not_remembered(root):
    folder = store_load(root, 1, status="interrupted")
    remembered_figures(folder)
    assert not (folder / "figures.json").exists()


def test_damaged_memories_are_forgotten(root):
    folder = store_load(root, 1)
    fresh = remembered_figures(folder)
    (folder / "figures.json").write_text('{"key": 1')
    assert remembered_figures(folder) == fresh


def test_a_terminal_without_unicode_shows_it_in_ascii(root):
    store(root, [1.0] * 6 + [1.4] * 6)
    plain = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=plain, width=60, force_terminal=False)
    render_history_terminal(read_history(root, "p90"), console)
    plain.flush()
    shown = plain.buffer.getvalue().decode("ascii")
    assert "<- slower" in " ".join(shown.split())


def test_columns_without_anything_are_left_out_so_that_ids_stand_whole(root):
    folders = [store_load(root, number) for number in range(6)]
    name_run(root, folders[2].name, "baseline")
    text = terminal(read_history(root, "throughput"), width=80)
    assert all(folder.name in text for folder in folders)
    assert "baseline" in text
    assert "commit" not in text
    store(root, [1.0], start=6)
    assert "commit" in terminal(read_history(root, "throughput"), width=80)
