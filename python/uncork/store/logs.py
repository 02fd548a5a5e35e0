"""The run of a log on disk: write what it tells, read it back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.errors import StoreError
from uncork.model.log_tables import LOG_TABLES
from uncork.store.layout import write_atomically
from uncork.store.write import append_table, arrow_schema

__all__ = ["read_log_run", "write_event_names", "write_log_run"]


def write_log_run(folder: Path, facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> None:
    """Write what a log tells. Facts go last: they are there only with all the tables.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    for name, table in tables.items():
        append_table(folder, name, table)
    write_atomically(folder / "facts.json", json.dumps(facts, ensure_ascii=False, indent=1) + "\n")


def write_event_names(folder: Path, statements: pa.Table, files: Sequence[str]) -> None:
    """Write beside events what their numbers mean: statements' templates and the names of files.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    named = pa.table({"file": pa.array(range(len(files)), pa.uint32()), "name": pa.array(files, pa.string())})
    try:
        pq.write_table(statements, folder / "statements.parquet")
        pq.write_table(named, folder / "files.parquet")
    except OSError as error:
        raise StoreError(f"cannot write events into {folder}: {error.strerror or error}") from error


def read_log_run(folder: Path) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """Return the facts and tables of a stored log.

    Raises:
        StoreError: if its files are damaged, or it has no result.
    """
    path = folder / "facts.json"
    if not path.is_file():
        raise StoreError(f"run {folder.name} holds no result: it was killed before its end")
    try:
        facts = json.loads(path.read_text())
        tables = {table.name: _read(folder, table.name) for table in LOG_TABLES}
    except (OSError, ValueError, pa.ArrowException) as error:
        raise StoreError(f"{folder}: damaged: {error}") from error
    return facts, tables


def _read(folder: Path, name: str) -> pa.Table:
    schema = next(arrow_schema(table) for table in LOG_TABLES if table.name == name)
    files = sorted((folder / name).glob("*.parquet"))
    return pq.read_table(files[-1], schema=schema) if files else schema.empty_table()
