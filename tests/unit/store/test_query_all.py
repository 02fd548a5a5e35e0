from dataclasses import replace

import pytest

from uncork.analysis.runs.listing import read_runs
from uncork.errors import UsageError
from uncork.model.tables.register import TABLES
from uncork.store import query_all
from uncork.store.layout import read_manifest, write_manifest
from uncork.store.query_all import AllRunsReader
from uncork.store.tables import append_rows
from unit.store.test_layout import make_run


def add(root, name, operations, **changes):
    run = make_run(root, name, **changes)
    append_rows(
        run, "overheads", [{"engine": f"engine-{number}", "operations": number} for number in operations]
    )
    return run


def ask(root, query, damaged=0):
    reader = AllRunsReader(root, read_runs(root).runs)
    names, rows = reader.ask(query)
    reader.close()
    assert len(reader.damaged) == damaged
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.fixture
def packed(monkeypatch):
    monkeypatch.setattr(query_all, "_WORTH", 2)


SUMS = "SELECT run, sum(operations)::INT AS sum FROM overheads GROUP BY run ORDER BY run"


def test_the_table_of_runs_tells_each(tmp_path):
    add(tmp_path, "types-20260301-100000", [1])
    add(tmp_path, "types-20260302-100000", [], status="failed", case=None)
    rows = ask(tmp_path, 'SELECT run, status, rounds, "case", year(started_at) AS y FROM runs ORDER BY run')
    assert [tuple(row.values()) for row in rows] == [
        ("types-20260301-100000", "complete", 5, "cluster-names", 2026),
        ("types-20260302-100000", "failed", 5, None, 2026),
    ]


def test_rows_of_all_runs_come_with_their_run(tmp_path, packed):
    add(tmp_path, "a-20260301-100000", [1, 2])
    make_run(tmp_path, "a-20260301-110000")
    add(tmp_path, "b-20260301-100000", [5])
    expected = [{"run": "a-20260301-100000", "sum": 3}, {"run": "b-20260301-100000", "sum": 5}]
    assert ask(tmp_path, SUMS) == expected
    assert (tmp_path / ".packed" / "overheads.parquet").is_file()
    assert ask(tmp_path, SUMS) == expected
    names = {row["name"] for row in ask(tmp_path, "SHOW TABLES")}
    assert names == {*TABLES, "runs"}


def test_what_was_packed_follows_runs_that_go_on_go_away_and_come(tmp_path, packed):
    first = add(tmp_path, "a-20260301-100000", [1])
    second = add(tmp_path, "b-20260301-100000", [2])
    ask(tmp_path, SUMS)
    append_rows(first, "overheads", [{"engine": "more", "operations": 10}])
    make_run_again(first, rounds=9)
    second.rename(tmp_path / ".gone")
    add(tmp_path, "c-20260301-100000", [4], status="running")
    expected = [{"run": "a-20260301-100000", "sum": 11}, {"run": "c-20260301-100000", "sum": 4}]
    assert ask(tmp_path, SUMS) == expected
    assert ask(tmp_path, SUMS) == expected


def make_run_again(folder, rounds):
    manifest = read_manifest(folder)
    write_manifest(folder, replace(manifest, attempts=(replace(manifest.attempts[0], rounds=rounds),)))


def test_a_damaged_file_is_told_and_the_others_are_there(tmp_path, packed):
    broken = [add(tmp_path, f"{name}-20260301-100000", [1]) for name in "ab"]
    add(tmp_path, "c-20260301-100000", [3])
    path = broken[0] / "overheads" / "000001.parquet"
    path.write_bytes(path.read_bytes()[:100])
    path = broken[1] / "overheads" / "000001.parquet"
    data = bytearray(path.read_bytes())
    data[4:60] = b"\xff" * 56
    path.write_bytes(data)
    assert ask(tmp_path, SUMS, damaged=2) == [{"run": "c-20260301-100000", "sum": 3}]


@pytest.mark.parametrize(
    "damage", [lambda data: data[:100], lambda data: data[:4] + b"\xff" * 90 + data[94:]]
)
def test_a_damaged_copy_is_passed_over(tmp_path, packed, damage):
    for name in "abc":
        add(tmp_path, f"{name}-20260301-100000", [1])
    before = ask(tmp_path, SUMS)
    path = tmp_path / ".packed" / "overheads.parquet"
    path.write_bytes(damage(path.read_bytes()))
    assert ask(tmp_path, SUMS) == before


def test_a_wrong_query_is_told(tmp_path):
    add(tmp_path, "a-20260301-100000", [1])
    with pytest.raises(UsageError, match="nothing_such"):
        ask(tmp_path, "SELECT nothing_such FROM overheads")


def test_an_answer_comes_as_arrow_too_past_a_damaged_file(tmp_path, packed):
    add(tmp_path, "a-20260301-100000", [1, 2])
    broken = add(tmp_path, "b-20260301-100000", [5])
    for path in (broken / "overheads").glob("*.parquet"):
        path.write_bytes(b"PAR1 nothing")
    reader = AllRunsReader(tmp_path, read_runs(tmp_path).runs)
    assert reader.ask_arrow(SUMS).to_pylist() == [{"run": "a-20260301-100000", "sum": 3}]
    assert len(reader.damaged) == 1
    with pytest.raises(UsageError, match="nope"):
        reader.ask_arrow("SELECT nope FROM runs")
    with pytest.raises(UsageError, match="the query is empty"):
        reader.ask_arrow(" ")
    reader.close()
