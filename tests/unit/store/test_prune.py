import os
import time

import pytest

from uncork.errors import StoreError
from uncork.store import prune
from uncork.store.catalogue import read_catalogue, set_tag
from uncork.store.layout import name_run
from uncork.store.prune import remove_leftovers, remove_run, size_of
from unit.store.test_layout import make_run


@pytest.fixture
def run(tmp_path):
    folder = make_run(tmp_path, "types-20260301-100000")
    (folder / "trials").mkdir()
    (folder / "trials" / "000001.parquet").write_bytes(b"12345")
    return folder


def stamp(root):
    return read_catalogue(root).runs[0].stamp


def test_a_run_goes_wholly(tmp_path, run):
    assert size_of(run) > 5
    assert remove_run(tmp_path, run.name, stamp(tmp_path))
    assert list(tmp_path.iterdir()) == []
    assert not remove_run(tmp_path, run.name, "x")


@pytest.mark.parametrize("when", ["before", "between"])
@pytest.mark.parametrize("how", ["tag", "name", "change"])
def test_a_run_that_is_kept_meanwhile_stays(tmp_path, run, monkeypatch, when, how):
    seen = stamp(tmp_path)

    def keep(place):
        if how == "tag":
            set_tag(place, "kept", present=True)
        elif how == "name" and place == run:
            name_run(tmp_path, run.name, "baseline")
        elif how == "name":
            (tmp_path / ".names").mkdir()
            (tmp_path / ".names" / "baseline").write_text(run.name)
        else:
            (place / "manifest.json").rename(place / "other")
            (place / "other").rename(place / "manifest.json")

    if when == "before":
        keep(run)
    else:
        known = prune.run_in
        calls = []

        def looked(root, id):
            calls.append(id)
            if len(calls) == 2:
                keep(root / id)
            return known(root, id)

        monkeypatch.setattr(prune, "run_in", looked)
    assert not remove_run(tmp_path, run.name, seen)
    assert (run / "trials" / "000001.parquet").read_bytes() == b"12345"
    assert not list(tmp_path.glob(".pruned-*"))


def test_names_that_cannot_be_read_keep_all(tmp_path, run):
    seen = stamp(tmp_path)
    (tmp_path / ".names").mkdir()
    (tmp_path / ".names" / "baseline").write_text("")
    with pytest.raises(StoreError, match="damaged"):
        remove_run(tmp_path, run.name, seen)
    assert run.is_dir()


def test_what_killed_processes_left_goes_and_the_rest_stays(tmp_path, run):
    old = time.time() - 2 * 86_400
    left = [tmp_path / ".pruned-1-types", tmp_path / ".names.1.new", run / ".manifest.json.1.new"]
    left.append(tmp_path / "types-20260201-100000")
    kept = [tmp_path / ".names.2.new", tmp_path / "types-20260202-100000", tmp_path / ".packed"]
    kept.append(tmp_path / "others")
    for path in (left[0], left[3], *kept[1:]):
        path.mkdir()
    for path in (left[1], left[2], kept[0], kept[3] / "file"):
        path.write_text("x")
    for path in (*left, kept[3]):
        os.utime(path, (old, old))
    assert remove_leftovers(tmp_path) == 4
    assert not any(path.exists() for path in left) and all(path.exists() for path in (*kept, run))
    assert remove_leftovers(tmp_path / "none") == 0
