from __future__ import annotations

from dataclasses import asdict, fields, replace
from typing import Literal

import pyarrow as pa
import pytest

from uncork.model.tables.table import Column, StoredRow, column, table_of
from uncork.store.tables import typed_rows


class ExampleRow(StoredRow):
    """Examples.

    They are few.
    """

    number: int = column("place")
    kind: Literal["first", "last"] = column("which one")
    sum_us: int | None = column("duration", "µs")


EXAMPLES = table_of("examples", ExampleRow, "number", "kind")


def test_a_class_of_rows_declares_a_table():
    assert EXAMPLES.key == ("number", "kind")
    assert EXAMPLES.meaning == "Examples. They are few."
    assert EXAMPLES.columns == (
        Column("number", "integer", "", "place"),
        Column("kind", "text", "", "which one"),
        Column("sum_us", "integer", "µs", "duration"),
    )


def test_rows_of_an_arrow_table_have_its_values_whatever_the_order_of_its_columns():
    table = pa.table({"more": [0, 0], "sum_us": [5, None], "number": [1, 2], "kind": ["first", "last"]})
    first, last = typed_rows(table, ExampleRow)
    assert (first.number, first.kind, first.sum_us) == (1, "first", 5)
    assert (last.number, last.kind, last.sum_us) == (2, "last", None)


def test_a_row_is_a_dataclass_without_default_values():
    row = ExampleRow(1, "first", sum_us=5)
    assert replace(row, number=2).number == 2
    with pytest.raises(TypeError, match="sum_us"):
        ExampleRow(1, "first")


def test_a_column_that_a_table_lacks_is_an_error():
    with pytest.raises(KeyError, match="sum_us"):
        typed_rows(pa.table({"number": [1], "kind": ["first"]}), ExampleRow)


class NestedRow(StoredRow):
    """Rows with defaults."""

    started: int = column("operations")
    late: int = column("of them, late", default=0)
    errors: dict[str, int] = column("errors, as JSON", default_factory=dict)


NESTED = table_of("nested", NestedRow, "started")


def test_the_fields_of_a_class_are_known_before_its_first_row():
    assert [field.name for field in fields(NestedRow)] == ["started", "late", "errors"]


def test_columns_may_have_default_values_and_types_that_are_stored_as_text():
    assert asdict(NestedRow(2)) == {"started": 2, "late": 0, "errors": {}}
    assert NestedRow(2).errors is not NestedRow(2).errors
    assert NestedRow(2) == NestedRow(2, 0, {}) != NestedRow(3)
    assert [column.type for column in NESTED.columns] == ["integer", "integer", "text"]
