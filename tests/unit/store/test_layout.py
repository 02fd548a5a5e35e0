import errno
import os
from dataclasses import replace

import pytest

from uncork.errors import SetupError, StoreError
from uncork.store.layout import (
    Attempt,
    Manifest,
    failed_since,
    find_run,
    list_runs,
    new_run_folder,
    read_manifest,
    stored_file,
    write_atomically,
    write_manifest,
)

MANIFEST = Manifest(
    id="types-20260301-101500", name="types", question="Which type?", status="complete",
    started_at="2026-03-01T10:15:00+00:00", seed=7, unit="round", server="embedded",
    uncork_version="0.1.0", case="cluster-names",
    options={"levels": {"rows": ["10"]}, "budget_ns": 5},
    attempts=(Attempt("2026-03-01T10:15:00+00:00", 10**9, 5, "complete", "done"),),
)  # fmt: skip


def make_run(root, name, **changes):
    folder = root / name
    folder.mkdir(parents=True)
    write_manifest(folder, replace(MANIFEST, id=name, **changes))
    return folder


def fails(number, words):
    """Return a function that the system refuses."""

    def refused(_descriptor):
        raise OSError(number, words)

    return refused


def files(folder):
    return sorted(path.name for path in folder.iterdir())


# ---- writing ----


def test_what_is_written_is_read_back_and_nothing_else_is_left(tmp_path):
    write_atomically(tmp_path / "new" / "text", "ä")
    write_atomically(tmp_path / "new" / "bytes", b"\xff")
    write_atomically(tmp_path / "new" / "text", "ö")
    assert (tmp_path / "new" / "text").read_text(encoding="utf-8") == "ö"
    assert (tmp_path / "new" / "bytes").read_bytes() == b"\xff"
    assert files(tmp_path / "new") == ["bytes", "text"]


def test_a_full_disk_leaves_the_old_file_and_nothing_behind(tmp_path, monkeypatch):
    path = tmp_path / "manifest.json"
    write_atomically(path, "old")
    monkeypatch.setattr(os, "fsync", fails(errno.ENOSPC, "No space left on device"))
    with pytest.raises(StoreError) as raised:
        write_atomically(path, "new")
    assert str(raised.value) == f"cannot write {path}: No space left on device; free some space"
    assert path.read_text() == "old"
    assert files(tmp_path) == ["manifest.json"]
    (tmp_path / "trials").mkdir()
    (tmp_path / "trials" / "000001.parquet").touch()
    with pytest.raises(StoreError, match="free some space: what was measured so far is kept"):
        write_atomically(path, "new")


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", fails(errno.EIO, "Input/output error"))
    with pytest.raises(StoreError) as raised:
        write_atomically(tmp_path / "plan.json", "{}")
    assert str(raised.value) == f"cannot write {tmp_path / 'plan.json'}: Input/output error"


def test_a_file_where_a_folder_should_be_is_a_store_error(tmp_path):
    (tmp_path / "trials").write_text("")
    with pytest.raises(StoreError, match="cannot write"):
        write_atomically(tmp_path / "trials" / "000001.parquet", b"")


def test_a_run_never_takes_an_existing_folder(tmp_path):
    root = tmp_path / "runs"
    made = [new_run_folder(root, "types", "20260301-101500").name for _ in range(3)]
    assert made == ["types-20260301-101500", "types-20260301-101500-2", "types-20260301-101500-3"]


def test_a_run_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "runs").write_text("not a folder")
    with pytest.raises(StoreError, match=r"cannot write .*types-20260301-101500: Not a directory"):
        new_run_folder(tmp_path / "runs", "types", "20260301-101500")


def test_files_beside_the_experiment_stay_inside_the_run(tmp_path):
    assert stored_file(tmp_path, "queries/select.sql") == tmp_path / "files" / "queries_select.sql"
    assert stored_file(tmp_path, "../../etc/passwd").parent == tmp_path / "files"


def test_different_files_beside_the_experiment_stay_different(tmp_path):
    assert stored_file(tmp_path, "a/b.sql") != stored_file(tmp_path, "a_b.sql")


# ---- the manifest ----


