import json
import os
import time
from dataclasses import replace

import pytest

from uncork.errors import StoreError, UsageError
from uncork.store import catalogue
from uncork.store.catalogue import read_catalogue, set_tag
from uncork.store.layout import write_manifest
from unit.store.test_layout import MANIFEST, make_run


def age(*folders, seconds=3600):
    for folder in folders:
        os.utime(folder, (time.time() - seconds,) * 2)


def ids(found):
    return [run.id for run in found.runs]


@pytest.fixture
def copied(monkeypatch):
    monkeypatch.setattr(catalogue, "_WORTH", 1)


def test_runs_are_listed_oldest_first_and_what_is_no_run_is_not(tmp_path):
    for stamp in ("20260301-100000-2", "20260301-100000", "20260102-090000"):
        make_run(tmp_path, f"types-{stamp}")
    (tmp_path / "laid-out-20260301-110000").mkdir()
    (tmp_path / "names.json").write_text("{}")
    found = read_catalogue(tmp_path)
    assert ids(found) == ["types-20260102-090000", "types-20260301-100000", "types-20260301-100000-2"]
    assert found.damaged == ()
    assert read_catalogue(tmp_path / "none").runs == ()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", '{"version": 1}', '{"version": 1, "id": 5}', "\x00\xff"]
)
def test_a_damaged_run_is_told_and_the_others_are_there(tmp_path, text):
    make_run(tmp_path, "types-20260301-100000")
    broken = make_run(tmp_path, "types-20260301-110000")
    (broken / "manifest.json").write_bytes(text.encode("latin-1"))
    found = read_catalogue(tmp_path)
    assert ids(found) == ["types-20260301-100000"]
    assert len(found.damaged) == 1 and str(broken / "manifest.json") in str(found.damaged[0])


def test_what_settled_is_read_from_the_copy_and_what_changed_is_not(tmp_path, copied, monkeypatch):
    first, second = (make_run(tmp_path, f"types-20260301-1{hour}0000") for hour in "01")
    age(first, second)
    before = read_catalogue(tmp_path)
    assert json.loads((tmp_path / ".catalogue.json").read_text())["runs"].keys() == {first.name, second.name}
    write_manifest(second, replace(MANIFEST, id=second.name, question="Another?"))
    read = []
    monkeypatch.setattr(
        catalogue,
        "read_manifest",
        lambda folder, of=catalogue.read_manifest: read.append(folder) or of(folder),
    )
    after = read_catalogue(tmp_path)
    assert read == [second]
    assert [run.manifest.question for run in after.runs] == ["Which type?", "Another?"]
    assert after.runs[0] == before.runs[0]
    read.clear()
    assert read_catalogue(tmp_path, after) == after and read == [second]  # it changed a moment ago


def test_a_change_within_one_step_of_the_clock_is_seen(tmp_path, copied):
    """The manifest changes, and the folder's time does not: so coarse are the clocks of some file systems."""
    run = make_run(tmp_path, "types-20260301-100000")
    times = run.stat()
    assert read_catalogue(tmp_path).runs[0].manifest.status == "complete"
    write_manifest(run, replace(MANIFEST, id=run.name, status="failed"))
    os.utime(run, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert read_catalogue(tmp_path).runs[0].manifest.status == "failed"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"version": 9}', '{"version": 1, "runs": {"types-1": 3}}'])
def test_a_copy_that_is_of_no_use_is_made_anew(tmp_path, copied, text):
    run = make_run(tmp_path, "types-20260301-100000")
    age(run)
    (tmp_path / ".catalogue.json").write_text(text)
    assert ids(read_catalogue(tmp_path)) == [run.name]
    assert run.name in json.loads((tmp_path / ".catalogue.json").read_text())["runs"]


def test_a_run_that_is_gone_is_not_listed_from_the_copy(tmp_path, copied):
    run = make_run(tmp_path, "types-20260301-100000")
    age(run)
    read_catalogue(tmp_path)
    run.rename(tmp_path / ".pruned")
    assert read_catalogue(tmp_path).runs == ()


def test_a_tag_is_set_seen_and_taken_away(tmp_path):
    run = make_run(tmp_path, "types-20260301-100000")
    set_tag(run, "release-2", present=True)
    set_tag(run, "nightly", present=True)
    set_tag(run, "nightly", present=True)
    assert read_catalogue(tmp_path).runs[0].tags == ("nightly", "release-2")
    set_tag(run, "nightly", present=False)
    set_tag(run, "never", present=False)
    assert read_catalogue(tmp_path).runs[0].tags == ("release-2",)


@pytest.mark.parametrize("tag", ["", ".", "../x", "a/b", "-a", "a b", "ä", "a" * 64, "a\n", "a\x00"])
def test_what_is_no_tag_is_refused(tmp_path, tag):
    run = make_run(tmp_path, "types-20260301-100000")
    with pytest.raises(UsageError, match="is not a valid tag"):
        set_tag(run, tag, present=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["manifest.json", run.name]


def test_a_tag_of_a_run_that_is_gone_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="cannot write"):
        set_tag(tmp_path / "gone", "a", present=True)
