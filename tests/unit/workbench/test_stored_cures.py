"""Cures on disk: read back as they were written, and reported as every other kind of run."""

import json
from dataclasses import replace

import jsonschema
import pytest

from fakes.cures import healthy_cure, interrupted_cure, nothing_proven, proven_cure
from fakes.terminals import shown
from uncork.api.runs import CureRun, open_folder
from uncork.errors import StoreError
from uncork.report.write.schemas import result_schema
from uncork.store.cures import CURE_FILE, read_cure
from uncork.workbench.cure.stored import write_cure
from uncork.workbench.documents.kinds import kind_of
from uncork.workbench.run_record import draft, start_run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder of a stored cure."""
    monkeypatch.setenv("UNCORK_COMMIT", "abc")
    manifest = draft(kind="cure", name="cure-shop", question="cure: shop", server="s", options={})
    with start_run(tmp_path, manifest) as run:
        write_cure(run.folder, replace(proven_cure(), id="", folder=""))
    return run.folder


@pytest.mark.parametrize("cure", [proven_cure, nothing_proven, healthy_cure, interrupted_cure])
def test_a_cure_is_read_as_it_was_written(tmp_path, cure):
    write_cure(tmp_path, cure())
    assert read_cure(tmp_path) == cure()


def test_a_bill_without_an_upper_bound_is_read_as_such(tmp_path):
    known = proven_cure()
    write_cure(tmp_path, replace(known, bill_before=replace(known.bill_before, high=None)))
    assert read_cure(tmp_path).bill_before.high is None


def test_the_files_of_a_stored_cure_are_in_its_folder(folder):
    found = read_cure(folder)
    assert (found.id, found.folder) == (folder.name, str(folder))


def test_every_form_of_the_report_of_a_stored_cure(folder):
    kind = kind_of(folder)
    found = kind.read(folder)
    forms = kind.forms(folder, found)
    assert "take at least 53 % less time" in forms.html
    assert forms.markdown.startswith("**Create an index")
    jsonschema.Draft202012Validator(result_schema("cure-result")).validate(json.loads(forms.json))
    assert "What to do next" in shown(kind.terminal, found)


def test_python_opens_a_cure(folder):
    run = open_folder(folder)
    assert isinstance(run, CureRun)
    assert run.kind == "cure"
    assert run.answer.startswith("Create an index")
    assert run.chosen.sql.startswith("CREATE INDEX CONCURRENTLY")


def test_damaged_files_and_other_versions_are_refused(tmp_path):
    with pytest.raises(StoreError, match="ended before its first result"):
        read_cure(tmp_path)
    (tmp_path / CURE_FILE).write_text("{}")
    with pytest.raises(StoreError, match=r"cure\.json"):
        read_cure(tmp_path)
    (tmp_path / CURE_FILE).write_text('{"version": 99, "uncork_version": "9.0"}')
    with pytest.raises(StoreError, match="format version 99, but this uncork reads version 1"):
        read_cure(tmp_path)
