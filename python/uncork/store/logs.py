"""Write the names behind the numbers in stored log entries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from uncork.errors import StoreError

__all__ = ["write_event_names"]


def write_event_names(folder: Path, statements: pa.Table, files: Sequence[str]) -> None:
    """Write the tables that give the numbers in events their names: statement templates and files.

    Raises:
        StoreError: if the disk is full or the folder cannot be written.
    """
    named = pa.table({"file": pa.array(range(len(files)), pa.uint32()), "name": pa.array(files, pa.string())})
    try:
        pq.write_table(statements, folder / "statements.parquet")
        pq.write_table(named, folder / "files.parquet")
    except OSError as error:
        raise StoreError(f"cannot write events into {folder}: {error.strerror or error}") from error
