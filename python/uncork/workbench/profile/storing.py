"""Store what was observed on a system in its run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from uncork.workbench.signals import uninterrupted

if TYPE_CHECKING:
    import pyarrow as pa

    from uncork.model.stored_run import RunStatus
    from uncork.store.layout import Manifest
    from uncork.workbench.run_record import RunRecord

R = TypeVar("R")


def store_evidence(
    record: RunRecord,
    status: RunStatus,
    elapsed_ns: int,
    facts: Mapping[str, Any],
    tables: Mapping[str, pa.Table],
    result: Callable[[Manifest], R],
    files: Mapping[str, bytes] = MappingProxyType({}),
) -> R:
    """Store what was observed, or nothing; return what `result` makes of the run's final manifest.

    `files` are further contents by their name in the run's folder.

    `result` runs while the tables are written, because writing waits for the disk and mostly
    releases the GIL. Raises StoreError if the run cannot be written.
    """
    from uncork.store.layout import closed, write_atomically  # noqa: PLC0415
    from uncork.store.snapshots import delete_snapshots  # noqa: PLC0415
    from uncork.store.tables import write_evidence  # noqa: PLC0415 -- logs are read while these load

    def write() -> None:
        for name, content in files.items():
            write_atomically(record.folder / name, content)
        # The manifest is written last, so that the run is visible only when it is complete.
        write_evidence(record.folder, facts, tables)
        record.end(status, status, elapsed_ns)
        delete_snapshots(record.folder)

    manifest = closed(record.manifest, status, status, elapsed_ns)
    with record, uninterrupted(), ThreadPoolExecutor(1) as writer:
        written = writer.submit(write)
        found = result(manifest)
        written.result()
    return found