def test_a_manifest_is_read_as_it_was_written(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST


@pytest.mark.parametrize("content", [
    None, b"", b"{", b"[]", b"null", b"3", b'{"version": 1}', b'{"version": 1, "colour": "red"}',
    "\ufffe{}".encode(), b"\xff\xfe\x00",
])  # fmt: skip
def test_a_manifest_that_is_damaged_or_missing_is_an_error_that_names_it(tmp_path, content):
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(StoreError) as raised:
        read_manifest(tmp_path)
    assert str(raised.value).startswith(f"{tmp_path / 'manifest.json'}: damaged: ")


@pytest.mark.parametrize("version", [0, 2])
def test_a_manifest_of_another_version_is_refused(tmp_path, version):
    write_manifest(tmp_path, replace(MANIFEST, version=version, uncork_version="9.1"))
    with pytest.raises(StoreError) as raised:
        read_manifest(tmp_path)
    assert str(raised.value) == (
        f"{tmp_path / 'manifest.json'}: format version {version}, but this uncork reads version 1; use the "
        "uncork that wrote it (9.1), or measure again"
    )


# ---- finding runs ----


@pytest.fixture
def runs(tmp_path):
    root = tmp_path / "runs"
    for name in ("types-20260301-101500", "types-20260301-101500-2", "index-20260302-080000"):
        make_run(root, name)
    return root


@pytest.mark.parametrize(("wanted", "found"), [
    ("last", "index-20260302-080000"),
    ("index", "index-20260302-080000"),
    ("types-20260301-101500", "types-20260301-101500"),
    ("types-20260301-101500-2", "types-20260301-101500-2"),
])  # fmt: skip
def test_a_run_is_found_by_its_id_its_beginning_or_as_the_last(runs, wanted, found):
    assert find_run(runs, wanted) == runs / found


def test_a_run_is_found_by_its_path(runs, tmp_path):
    elsewhere = make_run(tmp_path / "elsewhere", "other")
    assert find_run(runs, str(elsewhere)) == elsewhere


def test_the_last_of_runs_begun_in_the_same_second_is_the_one_with_the_highest_number(tmp_path):
    for number in ("-2", "-10", "-9", ""):
        make_run(tmp_path, f"types-20260301-101500{number}")
    assert find_run(tmp_path, "last").name == "types-20260301-101500-10"


def test_last_skips_failed_runs_and_an_id_still_finds_them(runs):
    failed = [make_run(runs, f"load-20260303-0{hour}0000", status="failed") for hour in (1, 2)]
    assert find_run(runs, "last") == runs / "index-20260302-080000"
    assert find_run(runs, failed[1].name) == failed[1]
    assert find_run(runs, "last", failed=True) == failed[1]
    assert [one.id for one in failed_since(runs)] == [failed[1].name, failed[0].name]
    later = make_run(runs, "types-20260304-010000", status="interrupted")
    assert find_run(runs, "last") == later
    assert failed_since(runs) == []


def test_last_finds_nothing_if_every_run_failed(tmp_path):
    make_run(tmp_path, "load-20260303-010000", status="failed")
    with pytest.raises(SetupError, match=r"every run in .* failed.*`uncork report load-20260303-010000`"):
        find_run(tmp_path, "last")


def test_a_beginning_that_several_runs_share_is_refused_with_their_names(runs):
    with pytest.raises(SetupError) as raised:
        find_run(runs, "types")
    assert str(raised.value) == (
        'several runs begin with "types": types-20260301-101500, types-20260301-101500-2; '
        "write more of the id"
    )


def test_a_run_that_is_not_there_is_refused(runs, tmp_path):
    with pytest.raises(SetupError, match=r'there is no run "nothing" in .*; `uncork runs` lists them'):
        find_run(runs, "nothing")
    with pytest.raises(
        SetupError, match=r"there are no runs in .*; `uncork run FILE` and `uncork load sql` create some"
    ):
        find_run(tmp_path / "none", "last")
    with pytest.raises(SetupError, match=r"is a folder of runs: name a run in it, such as .*/runs/\w"):
        find_run(tmp_path / "none", str(runs))


def test_runs_are_listed_oldest_first_and_then_the_damaged(runs):
    (runs / "types-20260301-101500-2" / "manifest.json").write_text("{")
    (runs / "no run").mkdir()
    first, third, second = list_runs(runs)
    assert first.id == "types-20260301-101500"
    assert isinstance(second, StoreError)
    assert "types-20260301-101500-2" in str(second)
    assert third.id == "index-20260302-080000"
    assert list(list_runs(runs / "none")) == []
