"""Which tables of a database the watch saw used."""

from __future__ import annotations

from uncork.profile.used_tables import MOST_TABLES, used_tables, words_of

COUNTERS = (
    "heap_read",
    "heap_hit",
    "seq_scans",
    "index_scans",
    "index_rows",
    "inserted",
    "updated",
    "deleted",
)


def table(oid, name=None, parent=None, **counters):
    row = {"oid": oid, "name": name or f"t{oid}", "partition_of": parent, **dict.fromkeys(COUNTERS)}
    return {**row, **counters}


def key(one, other):
    return {"table_oid": one, "referred_oid": other}


def oids(used):
    return [row["oid"] for row in used.rows]


def test_words_are_identifiers_in_lower_case_unless_quoted():
    found = words_of(['SELECT * FROM Orders, "Shop"."a ""b""" WHERE été = 1', "TRUNCATE line$2"])
    assert {"orders", "Shop", 'a "b"', "été", "line$2"} <= set(found)
    assert "1" not in found


def test_the_busiest_tables_come_first_then_named_ones_then_their_neighbours():
    before = [table(1, heap_hit=5), table(2, heap_hit=5), table(3, heap_hit=5), table(4), table(5), table(6)]
    after = [table(1, heap_hit=6), table(2, heap_hit=50), table(3, heap_hit=5), table(4), table(5), table(6)]
    used = used_tables(before, after, [key(5, 2), key(6, 5), key(1, 99)], ["t4", "t1"])
    assert oids(used) == [2, 1, 4, 5] and used.more == 0


def test_a_table_whose_counters_were_reset_was_used():
    used = used_tables([table(1, heap_hit=500)], [table(1, heap_hit=3)], [], [])
    assert oids(used) == [1]


def test_a_used_partition_brings_the_partitioned_table():
    after = [table(1), table(2, parent=1), table(3, parent=2, inserted=4), table(4, inserted=5)]
    assert oids(used_tables([], after, [], [])) == [4, 1, 2, 3]


def test_a_name_selects_the_active_table_of_many_schemas():
    after = [table(n, "orders", heap_hit=int(n == 7)) for n in range(10)]
    before = [table(n, "orders", heap_hit=0) for n in range(10)]
    assert oids(used_tables(before, after, [], ["orders"])) == [7]


def test_without_earlier_counters_only_names_tell():
    assert oids(used_tables([], [table(1, heap_hit=9), table(2)], [], ["t2"], read=False)) == [2]


def test_the_least_used_tables_are_left_out_and_counted():
    after = [table(oid, inserted=oid) for oid in range(1, MOST_TABLES + 11)]
    used = used_tables([], after, [], [])
    assert oids(used)[0] == MOST_TABLES + 10 and len(used.rows) == MOST_TABLES and used.more == 10
