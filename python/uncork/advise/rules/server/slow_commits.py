"""Commits that wait unusually long: for a standby server, or for a slow disk. Pure.

That commits wait is no fault: each one waits until its WAL is flushed. A finding needs a mean time per commit
or flush that is far above what disks and networks need.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.advise.rules.server.counted import setting, wal_flushes
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import format_count, format_duration

_SHARE: Final = 0.3
"""Fraction of the busy time that waits must take: sessions always wait for something, and commits that are a
small part are not worth a disk."""
_STANDBY_S: Final = 0.010
"""Mean wait of a commit for a standby: the flush of a disk and the round trip of a network within one region
take less."""
_FLUSH_S: Final = 0.025
"""Mean time of a flush of WAL: a rotating disk takes about 8 ms, network storage up to 10 ms."""
_FLUSHES: Final = 50
_ASYNCHRONOUS: Final = Candidate(
    "setting",
    "Where the last commits may be lost, let sessions not wait: synchronous_commit = off for their role.",
    sql="SET synchronous_commit = off;",
    undo="RESET synchronous_commit;",
    against=("A crash of the server loses the commits of the last moments: a trade of durability for time.",),
)
_FEWER: Final = Candidate(
    "client", "Change several rows in each transaction where the application can: each commit waits once."
)


def _find(evidence: Evidence) -> Iterator[Finding]:
    yield from _standby(evidence)
    yield from _disk(evidence)


def _standby(evidence: Evidence) -> Iterator[Finding]:
    bill = evidence.bill(lambda piece: float(_waits_for_standby(piece)))
    commits = 0.0 if evidence.rates is None else evidence.rates.commits
    if not commits:
        return
    each = bill.seconds_per_hour / 3600.0 / commits
    level = setting("synchronous_commit", evidence)
    applies = level == "remote_apply"
    if each < _STANDBY_S:
        return
    names = setting("synchronous_standby_names", evidence)
    first = (
        Candidate(
            "setting",
            "Let commits wait until the standby has flushed the WAL, not until it has applied it.",
            sql="ALTER SYSTEM SET synchronous_commit = on; SELECT pg_reload_conf();",
            undo="ALTER SYSTEM SET synchronous_commit = remote_apply; SELECT pg_reload_conf();",
            same_answers=False,
            against=("Queries on the standby may not see a commit that the primary has confirmed.",),
        )
        if applies
        else Candidate(
            "maintenance",
            "Find out what delays the standby: its disk, its processors or the network to it.",
            sql="SELECT application_name, write_lag, flush_lag, replay_lag FROM pg_stat_replication;",
        )
    )
    yield Finding(
        RULE.name,
        f"Each commit waits {format_duration(each * 1e9)} for a synchronous standby",
        objects=("synchronous_commit" if applies else "synchronous_standby_names",),
        bill=bill,
        evidence=(
            f"synchronous_commit is {level or 'on'}"
            + (f", synchronous_standby_names is {names}." if names else "."),
        ),
        candidates=(
            first,
            Candidate(
                "setting",
                "With several standby servers, wait for the fastest one: ANY 1 in synchronous_standby_names.",
                against=("After the loss of the primary, the standby with all commits must be found.",),
            ),
            _FEWER,
            _ASYNCHRONOUS,
        ),
        proof="Compare commits with uncork run on a copy with a standby; watch flush_lag and replay_lag.",
    )


def _disk(evidence: Evidence) -> Iterator[Finding]:
    """One session at a time flushes WAL, so the time of sessions that do is the time of all flushes."""
    flushes = wal_flushes(evidence)
    if flushes < _FLUSHES:
        return
    flushing = sum(one.sessions for one in evidence.pieces if _flushes(one)) * evidence.seconds
    each = flushing / flushes
    if each < _FLUSH_S:
        return
    yield Finding(
        RULE.name,
        f"Each flush of the write-ahead log to disk takes {format_duration(each * 1e9)}",
        objects=("pg_wal",),
        bill=evidence.bill(lambda piece: float(piece.waits_for_wal)),
        evidence=(
            f"There were {format_count(round(flushes))} flushes within the watch, one after the other.",
        ),
        candidates=(
            Candidate(
                "maintenance", "Put pg_wal on a faster disk: pg_test_fsync measures how fast one flushes."
            ),
            _FEWER,
            Candidate(
                "setting",
                "Let commits of several sessions share a flush.",
                sql=f"ALTER SYSTEM SET commit_delay = {_delay(each)}; SELECT pg_reload_conf();",
                undo="ALTER SYSTEM RESET commit_delay; SELECT pg_reload_conf();",
                against=("It helps only if at least commit_siblings transactions are open at once.",),
            ),
            _ASYNCHRONOUS,
        ),
        proof="Run pg_test_fsync on both disks, and compare the commits with uncork run.",
    )


def _delay(each: float) -> int:
    """Return a commit_delay in microseconds: half of a flush (PostgreSQL's manual), at most 10 ms."""
    return min(10_000, round(each * 1e6 / 2))


def _flushes(piece: Piece) -> bool:
    return piece.wait_class == "IO" and piece.wait_event.lower() == "walsync"


def _waits_for_standby(piece: Piece) -> bool:
    return piece.wait_event == "SyncRep"


RULE: Final = Rule("slow-commits", _find, least_share=_SHARE)
