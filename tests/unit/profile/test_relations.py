"""Indexes not worth their upkeep, bloat, foreign keys without index, islands."""

import pytest

from uncork.profile.relations import index_bloat, index_doubts, islands, rests_on_index, table_bloat

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
    ("rows", "doubts"),
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
def test_which_indexes_are_in_doubt_and_why(rows, doubts):
    found = index_doubts(rows)
    assert {oid: doubt for oid, doubt in found.items() if doubt[0]} == doubts


def table(rows, width, pages, **facts):
    return {"rows": rows, "row_width": width, "main_bytes": pages * BLOCK, "fillfactor": 100, **facts}


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
    row = {"method": "btree", "rows": 360_000, "key_width": 8.0, "fillfactor": 90, "bytes": 2_000 * BLOCK}
    assert index_bloat(row, BLOCK) == pytest.approx(1_000 * BLOCK, rel=0.05)
    assert index_bloat({**row, "bytes": 1_000 * BLOCK}, BLOCK) == 0
    assert index_bloat({**row, "method": "gin"}, BLOCK) is None


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
