"""Rows that share the names of their columns."""

import pytest

from uncork.model.tables.rows import Rows


def test_a_row_is_a_mapping_from_names_to_values() -> None:
    (row,) = Rows(("oid", "name"), [(1, "item")])
    assert row["name"] == "item"
    assert dict(row) == {**row} == {"oid": 1, "name": "item"}
    assert row.get("size", 0) == 0
    with pytest.raises(KeyError):
        row["size"]


def test_rows_are_a_sequence_with_columns() -> None:
    rows = Rows(("oid", "name"), [(1, "item"), (2, "orders")])
    assert (len(rows), rows[1]["name"], [row["oid"] for row in rows[:1]]) == (2, "orders", [1])
    assert rows.column("name") == ["item", "orders"]
    assert rows.column("size") == [None, None]


def test_further_columns_come_in_the_order_of_the_rows() -> None:
    rows = Rows(("oid",), [(1,), (2,)])
    rows.add_columns(("size", "width"), [(8, 0.5), (9, None)])
    assert [dict(row) for row in rows] == [
        {"oid": 1, "size": 8, "width": 0.5},
        {"oid": 2, "size": 9, "width": None},
    ]
    with pytest.raises(ValueError, match="1 values for 2 rows"):
        rows.add_columns(("more",), [(1,)])
    assert rows.names == ("oid", "size", "width")
