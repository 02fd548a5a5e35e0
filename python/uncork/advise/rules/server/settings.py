"""The server's settings and counters, and settings that fit neither the machine nor the data. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import format_bytes

# ---- growth of the server's counters, and sizes among its settings ----


_SIZE: Final = re.compile(r"(\d+)\s*(B|kB|MB|GB|TB)")
_UNITS: Final = {"B": 1, "kB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
"""PostgreSQL's units of memory are powers of 1024."""


def grown(evidence: Evidence, *names: str) -> float:
    """Return how much counters grew during the watch, summed over names and objects; 0 if unknown."""
    counters = () if evidence.database is None else evidence.database.counters
    return sum(counter.delta for counter in counters if counter.counter in names)


def wal_writes(evidence: Evidence) -> float:
    """Return how often the server wrote WAL to its files; 0 if unknown."""
    return grown(evidence, "wal_write") or _wal_io(evidence, "writes")


def wal_flushes(evidence: Evidence) -> float:
    """Return how often the server flushed WAL to disk; 0 if unknown."""
    return grown(evidence, "wal_sync") or _wal_io(evidence, "fsyncs")


def _wal_io(evidence: Evidence, name: str) -> float:
    """Return a counter of WAL in pg_stat_io, which replaces those of pg_stat_wal from PostgreSQL 18 on."""
    counters = () if evidence.database is None else evidence.database.counters
    return sum(
        counter.delta
        for counter in counters
        if counter.view == "pg_stat_io" and counter.counter == name and ", wal, normal" in counter.object
    )


def setting(name: str, evidence: Evidence) -> str:
    """Return the value of a setting of the server; an empty string if it is unknown."""
    settings = () if evidence.database is None else evidence.database.settings
    return evidence.catalogue.setting(name) or next((one.value for one in settings if one.name == name), "")


def setting_bytes(name: str, evidence: Evidence) -> int | None:
    """Return a size among the server's settings in bytes; None if it is unknown."""
    match = _SIZE.fullmatch(setting(name, evidence).strip())
    return None if match is None else int(match[1]) * _UNITS[match[2]]


def size_text(size: int) -> str:
    """Return a size as PostgreSQL writes it in settings: ``32kB``, ``128MB``, ``4GB``."""
    whole = [unit for unit in ("GB", "MB") if size and size % _UNITS[unit] == 0]
    unit = whole[0] if whole else "kB"
    return f"{size // _UNITS[unit]}{unit}"


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
        if setting(name, evidence) != "off":
            continue
        yield Finding(
            CRASH_UNSAFE.name,
            f"Setting {name} is off, so a crash of the machine can corrupt the database",
            objects=(name,),
            bill=None,
            cost="the data, after a crash of the machine",
            evidence=(risk,),
            candidates=(
                Candidate(
                    "setting",
                    f"Turn {name} on, unless all data can be loaded again.",
                    sql=f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf();",
                    undo=f"ALTER SYSTEM SET {name} = off; SELECT pg_reload_conf();",
                    against=(
                        "Writing becomes slower. synchronous_commit = off is nearly as fast, and safe.",
                    ),
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
    memory, now = evidence.catalogue.memory_bytes, setting_bytes("shared_buffers", evidence)
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
    yield Finding(
        SHARED_BUFFERS.name,
        f"Shared buffers of {size_text(now)} are too small for tables that statements read repeatedly",
        objects=("shared_buffers",),
        bill=evidence.bill(lambda piece: part if piece.template in numbers and _reads(piece) else 0.0),
        templates=tuple(reader.number for reader in readers),
        statement=readers[0].text,
        evidence=(
            f"The statements read {format_bytes(read)} from outside shared buffers; their tables and indexes "
            f"have {format_bytes(size)}.",
            f"The server can use {format_bytes(memory)} of memory.",
        ),
        candidates=(
            Candidate(
                "setting",
                "Give shared buffers a quarter of the memory, and restart the server.",
                sql=f"ALTER SYSTEM SET shared_buffers = '{size_text(wanted)}';",
                undo=f"ALTER SYSTEM SET shared_buffers = '{size_text(now)}';",
                against=(
                    "The setting takes effect only after a restart.",
                    "Other programs on the machine, and work_mem of many sessions, need memory too.",
                ),
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
