"""The write-ahead log: checkpoints that it forces, buffers that it fills, commits that wait for it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from uncork.advise.changes import Setting, session_setting, size_text
from uncork.advise.evidence import Evidence, Piece
from uncork.advise.rule import Rule
from uncork.advise.servers import on_servers
from uncork.model.database.finding import Candidate, Finding
from uncork.model.results.log import LogResult
from uncork.model.results.log_activity import CheckpointWork
from uncork.model.units import count_words, format_bytes, format_count, format_duration, share_text

# ---- what the server counted of it, and how much of the waiting for it its volume costs ----


_BYTES_PER_S: Final = 500e6
"""Speed of writing WAL: that of an SSD. The latency of a flush hardly depends on its size. Updates that wrote
90 MB of full-page images a second took 13 % more time than the same updates without; this speed predicts 15 %
(see bench/ADVICE.md). On a slower disk the bill is too small."""


def part_of_volume(size: float, evidence: Evidence) -> float:
    """Return which part of the waiting for WAL so many bytes cost: the time to write them, of all writing.

    One session at a time writes and flushes WAL, so the sessions that do are the time of all of it.
    """
    writing = evidence.sessions_in(lambda piece: piece.wait_class == "IO" and piece.waits_for_wal)
    spent = writing * evidence.seconds
    return min(1.0, size / _BYTES_PER_S / spent) if spent else 1.0


def _wal_io(evidence: Evidence, name: str) -> float:
    """Return a counter of WAL in pg_stat_io, which replaces those of pg_stat_wal from PostgreSQL 18 on."""
    return sum(
        counter.delta
        for counter in evidence.counters
        if counter.view == "pg_stat_io" and counter.counter == name and ", wal, normal" in counter.object
    )


# ---- checkpoints that the amount of WAL forces, which repeat full-page images ----


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


def _find_checkpoints(evidence: Evidence) -> Iterator[Finding]:
    if evidence.database is None:
        if evidence.log is not None:
            yield from _in_log(evidence.log)
        return
    limit = evidence.setting_bytes("max_wal_size") or _DEFAULT_WAL
    forced, wal_bytes = evidence.grown("checkpoints_req", "num_requested"), evidence.grown("wal_bytes")
    full = min(evidence.grown("wal_fpi") * evidence.database.block_bytes, wal_bytes)
    if forced < _EARLY or wal_bytes < _PART * limit * forced or full < _FULL_PAGES * wal_bytes:
        return
    # An image follows a checkpoint, so with rarer checkpoints most of this part of the WAL is not written.
    saved = (1 - 1 / _TIMES) * full
    part = min(saved / wal_bytes, part_of_volume(saved, evidence))
    yield CHECKPOINTS.finding(
        f"WAL beyond max_wal_size ({size_text(limit)}) forced {round(forced)} checkpoints, so most of it is "
        "full-page images",
        objects=("max_wal_size",),
        bill=evidence.bill(lambda piece: part if piece.waits_for_wal else 0.0),
        cost=f"{format_bytes(full)} of WAL",
        evidence=(
            f"{format_bytes(full)} of the {format_bytes(wal_bytes)} of WAL are full-page images: after a "
            "checkpoint, the first change of each page writes the whole page.",
        ),
        candidates=(_more_wal(limit),),
        proof="Compare both settings with uncork run; trials must be longer than checkpoint_timeout.",
    )


def _more_wal(limit: int | None) -> Candidate:
    size, old = _TIMES * (limit or _DEFAULT_WAL) >> 20, f"'{limit >> 20}MB'" if limit else ""
    return Setting("max_wal_size", f"'{size}MB'", old).candidate(
        "Raise max_wal_size, and again until checkpoint_timeout triggers checkpoints, not the amount of WAL.",
        "Recovery after a crash takes longer, and pg_wal needs the space.",
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
    (name, work), *others = sorted(early, key=lambda server: -server[1].wal)
    on = f" on server {name}" if log.servers else ""
    each = format_duration(1e9 * seconds / work.wal)
    also = f"The same happened{on_servers(Counter(name for name, _ in others))}."
    yield CHECKPOINTS.finding(
        f"The amount of WAL (max_wal_size) forced {work.wal} checkpoints{on}, one every {each}",
        objects=("max_wal_size",),
        bill=None,
        cost=f"{format_bytes(work.distance_bytes)} of WAL for each checkpoint",
        evidence=(
            f"checkpoint_timeout started only {work.timed} of them. After each checkpoint, the first change "
            "of each page writes the whole page to the WAL.",
            *((also,) if others else ()),
        ),
        candidates=(_more_wal(None),),
        proof="Compare both settings with uncork run; trials must be longer than checkpoint_timeout.",
    )


def _is_early(work: CheckpointWork, seconds: float) -> bool:
    """Return whether WAL forces most checkpoints of a server, more often than checkpoint_timeout would."""
    return work.wal >= _EARLY and work.wal > work.timed and seconds < _OFTEN_S * work.wal


CHECKPOINTS: Final = Rule("checkpoints", _find_checkpoints)


# ---- WAL buffers that fill up, so that sessions write the WAL before they commit ----


_PER_S: Final = 10.0
"""Times per second that WAL buffers are full."""
_WANTED: Final = 64 << 20
"""The proposed size: four segments of WAL. The default is a 32nd of shared buffers, at most 16 MB."""
_WRITES: Final = frozenset({"walwrite", "walbufmapping", "walinsert"})
"""Wait events of sessions that write WAL, or wait until another one has written it, or until others have put
their WAL into the buffers that must be written. A flush is none of them: each commit needs one."""


def _find_wal_buffers(evidence: Evidence) -> Iterator[Finding]:
    """Writes because of full buffers have their part of all time that sessions spend on writing WAL."""
    full = evidence.grown("wal_buffers_full")
    writes = evidence.grown("wal_write") or _wal_io(evidence, "writes")
    now = evidence.setting_bytes("wal_buffers")
    if full < _PER_S * evidence.seconds or now is None or now >= _WANTED:
        return
    part = min(1.0, full / writes) if writes else 1.0
    yield WAL_BUFFERS.finding(
        f"The {size_text(now)} of wal_buffers were full {count_words(round(full), 'time')}",
        objects=("wal_buffers",),
        bill=evidence.bill(lambda piece: part if piece.wait_event.lower() in _WRITES else 0.0),
        evidence=(
            "A session that finds them full must write WAL itself before it can go on, while others wait."
            + (f" That was {share_text(part)} of all writes of WAL." if writes else ""),
        ),
        candidates=(
            Setting("wal_buffers", f"'{_WANTED >> 20}MB'", restart=True).candidate(
                "Raise wal_buffers, and restart the server.", "The setting takes effect only after a restart."
            ),
        ),
        proof="Compare both settings with uncork run, under as many clients as the server has.",
    )


WAL_BUFFERS: Final = Rule("wal-buffers", _find_wal_buffers)


# ---- commits that wait unusually long: for a standby server, or for a slow disk ----
#
# That commits wait is no fault: each one waits until its WAL is flushed. A finding needs a mean time per
# commit or flush that is far above what disks and networks need.


_SHARE: Final = 0.3
"""Fraction of the busy time that waits must take: sessions always wait for something, and commits that are a
small part are not worth a disk."""
_STANDBY_S: Final = 0.010
"""Mean wait of a commit for a standby: the flush of a disk and the round trip of a network within one region
take less."""
_FLUSH_S: Final = 0.025
"""Mean time of a flush of WAL: a rotating disk takes about 8 ms, network storage up to 10 ms."""
_FLUSHES: Final = 50
_ASYNCHRONOUS: Final = session_setting("synchronous_commit", "off").candidate(
    "Where the last commits may be lost, let sessions not wait: synchronous_commit = off for their role.",
    "A crash of the server loses the commits of the last moments: a trade of durability for time.",
)
_FEWER: Final = Candidate(
    "client", "Change several rows in each transaction where the application can: each commit waits once."
)


def _find_slow_commits(evidence: Evidence) -> Iterator[Finding]:
    yield from _standby(evidence)
    yield from _disk(evidence)


def _standby(evidence: Evidence) -> Iterator[Finding]:
    bill = evidence.bill(_waits_for_standby)
    commits = 0.0 if evidence.rates is None else evidence.rates.commits
    if not commits:
        return
    each = bill.seconds_per_hour / 3600.0 / commits
    level = evidence.setting("synchronous_commit")
    applies = level == "remote_apply"
    if each < _STANDBY_S:
        return
    names = evidence.setting("synchronous_standby_names")
    first = (
        Setting("synchronous_commit", "on", "remote_apply").candidate(
            "Let commits wait until the standby has flushed the WAL, not until it has applied it.",
            "Queries on the standby may not see a commit that the primary has confirmed.",
            same_answers=False,
        )
        if applies
        else Candidate(
            "maintenance",
            "Find out what delays the standby: its disk, its processors or the network to it.",
            sql="SELECT application_name, write_lag, flush_lag, replay_lag FROM pg_stat_replication;",
        )
    )
    yield SLOW_COMMITS.finding(
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
    flushes = evidence.grown("wal_sync") or _wal_io(evidence, "fsyncs")
    if flushes < _FLUSHES:
        return
    flushing = evidence.sessions_in(_flushes) * evidence.seconds
    each = flushing / flushes
    if each < _FLUSH_S:
        return
    yield SLOW_COMMITS.finding(
        f"Each flush of the write-ahead log to disk takes {format_duration(each * 1e9)}",
        objects=("pg_wal",),
        bill=evidence.bill(lambda piece: piece.waits_for_wal),
        evidence=(
            f"There were {format_count(round(flushes))} flushes within the watch, one after the other.",
        ),
        candidates=(
            Candidate(
                "maintenance", "Put pg_wal on a faster disk: pg_test_fsync measures how fast one flushes."
            ),
            _FEWER,
            Setting("commit_delay", f"{_delay(each)}").candidate(
                "Let commits of several sessions share a flush.",
                "It helps only if at least commit_siblings transactions are open at once.",
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


SLOW_COMMITS: Final = Rule("slow-commits", _find_slow_commits, least_share=_SHARE)
