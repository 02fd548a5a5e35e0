"""Read the small tables of a run without DuckDB, whose connection takes ten times as long as reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.errors import StoreError
from uncork.model.tables.table import StoredRow

Row = TypeVar("Row", bound=StoredRow)


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
