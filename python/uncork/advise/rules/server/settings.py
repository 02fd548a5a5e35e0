"""Settings of the server that risk the data, or do not fit the machine. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.changes import Setting, size_text
from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.model.database.finding import Finding
from uncork.model.database.names import literal
from uncork.model.units import format_bytes

# ---- settings with which a crash of the machine can destroy the data ----


_RISKS: Final = {
    "fsync": ("PostgreSQL does not wait until the disk has what it writes, not even for checkpoints.", ""),
    "full_page_writes": (
        "A page that a crash leaves half written cannot be repaired from the WAL.",
        "File systems that never write half a page, such as ZFS, do not need it.",
    ),
}
"""What each setting risks if it is off, and what speaks against the finding."""


def _find_crash_unsafe(evidence: Evidence) -> Iterator[Finding]:
    for name, (risk, unless) in _RISKS.items():
        if evidence.setting(name) != "off":
            continue
        yield CRASH_UNSAFE.finding(
            f"Setting {name} is off, so a crash of the machine can corrupt the database",
            objects=(name,),
            bill=None,
            cost="the data, after a crash of the machine",
            evidence=(risk,),
            candidates=(
                Setting(name, "on", "off").candidate(
                    f"Turn {name} on, unless all data can be loaded again.",
                    "Writing becomes slower. synchronous_commit = off is nearly as fast, and safe.",
                ),
            ),
            against=(unless,) if unless else (),
            proof=f"SHOW {name};",
        )


CRASH_UNSAFE: Final = Rule("crash-unsafe", _find_crash_unsafe)


# ---- reads of blocks that shared buffers could hold, on a server with much more memory ----


_PART: Final = 4
"""The proposed size is memory divided by this: the starting point in PostgreSQL's manual (shared_buffers)."""
_SMALL: Final = 2.0
"""How many times as large as the present size the proposed one must be: a change needs a restart."""
_AGAIN: Final = 2.0
"""Bytes read during the watch, as a multiple of the tables' size, from which on the same blocks were read
again and again, and not once by a server that has just started."""
_RING: Final = 0.25
"""A sequential scan of a table larger than this fraction of shared buffers uses a small ring of buffers, so
that it never stays in them (see the README of src/backend/storage/buffer)."""


def _find_shared_buffers(evidence: Evidence) -> Iterator[Finding]:
    memory, now = evidence.catalogue.memory_bytes, evidence.setting_bytes("shared_buffers")
    if memory is None or now is None or evidence.database is None:
        return
    wanted = _rounded(memory // _PART)
    readers = [
        statement
        for statement in evidence.costliest()
        if statement.blocks_read and evidence.is_traffic(statement) and statement.shape is not None
    ]
    read = evidence.database.block_bytes * sum(reader.blocks_read or 0 for reader in readers)
    names = {use.name for reader in readers if reader.shape is not None for use in reader.shape.tables}
    tables = [evidence.tables[name] for name in names if name in evidence.tables]
    size = sum((table.bytes or 0) + table.index_bytes for table in tables)
    largest = max((table.bytes or 0 for table in tables), default=0)
    if wanted < _SMALL * now or not size or size > wanted or read < _AGAIN * size or size <= now:
        return
    if largest > _RING * wanted and any(table.whole_reads for table in tables):
        return
    part = 1 - size / read
    numbers = {reader.number for reader in readers}
    more = Setting("shared_buffers", literal(size_text(wanted)), literal(size_text(now)), restart=True)
    yield SHARED_BUFFERS.finding(
        f"Shared buffers of {size_text(now)} are too small for tables that statements read repeatedly",
        objects=("shared_buffers",),
        bill=evidence.bill(lambda piece: part if piece.template in numbers and _reads(piece) else 0.0),
        statements=readers,
        evidence=(
            f"The statements read {format_bytes(read)} from outside shared buffers; their tables and indexes "
            f"have {format_bytes(size)}.",
            f"The server can use {format_bytes(memory)} of memory.",
        ),
        candidates=(
            more.candidate(
                "Give shared buffers a quarter of the memory, and restart the server.",
                "The setting takes effect only after a restart.",
                "Other programs on the machine, and work_mem of many sessions, need memory too.",
            ),
        ),
        proof="Compare both settings with uncork run, after the tables were read once.",
    )


def _reads(piece: Piece) -> bool:
    """Return whether a piece of time is spent reading blocks of tables and indexes."""
    return piece.wait_class == "IO" and piece.wait_event in ("DataFileRead", "AioIoCompletion")


def _rounded(size: int) -> int:
    """Return a size rounded down to whole GB, or to 128 MB below 1 GB."""
    unit = 1 << 30 if size >= 1 << 30 else 128 << 20
    return size // unit * unit


SHARED_BUFFERS: Final = Rule("shared-buffers", _find_shared_buffers, depth=0)
