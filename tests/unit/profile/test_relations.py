"""Indexes not worth their upkeep, bloat, foreign keys without index, islands."""

import pytest

from uncork.profile.relations import (
    fresh_statistics,
    index_bloat,
    index_doubts,
    islands,
    rests_on_index,
    table_bloat,
    whole_reads,
)

BLOCK = 8192


def index(oid, keys, *, table=1, **facts):
    usual = {
        "oid": oid,
        "table_oid": table,
        "name": f"i{oid}",
        "method": "btree",
        "keys": keys,
        "included": "",
        "expressions": "",
        "predicate": "",
        "unique": False,
        "constraint": False,
        "valid": True,
        "scans": 5,
    }
    return {**usual, **facts}


@pytest.mark.parametrize(
    ("rows", "warnings"),
    [
        ([index(1, "1:a:0:0"), index(2, "1:a:0:0")], {2: ("duplicate", "i1")}),
        ([index(1, "1:a:0:0"), index(2, "1:a:0:0", constraint=True, unique=True)], {1: ("duplicate", "i2")}),
        ([index(1, "1:a:0:0", unique=True), index(2, "1:a:0:0", constraint=True)], {}),
        ([index(1, "1:a:0:0"), index(2, "1:b:0:0")], {}),
        ([index(1, "1:a:0:0"), index(2, "1:a:0:0", predicate="x")], {}),
        ([index(1, "1:a:0:0"), index(2, "1:a:0:0", included="2")], {}),
        ([index(1, "1:a:0:0"), index(2, "1:a:0:0", table=9)], {}),
        ([index(1, "1:a:0:0"), index(2, "1:a:0:0,2:a:0:0")], {1: ("covered", "i2")}),
        ([index(1, "1:a:0:0", unique=True), index(2, "1:a:0:0,2:a:0:0")], {}),
        ([index(1, "2:a:0:0"), index(2, "1:a:0:0,2:a:0:0")], {}),
        ([index(1, "1:a:0:0", method="hash"), index(2, "1:a:0:0,2:a:0:0")], {}),
        ([index(1, "1:a:0:0", scans=0)], {1: ("unused", "")}),
        ([index(1, "1:a:0:0", scans=0, unique=True)], {}),
        ([index(1, "1:a:0:0"), index(2, "1:a:0:0,2:a:0:0", scans=0)], {1: ("covered", "i2")}),
        ([index(1, "1:a:0:0", scans=0, constraint=True)], {}),
        ([index(1, "1:a:0:0", valid=False), index(2, "1:a:0:0,2:a:0:0")], {1: ("invalid", "")}),
        ([index(1, "1:a:0:0", valid=False), index(2, "1:a:0:0")], {1: ("invalid", "")}),
    ],
)
def test_which_indexes_are_in_doubt_and_why(rows, warnings):
    found = index_doubts(rows)
    assert {oid: warning for oid, warning in found.items() if warning[0]} == warnings


def table(rows, width, pages, **facts):
    known = {"rows": rows, "row_width": width, "main_bytes": pages * BLOCK, "fillfactor": 100}
    return {**known, "pages": pages, "analysed_us": 1, "modified": 0, **facts}


def test_bloat_is_what_a_file_has_beyond_its_rows():
    # 100 bytes of data are 104 with alignment, 132 with header and pointer: 61 rows a page.
    assert table_bloat(table(61_000, 100, 1_000), BLOCK) == 0
    assert table_bloat(table(61_000, 100, 2_000), BLOCK) == pytest.approx(1_000 * BLOCK, rel=0.02)
    assert table_bloat(table(61_000, 100, 2_000, fillfactor=50), BLOCK) == 0


def test_small_files_are_not_judged_and_unknown_ones_not_guessed():
    assert table_bloat(table(1, 100, 100), BLOCK) == 0
    assert table_bloat(table(None, 100, 1_000), BLOCK) is None
    assert table_bloat(table(1, None, 1_000), BLOCK) is None


def test_bloat_of_a_b_tree_counts_its_entries():
    known = {"method": "btree", "rows": 360_000, "key_width": 8.0, "fillfactor": 90}
    row = {**known, "bytes": 2_000 * BLOCK, "pages": 2_000}
    assert index_bloat(row, BLOCK, fresh=True) == pytest.approx(1_000 * BLOCK, rel=0.05)
    assert index_bloat({**row, "bytes": 1_000 * BLOCK, "pages": 1_000}, BLOCK, fresh=True) == 0
    assert index_bloat({**row, "method": "gin"}, BLOCK, fresh=True) is None


