"""Append rows to the tables of a run, atomically."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.model.tables.register import SCHEMA_VERSION, TABLES, Table
from uncork.store.layout import write_atomically

_ARROW = {
    "text": pa.string(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "flag": pa.bool_(),
    "bytes": pa.binary(),
    "time": pa.timestamp("us"),
}


def arrow_schema(table: Table) -> pa.Schema:
    """Return the Arrow schema of a stored table, with units and meanings as metadata."""
    columns = [
        pa.field(
            column.name,
            _ARROW[column.type],
            nullable=column.name not in table.key,
            metadata={"unit": column.unit, "meaning": column.meaning},
        )
        for column in table.columns
    ]
    return pa.schema(columns, metadata={"uncork.table": table.name, "uncork.schema": str(SCHEMA_VERSION)})


def row_of(name: str, *sources: object, **given: object) -> dict[str, Any]:
    """Return a row of a table: the values `given`, and the attributes of `sources` that have a column.

    Columns that neither has are left out.
    """
    columns = [column.name for column in TABLES[name].columns]
    own = {
        column: getattr(source, column) for source in sources for column in columns if hasattr(source, column)
    }
    return {**own, **given}


def append_rows(run: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Append rows to a table of a run, atomically.

    Raises StoreError if the disk is full or the folder cannot be written.
    """
    append_table(run, name, pa.Table.from_pylist(list(rows), schema=arrow_schema(TABLES[name])))


def append_table(run: Path, name: str, table: pa.Table) -> None:
    """Append an Arrow table to a table of a run, atomically; cast its columns to the stored types.

    Raises StoreError if the disk is full or the folder cannot be written.
    """
    table = table.select([column.name for column in TABLES[name].columns])
    table = table.cast(arrow_schema(TABLES[name]))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd")
    folder = run / name
    last = max((int(path.stem) for path in folder.glob("*.parquet")), default=0)
    write_atomically(folder / f"{last + 1:06d}.parquet", buffer.getvalue())
