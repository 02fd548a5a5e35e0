"""Stored runs from the command line: listed, asked, tagged, pruned."""

import json

import pytest

from uncork.store.append import append_rows
from unit.store.test_layout import make_run


@pytest.fixture
def runs(uncork):
    root = uncork.folder / "runs"
    for month in (1, 2, 3):
        run = make_run(root, f"types-2026030{month}-100000", started_at=f"2026-0{month}-01T10:00:00+00:00")
        append_rows(run, "overheads", [{"engine": "sqlite", "operations": month}])
    make_run(root, "other-20260301-120000", status="failed", question="\x1b[31mred\x1b[0m\nnext")
    return root


def ids(done):
    return [line.split()[0] for line in done.stdout.splitlines()[1:]]


def test_runs_are_listed_and_chosen(uncork, runs):
    done = uncork("runs")
    assert len(ids(done)) == 4 and done.stderr == ""
    assert "\x1b" not in done.stdout and len(done.stdout.splitlines()) == 5
    assert ids(uncork("runs", "--status", "failed")) == ["other-20260301-120000"]
    assert ids(uncork("runs", "--search", "TYPES which", "--last", "2")) == [
        "types-20260302-100000",
        "types-20260303-100000",
    ]
    none = uncork("runs", "--kind", "load")
    assert none.returncode == 0 and none.stdout == "" and "none of the 4 runs" in none.stderr


def test_a_damaged_run_is_told_and_the_others_stay_readable(uncork, runs):
    (runs / "types-20260301-100000" / "manifest.json").write_text('{"version": 1')
    path = runs / "types-20260302-100000" / "overheads" / "000001.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    listed = uncork("runs")
    assert len(ids(listed)) == 3 and "types-20260301-100000" in listed.stderr
    done = uncork("sql", "all", "SELECT run, operations FROM overheads ORDER BY run", "--csv")
    assert done.returncode == 0
    assert done.stdout.splitlines() == ["run,operations", "types-20260303-100000,3"]
    assert (
        "manifest.json: damaged" in done.stderr and f"{path}: damaged; its rows are left out" in done.stderr
    )


def test_all_runs_are_asked_together(uncork, runs):
    assert (
        uncork("runs", "tag", "types-20260301", "nightly", "x").stdout
        == "types-20260301-100000: nightly, x\n"
    )
    query = "SELECT run, tags, year(started_at) AS year FROM runs WHERE len(tags) > 0"
    done = uncork("sql", "all", query, "--json")
    assert json.loads(done.stdout) == {"run": "types-20260301-100000", "tags": ["nightly", "x"], "year": 2026}
    assert (
        uncork("runs", "tag", "types-20260301", "x", "--remove").stdout == "types-20260301-100000: nightly\n"
    )
    wrong = uncork("sql", "all", "SELECT nothing FROM runs")
    assert wrong.returncode == 1 and "nothing" in wrong.stderr and "Traceback" not in wrong.stderr


def test_pruning_shows_what_would_go_and_removes_only_that(uncork, runs):
    uncork("runs", "tag", "types-20260301", "release")
    uncork("runs", "name", "types-20260303", "baseline")
    shown = uncork("runs", "prune", "--older-than", "1d")
    assert shown.returncode == 0
    assert [line.split()[0] for line in shown.stdout.splitlines()] == [
        "types-20260302-100000",
        "other-20260301-120000",
    ]
    assert "2 of 4 runs" in shown.stderr and "--yes" in shown.stderr
    assert len(ids(uncork("runs"))) == 4
    assert "nothing to prune" in uncork("runs", "prune", "--older-than", "1d", "--keep", "3").stderr
    done = uncork("runs", "prune", "--older-than", "1d", "--kind", "experiment", "--yes")
    assert done.returncode == 0 and "were removed" in done.stderr
    assert ids(uncork("runs")) == ["types-20260301-100000", "types-20260303-100000"]
    assert sorted(path.name for path in runs.iterdir()) == [
        ".names",
        "types-20260301-100000",
        "types-20260303-100000",
    ]


def test_nothing_is_pruned_while_the_names_cannot_be_read(uncork, runs):
    (runs / ".names").mkdir()
    (runs / ".names" / "baseline").write_bytes(b"\xff")
    done = uncork("runs", "prune", "--keep", "0", "--yes")
    assert done.returncode == 1 and ".names" in done.stderr
    assert len(list(runs.glob("*-2026*"))) == 4


@pytest.mark.parametrize("query", [["SELECT * FROM overheads"], ["SHOW TABLES"], []])
def test_sql_of_a_damaged_run_says_so(uncork, runs, query):
    folder = sorted(runs.glob("types-*"))[-1]
    (table,) = (folder / "overheads").iterdir()
    table.write_bytes(b"x")
    done = uncork("sql", folder.name, *query)
    assert done.returncode == 2
    assert done.stderr.startswith(f"uncork: {folder}: damaged: ")
    assert "Traceback" not in done.stderr