@pytest.mark.parametrize(
    "stale",
    [
        {"analysed_us": None},  # counters were reset, or it was never analysed
        {"modified": None},  # stored before this was kept
        {"modified": 6_200},  # more than autovacuum leaves without ANALYZE
        {"pages": 1_700, "modified": 6_000},  # the file grew since its rows were counted
        {"pages": None, "modified": 6_000},
    ],
)
def test_bloat_is_unknown_where_statistics_are_of_another_time(stale):
    row = table(61_000, 100, 2_000)
    assert fresh_statistics(row, BLOCK) and table_bloat(row, BLOCK) > 0
    assert not fresh_statistics({**row, **stale}, BLOCK)
    assert table_bloat({**row, **stale}, BLOCK) is None


def test_bloat_is_certain_where_even_new_rows_would_leave_most_of_a_file_empty():
    # Of ten times the pages that are needed, changes since may have filled one more part at most.
    row = table(61_000, 100, 10_000, modified=61_000)
    assert not fresh_statistics(row, BLOCK)
    assert table_bloat(row, BLOCK) == pytest.approx(8_000 * BLOCK, rel=0.02)
    assert table_bloat({**row, "modified": 610_000}, BLOCK) is None


def test_bloat_of_an_index_is_unknown_if_its_table_or_itself_changed():
    known = {"method": "btree", "rows": 360_000, "key_width": 8.0, "fillfactor": 90}
    row = {**known, "bytes": 2_000 * BLOCK, "pages": 2_000}
    assert index_bloat(row, BLOCK, fresh=False) is None
    assert index_bloat({**row, "pages": 1_500}, BLOCK, fresh=True) is None


def scanned(rows, scans, read, **facts):
    return {**table(rows, 100, 1_000), "seq_scans": scans, "seq_rows": read, "live": rows, **facts}


def test_a_table_is_read_whole_as_often_as_its_rows_were_however_many_workers_share_a_scan():
    # Two scans by a leader and two workers each: the server counts six.
    assert whole_reads(scanned(61_000, 6, 122_000), BLOCK) == pytest.approx(2)
    assert whole_reads(scanned(61_000, 0, 0), BLOCK) == 0
    assert whole_reads(scanned(61_000, 1, 610), BLOCK) == pytest.approx(0.01)


def test_rows_are_estimated_as_the_planner_does_and_unknown_ones_not_guessed():
    grown = scanned(61_000, 1, 122_000, pages=500)
    assert whole_reads(grown, BLOCK) == pytest.approx(1)
    assert whole_reads({**grown, "rows": None, "live": 122_000}, BLOCK) == pytest.approx(1)
    assert whole_reads({**grown, "rows": None, "live": None}, BLOCK) is None


@pytest.mark.parametrize(
    ("numbers", "found", "rests"),
    [
        ("2", index(1, "2:a:0:0"), True),
        ("2", index(1, "2:a:0:0,3:a:0:0"), True),
        ("3", index(1, "2:a:0:0,3:a:0:0"), False),
        ("2,3", index(1, "3:a:0:0,2:a:0:0"), True),
        ("2,3", index(1, "2:a:0:0"), False),
        ("2", index(1, "2:a:0:0", predicate="x"), False),
        ("2", index(1, "2:a:0:0", valid=False), False),
        ("2", index(1, "2:a:0:0", table=9), False),
        ("2", index(1, "2:a:0:0", method="hash"), True),
        ("2", index(1, "2:a:0:0,3:a:0:0", method="gin"), False),
    ],
)
def test_whether_an_index_serves_a_foreign_key(numbers, found, rests):
    assert rests_on_index({"table_oid": 1, "numbers": numbers}, [found]) is rests


def test_islands_are_what_foreign_keys_join():
    found = islands([(1, 2), (3, 2), (4, 5), (6, 6)])
    assert sorted(map(sorted, found)) == [[1, 2, 3], [4, 5], [6]]
    assert islands([]) == []
    assert [sorted(one) for one in islands([(1, 2), (3, 4), (2, 3)])] == [[1, 2, 3, 4]]
