"""Write every entry of logs as Parquet: one file for each scanning thread, and the names of their numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from uncork.errors import StoreError

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

_RISING = frozenset({"time", "offset"})
"""Columns that hardly fall from row to row: their differences are small."""
_VARIED = frozenset({"duration_us", "parameters", "message", "detail", "plan"})
"""Columns whose values hardly repeat. On a log of 200 MB, both sets save a fifth of the writer's processor
time and 30 % of the bytes, compared with a dictionary for every column."""


class EventFiles:
    """The files of events in an empty folder. pyarrow is imported when the first file begins."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, part: int, empty: object) -> EventFile:
        """Begin the file of one part. Its tables have the columns of `empty`, any Arrow table.

        Raises StoreError if the file cannot be created.
        """
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415 -- slow to load, and needed only with --events

        with _write_errors(self.folder):
            schema = pa.table(empty).schema
            writer = pq.ParquetWriter(
                self.folder / f"events-{part}.parquet",
                schema,
                compression="zstd",
                compression_level=1,
                column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
                use_dictionary=[name for name in schema.names if name not in _RISING | _VARIED],
            )
            return EventFile(self.folder, writer)

    def write_names(self, statements: pa.Table, files: Sequence[str]) -> None:
        """Write the tables that give the numbers in events their names: statement templates and files.

        Raises StoreError if the disk is full or the folder cannot be written.
        """
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415 -- see create

        numbers = pa.array(range(len(files)), pa.uint32())
        with _write_errors(self.folder):
            pq.write_table(statements, self.folder / "statements.parquet")
            pq.write_table(
                pa.table({"file": numbers, "name": pa.array(files, pa.string())}),
                self.folder / "files.parquet",
            )


class EventFile:
    """The file of one part. A thread of the core calls it, one call for each row group."""

    def __init__(self, folder: Path, writer: pq.ParquetWriter) -> None:
        self._folder, self._writer = folder, writer

    def write(self, table: object) -> None:
        """Write an Arrow table as one row group.

        Raises StoreError if it cannot be written. Then the file is closed, incomplete.
        """
        import pyarrow as pa  # noqa: PLC0415

        rows = pa.table(table)
        if not rows.num_rows:
            return
        with _write_errors(self._folder):
            try:
                self._writer.write_table(rows, row_group_size=rows.num_rows)
            except OSError:
                self._abandon()
                raise

    def close(self) -> None:
        """Complete the file. Raises StoreError if it cannot be completed."""
        with _write_errors(self._folder):
            try:
                self._writer.close()
            except OSError:
                self._abandon()
                raise

    def _abandon(self) -> None:
        """Close the file as it is. Otherwise pyarrow would try to complete it later, and print its error."""
        with suppress(OSError):
            self._writer.close()
        self._writer.is_open = False


@contextmanager
def _write_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # pyarrow puts words of its own around the system's.
        reason = os.strerror(error.errno) if error.errno else error
        raise StoreError(
            f"cannot write events into {folder}: {reason}; name another folder with --events"
        ) from error
