"""Append rows and tables to a run, atomically, and read them back without a connection to DuckDB."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.errors import StoreError
from uncork.model.tables.register import SCHEMA_VERSION, TABLES, Table
from uncork.model.tables.rows import Rows
from uncork.model.tables.table import StoredRow
from uncork.store.layout import write_atomically
from uncork.store.remote.mirrors import fetch

Row = TypeVar("Row", bound=StoredRow)

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


def read_rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """Return all rows of a table of a run, in the order they were stored.

    Raises StoreError if a file is damaged.
    """
    rows: list[dict[str, Any]] = []
    try:
        for path in sorted((folder / name).glob("*.parquet")):
            with pq.ParquetFile(path) as file:
                rows += file.read(use_threads=False).to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{folder}: damaged: {error}") from error
    return rows


def typed_rows(table: pa.Table, kind: type[Row]) -> list[Row]:
    """Return the rows of an Arrow table, which has all columns of `kind`."""
    return list(map(kind, *(table[name].to_pylist() for name in kind.__annotations__)))


# ---- the facts and tables of a profile: of a log, a server or stacks ----


def rows_table(name: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Build a stored table from rows; ignore keys that have no column."""
    if isinstance(rows, Rows):
        schema = arrow_schema(TABLES[name])
        return pa.table([pa.array(rows.column(one.name), one.type) for one in schema], schema=schema)
    return pa.Table.from_pylist(list(rows), schema=arrow_schema(TABLES[name]))


def release_memory() -> None:
    """Return to the system what Arrow keeps of tables that are gone; of a large catalogue it is 70 MiB."""
    pa.default_memory_pool().release_unused()


def write_evidence(folder: Path, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
    """Write facts and tables. Facts are written last, so they exist only with all the tables.

    Raises StoreError if the disk is full or the folder cannot be written.
    """
    for name, table in tables.items():
        append_table(folder, name, table)
    write_atomically(folder / "facts.json", json.dumps(facts, ensure_ascii=False, indent=1) + "\n")


def read_evidence(folder: Path, described: Iterable[Table]) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """Return the facts and tables of a stored run.

    Raises StoreError if its files are damaged, or the run has no result.
    """
    for error in fetch([folder]):
        raise error
    path = folder / "facts.json"
    if not path.is_file():
        raise StoreError(f"run {folder.name} has no result: it is running, or was killed before its end")
    try:
        facts = json.loads(path.read_text())
        tables = {table.name: _read(folder, table) for table in described}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{folder}: damaged: {error}") from error
    return facts, tables


def _read(folder: Path, table: Table) -> pa.Table:
    schema = arrow_schema(table)
    files = sorted((folder / table.name).glob("*.parquet"))
    return pq.read_table(files[-1], schema=schema) if files else schema.empty_table()
