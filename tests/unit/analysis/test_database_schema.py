"""From stored rows of tables and foreign keys to what a report says of them."""

from __future__ import annotations

import pytest

from uncork.analysis.database.schema import MOST_TABLES, schema_facts
from uncork.model.tables.register import TABLES
from uncork.store.tables import rows_table

SERVER = {"block_size": 8192, "database": "shop"}


def row(table, **facts):
    return {**{column.name: None for column in TABLES[table].columns}, **facts}


def table(oid, size, **facts):
    known = {
        "oid": oid,
        "schema": "public",
        "name": f"t{oid}",
        "kind": "table",
        "bytes": size,
        "fillfactor": 100,
    }
    return row("database_relations", **{**known, **facts})


def key(oid, one, other):
    facts = {"name": f"k{oid}", "table_oid": one, "referred_oid": other, "columns": "a", "numbers": "1"}
    return row("database_foreign_keys", oid=oid, **facts)


def facts(tables, keys=()):
    after = {"database_relations": ([], tables), "database_indexes": ([], []), "database_counters": ([], [])}
    return schema_facts(after, {"database_foreign_keys": rows_table("database_foreign_keys", keys)}, SERVER)


def test_the_largest_tables_are_told_and_all_of_an_island():
    tables = [table(oid, 1_000 + oid) for oid in range(MOST_TABLES + 10)]
    found = facts(tables, [key(1, 0, 1)])
    assert len(found["tables"]) == MOST_TABLES and found["tables_more"] == 10
    told = [one.oid for one in found["tables"]]
    assert told == sorted(told, reverse=True) and {0, 1} < set(told)
    (island,) = found["islands"]
    assert island.tables == ("t1", "t0")


def test_partitions_count_for_the_table_that_they_are_of():
    tables = [
        table(1, None, kind="partitioned table"),
        table(2, 700, partition_of=1),
        table(3, 300, partition_of=1),
        table(4, 50),
    ]
    found = facts(tables, [key(1, 4, 1)])
    (island,) = found["islands"]
    assert (island.tables, island.bytes) == (("t1", "t4"), 1_050)
    assert {one.name: one.bytes for one in found["tables"]}["t1"] == 1_000


def test_a_table_of_another_schema_is_told_by_both_names():
    (one,) = facts([table(1, 5, schema="clair")])["tables"]
    assert one.name == "clair.t1"


def test_a_key_to_a_table_that_is_not_seen_makes_no_island():
    found = facts([table(1, 5)], [key(1, 1, 99)])
    assert found["islands"] == () and found["foreign_keys"][0].referred == ""


def test_many_tables_and_foreign_keys_take_time_in_proportion():
    """Checked against a count of steps, not a clock: each foreign key sees the indexes of its table alone."""
    tables = [table(oid, 1) for oid in range(2_000)]
    index = {
        "method": "btree",
        "valid": True,
        "predicate": "",
        "expressions": "",
        "included": "",
        "name": "i",
    }
    indexes = [
        Counted(row("database_indexes", oid=9_000 + n, table_oid=n, schema="public", keys="1:0:0:0", **index))
        for n in range(2_000)
    ]
    moments = {
        "database_relations": ([], tables),
        "database_indexes": ([], indexes),
        "database_counters": ([], []),
    }
    keys = [key(n, n, n - 1) for n in range(1, 2_000)]
    found = schema_facts(
        moments, {"database_foreign_keys": rows_table("database_foreign_keys", keys)}, SERVER
    )
    assert all(one.indexed for one in found["foreign_keys"]) and len(found["islands"]) == 1
    assert max(one.reads for one in indexes) < 100


class Counted(dict):
    """A row that counts how often it is read."""

    reads = 0

    def __getitem__(self, name):
        self.reads += 1
        return super().__getitem__(name)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"distinct_values": 50.0, "null_share": 0.1, "top_share": 0.2}, (18.0, 200.0)),
        ({"distinct_values": -0.5, "null_share": 0.0, "top_share": 0.001}, (2.0, 2.0)),
        ({"distinct_values": -1.0, "null_share": 0.0, "top_share": None}, (1.0, None)),
        ({"distinct_values": 0.0, "null_share": 1.0, "top_share": None}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_rows_that_refer_to_one_row_are_estimated(found, expected):
    own = {**key(1, 2, 1), **found}
    (one,) = facts([table(1, 100, rows=60), table(2, 100, rows=1_000)], [own])["foreign_keys"]
    assert (one.rows_each, one.most_each) == pytest.approx(expected) if expected[0] else expected


def test_a_table_that_was_never_analysed_has_no_estimate():
    own = {**key(1, 2, 1), "distinct_values": 50.0}
    (one,) = facts([table(1, 100, rows=None), table(2, 100, rows=None)], [own])["foreign_keys"]
    assert one.rows_each is None
