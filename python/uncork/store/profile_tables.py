"""Store and read the facts and tables of a profile: of a log, a server or stacks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.errors import StoreError
from uncork.model.tables.register import TABLES
from uncork.model.tables.rows import Rows
from uncork.model.tables.table import Table
from uncork.store.append import append_table, arrow_schema
from uncork.store.layout import write_atomically
from uncork.store.remote.mirrors import fetch


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
