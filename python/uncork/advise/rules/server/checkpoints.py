"""Checkpoints that the amount of WAL forces, which repeat full-page images. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.server.counted import grown, setting_bytes, size_text
from uncork.advise.servers import on_servers
from uncork.advise.wal_volume import part_of_volume
from uncork.model.database.finding import Candidate, Finding
from uncork.model.results.log import LogResult
from uncork.model.results.log_activity import CheckpointWork
from uncork.model.units import format_bytes, format_duration

_EARLY: Final = 3
"""Checkpoints forced within one watch. CREATE DATABASE, a backup or a person may also request one."""
_PART: Final = 0.25
"""WAL between two of them as a fraction of max_wal_size. WAL forces a checkpoint at about half of it, so with
less WAL something else requested the checkpoint."""
_FULL_PAGES: Final = 0.5
"""Fraction of the WAL that is full-page images, which rarer checkpoints avoid."""
_DEFAULT_WAL: Final = 1 << 30
_TIMES: Final = 4
"""How many times as much WAL is proposed: checkpoints become so much rarer."""
_OFTEN_S: Final = 300.0
"""Seconds between two forced checkpoints of a log below which they come too often: checkpoint_timeout."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    if evidence.database is None:
        if evidence.log is not None:
            yield from _in_log(evidence.log)
        return
    limit = setting_bytes("max_wal_size", evidence) or _DEFAULT_WAL
    forced, wal_bytes = grown(evidence, "checkpoints_req", "num_requested"), grown(evidence, "wal_bytes")
    full = min(grown(evidence, "wal_fpi") * evidence.database.block_bytes, wal_bytes)
    if forced < _EARLY or wal_bytes < _PART * limit * forced or full < _FULL_PAGES * wal_bytes:
        return
    # An image follows a checkpoint, so with rarer checkpoints most of this part of the WAL is not written.
    saved = (1 - 1 / _TIMES) * full
    part = min(saved / wal_bytes, part_of_volume(saved, evidence))
    bill = evidence.bill(lambda piece: part if piece.waits_for_wal else 0.0)
    yield Finding(
        RULE.name,
        f"WAL beyond max_wal_size ({size_text(limit)}) forced {round(forced)} checkpoints, so most of it is "
        "full-page images",
        objects=("max_wal_size",),
        bill=bill if worth(bill) else None,
        cost=f"{format_bytes(full)} of WAL",
        evidence=(
            f"{format_bytes(full)} of the {format_bytes(wal_bytes)} of WAL are full-page images: after a "
            "checkpoint, the first change of each page writes the whole page.",
        ),
        candidates=(_candidate(limit),),
        proof="Compare both settings with uncork run; trials must be longer than checkpoint_timeout.",
    )


def _candidate(limit: int | None) -> Candidate:
    size = _TIMES * (limit or _DEFAULT_WAL) >> 20
    return Candidate(
        "setting",
        "Raise max_wal_size, and again until checkpoint_timeout triggers checkpoints, not the amount of WAL.",
        sql=f"ALTER SYSTEM SET max_wal_size = '{size}MB'; SELECT pg_reload_conf();",
        undo=f"ALTER SYSTEM SET max_wal_size = '{limit >> 20}MB'; SELECT pg_reload_conf();"
        if limit
        else "ALTER SYSTEM RESET max_wal_size; SELECT pg_reload_conf();",
        against=("Recovery after a crash takes longer, and pg_wal needs the space.",),
    )


def _in_log(log: LogResult) -> Iterator[Finding]:
    """Yield the finding from a log alone, which does not show how much time sessions lose."""
    seconds = 0.0 if log.first_us is None or log.last_us is None else (log.last_us - log.first_us) / 1e6
    works = [(server.name, server.checkpoint_work) for server in log.servers] or [
        ("", log.server.checkpoint_work)
    ]
    early = [(name, work) for name, work in works if work is not None and _is_early(work, seconds)]
    if not early:
        return
    (name, work), *others = sorted(early, key=lambda one: -one[1].wal)
    on = f" on server {name}" if log.servers else ""
    each = format_duration(1e9 * seconds / work.wal)
    also = f"The same happened{on_servers(Counter(name for name, _ in others))}."
    yield Finding(
        RULE.name,
        f"The amount of WAL (max_wal_size) forced {work.wal} checkpoints{on}, one every {each}",
        objects=("max_wal_size",),
        bill=None,
        cost=f"{format_bytes(work.distance_bytes)} of WAL for each checkpoint",
        evidence=(
            f"checkpoint_timeout started only {work.timed} of them. After each checkpoint, the first change "
            "of each page writes the whole page to the WAL.",
            *((also,) if others else ()),
        ),
        candidates=(_candidate(None),),
        proof="Compare both settings with uncork run; trials must be longer than checkpoint_timeout.",
    )


def _is_early(work: CheckpointWork, seconds: float) -> bool:
    """Return whether WAL forces most checkpoints of a server, more often than checkpoint_timeout would."""
    return work.wal >= _EARLY and work.wal > work.timed and seconds < _OFTEN_S * work.wal


RULE: Final = Rule("checkpoints", _find)
