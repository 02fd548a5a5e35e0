"""Store and read the system sampler's results: one sampling per trial, load or watch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.errors import StoreError
from uncork.model.system import SystemSeries
from uncork.model.tables.register import TABLES
from uncork.model.tables.system import SYSTEM_TABLES
from uncork.store.tables import append_table, arrow_schema

_SAMPLINGS = "system_samplings"


def system_tables(
    seen: Sequence[tuple[Mapping[str, Any], SystemSeries]], first: int = 0
) -> dict[str, pa.Table]:
    """Build the stored tables of samplings, each with the place of its trial, numbered from `first`."""
    tables: dict[str, list[pa.Table]] = {table.name: [] for table in SYSTEM_TABLES}
    rows = []
    for number, (place, series) in enumerate(seen, first):
        facts = series.facts
        rows.append(
            {
                **place,
                **{name: facts[name] for name in ("elapsed_ns", "period_ns", "missed", "own_ns")},
                "sampling": number,
                "begun_us": facts["begun_unix_ns"] // 1000,
                "bounds": json.dumps(facts["bounds"]),
                "lacks": json.dumps(facts["lacks"]),
            }
        )
        for name, table in series.tables.items():
            numbers = pa.array([number] * table.num_rows, pa.int64())
            whole = table.append_column("sampling", numbers)
            schema = arrow_schema(TABLES[name])
            tables[name].append(whole.select(schema.names).cast(schema))
    tables[_SAMPLINGS].append(pa.Table.from_pylist(rows, schema=arrow_schema(TABLES[_SAMPLINGS])))
    return {
        name: pa.concat_tables(parts) if parts else arrow_schema(TABLES[name]).empty_table()
        for name, parts in tables.items()
    }


class SystemWriter:
    """Appends samplings to a run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._next: int | None = None

    def append(self, seen: Sequence[tuple[Mapping[str, Any], SystemSeries]]) -> None:
        """Append samplings. The list of samplings is written last, so each one in it is complete.

        Raises StoreError if the disk is full or the folder cannot be written.
        """
        if not seen:
            return
        if self._next is None:
            self._next = _first_free(self._folder)
        tables = system_tables(seen, self._next)
        self._next += len(seen)
        for name in sorted(tables, key=lambda name: name == _SAMPLINGS):
            if tables[name].num_rows:
                append_table(self._folder, name, tables[name])


def _first_free(folder: Path) -> int:
    """Return the first unused number of a sampling in a run, including incomplete samplings."""
    last = -1
    for table in SYSTEM_TABLES:
        for path in (folder / table.name).glob("*.parquet"):
            numbers = pq.read_table(path, columns=["sampling"])["sampling"].to_pylist()
            last = max(last, *numbers)
    return last + 1


def read_system(folder: Path) -> dict[str, pa.Table]:
    """Return all samplings of a run; tables are empty if nothing was sampled.

    Raises StoreError if the run's files are damaged.
    """
    found = {}
    for table in SYSTEM_TABLES:
        schema = arrow_schema(table)
        files = sorted((folder / table.name).glob("*.parquet"))
        try:
            parts = [pq.read_table(path, schema=schema) for path in files]
        except (OSError, pa.ArrowException) as error:
            raise StoreError(f"{folder}: damaged: {error}") from error
        found[table.name] = pa.concat_tables(parts) if parts else schema.empty_table()
    return found
