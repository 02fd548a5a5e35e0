"""The server: settings that risk data or do not fit the machine, limits, and the write-ahead log. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from uncork.diagnosis.changes import Setting, client_change, maintenance, session_setting, size_text
from uncork.diagnosis.evidence import Evidence
from uncork.diagnosis.rule import finding, rule
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import literal, quoted
from uncork.model.results.log import ErrorFacts, LogResult
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_bytes, format_count, format_duration, share_text

_RISKS: Final = {
    "fsync": ("PostgreSQL does not wait until the disk has what it writes, not even for checkpoints.", ""),
    "full_page_writes": (
        "A page that a crash leaves half written cannot be repaired from the WAL.",
        "File systems that never write half a page, such as ZFS, do not need it.",
    ),
}
"""What each setting risks if it is off, and what speaks against the finding."""


@rule("crash-unsafe")
def find_crash_unsafe(evidence: Evidence) -> Iterator[Finding]:
    """Find settings with which a crash of the machine can destroy the data."""
    for name, (risk, unless) in _RISKS.items():
        if evidence.setting(name) != "off":
            continue
        yield finding(
            f"Setting {name} is off, so a crash of the machine can corrupt the database",
            Setting(name, "on", "off").candidate(
                f"Turn {name} on, unless all data can be loaded again.",
                "Writing becomes slower. synchronous_commit = off is nearly as fast, and safe.",
            ),
            objects=(name,),
            cost="the data, after a crash of the machine",
            evidence=risk,
            against=(unless,) if unless else (),
            proof=f"SHOW {name};",
        )


_PART_OF_MEMORY: Final = 4
"""The proposed size is memory divided by this, the starting point in PostgreSQL's manual
(shared_buffers), in whole GB, or in parts of 128 MB below 1 GB."""
_SMALL: Final = 2.0
"""How many times as large as the present size the proposed one must be: a change needs a restart."""
_AGAIN: Final = 2.0
"""Bytes read during the watch, as a multiple of the tables' size, from which on the same blocks
were read again and again, and not once by a server that has just started."""
_RING: Final = 0.25
"""A sequential scan of a table larger than this fraction of shared buffers uses a small ring of
buffers, so that it never stays in them (see the README of src/backend/storage/buffer)."""


_READING: Final = ("DataFileRead", "AioIoCompletion")
"""Waits for blocks of tables and indexes."""


@rule("shared-buffers", depth=0)
def find_shared_buffers(evidence: Evidence) -> Iterator[Finding]:
    """Find reads of blocks that shared buffers could hold, on a server with much more memory."""
    memory, now = evidence.catalogue.memory_bytes, evidence.setting_bytes("shared_buffers")
    if memory is None or now is None or evidence.database is None:
        return
    unit = 1 << 30 if memory // _PART_OF_MEMORY >= 1 << 30 else 128 << 20
    wanted = memory // _PART_OF_MEMORY // unit * unit
    readers = [
        statement
        for statement in evidence.costliest()
        if statement.blocks_read and evidence.is_traffic(statement) and statement.shape.kind
    ]
    read = evidence.database.block_bytes * sum(reader.blocks_read or 0 for reader in readers)
    names = {use.name for reader in readers for use in reader.shape.tables}
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
    yield finding(
        f"Shared buffers of {size_text(now)} are too small for tables that statements read repeatedly",
        more.candidate(
            "Give shared buffers a quarter of the memory, and restart the server.",
            "The setting takes effect only after a restart.",
            "Other programs on the machine, and work_mem of many sessions, need memory too.",
        ),
        objects=("shared_buffers",),
        bill=evidence.bill(
            lambda piece: part if piece.template in numbers and piece.wait_event in _READING else 0.0
        ),
        statements=readers,
        evidence=(
            f"The statements read {format_bytes(read)} from outside shared buffers; their tables "
            f"and indexes have {format_bytes(size)}.",
            f"The server can use {format_bytes(memory)} of memory.",
        ),
        proof="Compare both settings with uncork run, after the tables were read once.",
    )


# ---- what the log says about limits that the server refused to exceed: how often, and when ----


def refusals(evidence: Evidence, wanted: Callable[[ErrorFacts], bool]) -> tuple[ErrorFacts, ...]:
    """Return the errors of the log that are wanted, the most frequent first."""
    errors = () if evidence.log is None else evidence.log.errors
    return tuple(sorted(filter(wanted, errors), key=lambda error: -error.count))


def when(found: Sequence[ErrorFacts]) -> str:
    """Return when errors happened as words: once, or from the first to the last; and on which servers."""
    first = min((error.first_us for error in found if error.first_us is not None), default=None)
    last = max((error.last_us for error in found if error.last_us is not None), default=None)
    many = count_words(sum(error.count for error in found), "time") + on_servers(servers_of(found))
    if first is None or last is None:
        return many
    if _moment(first) == _moment(last):
        return f"{many}, at {_moment(first)} UTC"
    return f"{many}, from {_moment(first)} to {_moment(last)} UTC"


def _moment(micros: int) -> str:
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"


_NEAR: Final = 0.9
"""Fraction of the connections for ordinary roles from which on the limit is near. If clients open
and close connections independently, their number varies by its square root: at 87 of 97, it exceeds
the limit for 13 % of the time, and at 78 (80 %) for 2 %."""
_IDLE: Final = 0.5
"""Fraction of the connections that must be idle for an idle timeout to be of use."""
_STATE: Final = "53300"
_WORDS: Final = ("too many clients already", "remaining connection slots", "too many connections for")
_STANDBYS: Final = "max_wal_senders"
"""A refused standby has the same SQLSTATE."""
_OWN: Final = re.compile(r'too many connections for (role|database) "(.*)"')
_MAX_CONNECTIONS: Final = "max_connections"
_RESERVED: Final = ("superuser_reserved_connections", "reserved_connections")


def _refused(error: ErrorFacts) -> bool:
    text = f"{error.message} {error.example}"
    return (error.sqlstate == _STATE or any(words in text for words in _WORDS)) and _STANDBYS not in text


@rule("connection-limit")
def find_connections(evidence: Evidence) -> Iterator[Finding]:
    """Find connections that the server refuses, or soon will, because all are taken."""
    whole: list[ErrorFacts] = []
    for refusal in refusals(evidence, _refused):
        own = _OWN.search(refusal.example) or _OWN.search(refusal.message)
        if own is None:
            whole.append(refusal)
        else:
            kind, name = own[1], own[2]
            owner, refused = f"{kind} {name}", count_words(refusal.count, "connection")
            yield finding(
                f"The server refused {refused} of {owner}, which has its own limit",
                client_change(f"Make the pools of all clients of {owner} together smaller than its limit."),
                client_change(
                    f"Raise its limit with ALTER {kind.upper()} {quoted(name)} CONNECTION LIMIT.",
                    "It leaves fewer connections for others.",
                ),
                objects=(name,),
                cost=count_words(refusal.count, "refused connection"),
                evidence=(f"It happened {when([refusal])}.", refusal.example),
                proof="After the change, the log must have no such error at the same hour.",
            )
    setting, reserved = evidence.setting(_MAX_CONNECTIONS), map(evidence.setting, _RESERVED)
    most = int(setting) - sum(map(int, filter(str.isdigit, reserved))) if setting.isdigit() else None
    taken = None if evidence.database is None else evidence.database.connections
    near = taken is not None and most is not None and taken >= _NEAR * most
    if whole or near:
        sentences = []
        if whole:
            many = sum(error.count for error in whole)
            headline = f"The server refused {count_words(many, 'connection')}: all connections were taken"
            cost = count_words(many, "refused connection")
            sentences.append(f"The server refused connections {when(whole)}.")
            sentences += [f"{count_words(error.count, 'time')}: {error.example}" for error in whole[:3]]
        else:
            numbers = f"{format_count(taken or 0)} of {format_count(most or 0)}"
            headline = f"{numbers} connections are open, so the server will soon refuse more"
            cost = f"{share_text((taken or 0) / max(1, most or 1))} of the connections"
        if taken is not None and most is not None:
            limit = f"{format_count(most)} that roles without reserved connections can have"
            sentences.append(f"During the watch, {format_count(taken)} connections were open, of {limit}.")
            busy = f"{evidence.sessions:.1f}"
            sentences.append(f"On average {busy} of them were busy; the others waited for their clients.")
        yield finding(
            headline,
            *_fewer_connections(taken, evidence),
            objects=(_MAX_CONNECTIONS,),
            cost=cost,
            evidence=sentences,
            proof="Watch the server again at the same hour: fewer connections must be open, and "
            "none refused.",
        )


def _fewer_connections(taken: int | None, evidence: Evidence) -> Iterator[Candidate]:
    yield client_change(
        "Let clients share connections: limit the pools of all application processes together to "
        "fewer than max_connections, or put PgBouncer (pool_mode = transaction) before the server.",
        "Session state (SET, LISTEN, temporary tables) does not survive a transaction of PgBouncer.",
    )
    old = evidence.setting("idle_session_timeout")
    if old and taken is not None and taken - evidence.sessions >= _IDLE * taken:
        yield Setting("idle_session_timeout", "'10min'", f"'{old}'").candidate(
            "Close connections that have been idle for long, with idle_session_timeout.",
            "A pool that does not test its connections then gets errors.",
        )
    current = evidence.setting(_MAX_CONNECTIONS)
    doubled = str(2 * int(current)) if current.isdigit() else None
    yield Setting(_MAX_CONNECTIONS, doubled, current, restart=True).candidate(
        "Raise max_connections, if memory and processors can serve as many active sessions.",
        "It takes effect at a restart; standbys need the higher value first.",
        "Each session takes memory, and more busy sessions than processors make each other slower.",
    )


_FILE_LIMIT: Final = "temp_file_limit"
"""Part of the message in any language, because names of settings are not translated."""
_LIMIT_IN_TEXT: Final = re.compile(r"temp_file_limit\W*\((\d+)\s*kB\)")
"""From PostgreSQL 18 on, the name is in quotes."""


@rule("temporary-file-limit")
def find_temporary_files(seen: Evidence) -> Iterator[Finding]:
    """Find statements that the server cancels because their temporary files exceed temp_file_limit.

    A statement that exceeds the limit does so each time, so one failure is a fault.
    """
    found = refusals(seen, lambda error: _FILE_LIMIT in error.example or _FILE_LIMIT in error.message)
    if not found:
        return
    many = sum(error.count for error in found)
    statements = tuple(dict.fromkeys(error.statement for error in found if error.statement))
    limit = next((match[1] for error in found if (match := _LIMIT_IN_TEXT.search(error.example))), "")
    size = f" ({int(limit) >> 10} MB)" if limit and int(limit) >= 1024 else f" ({limit} kB)" if limit else ""
    evidence = [f"It happened {when(found)}."]
    evidence += [f"One of them was: {short_template(text, 90)}" for text in statements[1:3]]
    yield finding(
        f"Temporary files of {count_words(many, 'statement')} exceeded {_FILE_LIMIT}{size}, so they failed",
        *_smaller_files(limit, seen),
        objects=(_FILE_LIMIT,),
        text=statements[0] if statements else "",
        cost=count_words(many, "failed statement"),
        evidence=evidence,
        proof="Execute the statement on a copy with EXPLAIN (ANALYZE, BUFFERS): it shows how much "
        "its sorts and hashes write.",
    )


def _smaller_files(limit: str, evidence: Evidence) -> Iterator[Candidate]:
    yield client_change(
        "Look at the statement's plan for a join without a condition, and for sorts and hashes of "
        "more rows than the client needs: filter earlier, or let an index return the rows in order."
    )
    old = evidence.setting(_FILE_LIMIT) or (f"{limit}kB" if limit else "")
    doubled = f"'{2 * int(limit)}kB'" if limit else None
    yield Setting(_FILE_LIMIT, doubled, f"'{old}'").candidate(
        f"Raise {_FILE_LIMIT}, if the disk has the space for each session that sorts at the same time.",
        "The limit protects the disk from a statement that writes without end.",
    )


# ---- what the server counted of it, and how much of the waiting for it its volume costs ----


_BYTES_PER_S: Final = 500e6
"""Speed of writing WAL: that of an SSD. The latency of a flush hardly depends on its size. Updates
that wrote 90 MB of full-page images a second took 13 % more time than the same updates without;
this speed predicts 15 % (see bench/ADVICE.md). On a slower disk the bill is too small."""


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


_EARLY: Final = 3
"""Checkpoints forced within one watch. CREATE DATABASE, a backup or a person may also request one."""
_PART_OF_WAL: Final = 0.25
"""WAL between two of them as a fraction of max_wal_size. WAL forces a checkpoint at about half of
it, so with less WAL something else requested the checkpoint."""
_FULL_PAGES: Final = 0.5
"""Fraction of the WAL that is full-page images, which rarer checkpoints avoid."""
_DEFAULT_WAL: Final = 1 << 30
_TIMES: Final = 4
"""How many times as much WAL is proposed: checkpoints become so much rarer."""
_OFTEN_S: Final = 300.0
"""Seconds between two forced checkpoints of a log below which they come too often: checkpoint_timeout."""


@rule("checkpoints")
def find_checkpoints(evidence: Evidence) -> Iterator[Finding]:
    """Find checkpoints that the amount of WAL forces, which repeat full-page images."""
    if evidence.database is None:
        yield from () if evidence.log is None else _in_log(evidence.log)
        return
    limit = evidence.setting_bytes("max_wal_size") or _DEFAULT_WAL
    forced, wal_bytes = evidence.grown("checkpoints_req", "num_requested"), evidence.grown("wal_bytes")
    full = min(evidence.grown("wal_fpi") * evidence.database.block_bytes, wal_bytes)
    if forced < _EARLY or wal_bytes < _PART_OF_WAL * limit * forced or full < _FULL_PAGES * wal_bytes:
        return
    # An image follows a checkpoint, so with rarer checkpoints most of this part of the WAL is not written.
    saved = (1 - 1 / _TIMES) * full
    part = min(saved / wal_bytes, part_of_volume(saved, evidence))
    yield finding(
        f"WAL beyond max_wal_size ({size_text(limit)}) forced {round(forced)} checkpoints, so most "
        "of it is full-page images",
        _more_wal(limit),
        objects=("max_wal_size",),
        bill=evidence.bill(lambda piece: part if piece.waits_for_wal else 0.0),
        cost=f"{format_bytes(full)} of WAL",
        evidence=(
            f"{format_bytes(full)} of the {format_bytes(wal_bytes)} of WAL are full-page images: "
            "after a checkpoint, the first change of each page writes the whole page."
        ),
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
    early = [
        (name, work)
        for name, work in works
        if work is not None and work.wal >= _EARLY and work.wal > work.timed and seconds < _OFTEN_S * work.wal
    ]
    if not early:
        return
    (name, work), *others = sorted(early, key=lambda server: -server[1].wal)
    on = f" on server {name}" if log.servers else ""
    each = format_duration(1e9 * seconds / work.wal)
    also = f"The same happened{on_servers(Counter(name for name, _ in others))}."
    yield finding(
        f"The amount of WAL (max_wal_size) forced {work.wal} checkpoints{on}, one every {each}",
        _more_wal(None),
        objects=("max_wal_size",),
        cost=f"{format_bytes(work.distance_bytes)} of WAL for each checkpoint",
        evidence=(
            f"checkpoint_timeout started only {work.timed} of them. After each checkpoint, the "
            "first change of each page writes the whole page to the WAL.",
            *((also,) if others else ()),
        ),
        proof="Compare both settings with uncork run; trials must be longer than checkpoint_timeout.",
    )


_PER_S: Final = 10.0
"""Times per second that WAL buffers are full."""
_WANTED: Final = 64 << 20
"""The proposed size: four segments of WAL. The default is a 32nd of shared buffers, at most 16 MB."""
_WRITES: Final = frozenset({"walwrite", "walbufmapping", "walinsert"})
"""Wait events of sessions that write WAL, or wait until another one has written it, or until others have put
their WAL into the buffers that must be written. A flush is none of them: each commit needs one."""


@rule("wal-buffers")
def find_wal_buffers(evidence: Evidence) -> Iterator[Finding]:
    """Find WAL buffers that fill up, so that sessions write the WAL before they commit.

    Writes because of full buffers have their part of all time that sessions spend on writing WAL.
    """
    full = evidence.grown("wal_buffers_full")
    writes = evidence.grown("wal_write") or _wal_io(evidence, "writes")
    now = evidence.setting_bytes("wal_buffers")
    if full < _PER_S * evidence.seconds or now is None or now >= _WANTED:
        return
    part = min(1.0, full / writes) if writes else 1.0
    yield finding(
        f"The {size_text(now)} of wal_buffers were full {count_words(round(full), 'time')}",
        Setting("wal_buffers", f"'{_WANTED >> 20}MB'", restart=True).candidate(
            "Raise wal_buffers, and restart the server.", "The setting takes effect only after a restart."
        ),
        objects=("wal_buffers",),
        bill=evidence.bill(lambda piece: part if piece.wait_event.lower() in _WRITES else 0.0),
        evidence=(
            "A session that finds them full must write WAL itself before it can go on, while others wait."
            + (f" That was {share_text(part)} of all writes of WAL." if writes else "")
        ),
        proof="Compare both settings with uncork run, under as many clients as the server has.",
    )


_SHARE: Final = 0.3
"""Fraction of the busy time that waits must take: sessions always wait for something, and commits
that are a small part are not worth a disk."""
_STANDBY_S: Final = 0.010
"""Mean wait of a commit for a standby: the flush of a disk and the round trip of a network within
one region take less."""
_FLUSH_S: Final = 0.025
"""Mean time of a flush of WAL: a rotating disk takes about 8 ms, network storage up to 10 ms."""
_FLUSHES: Final = 50
_MOST_DELAY_US: Final = 10_000
"""The proposed commit_delay is half of a flush, as PostgreSQL's manual says, and at most this."""
_ASYNCHRONOUS: Final = session_setting("synchronous_commit", "off").candidate(
    "Where the last commits may be lost, let sessions not wait: synchronous_commit = off for their role.",
    "A crash of the server loses the commits of the last moments: a trade of durability for time.",
)
_FEWER: Final = client_change(
    "Change several rows in each transaction where the application can: each commit waits once."
)


@rule("slow-commits", least_share=_SHARE)
def find_slow_commits(evidence: Evidence) -> Iterator[Finding]:
    """Find commits that wait unusually long: for a standby server, or for a slow disk.

    That commits wait is no fault: each one waits until its WAL is flushed. A finding needs a mean
    time per commit or flush that is far above what disks and networks need.
    """
    yield from _standby(evidence)
    yield from _disk(evidence)


def _standby(evidence: Evidence) -> Iterator[Finding]:
    bill = evidence.bill(lambda piece: piece.wait_event == "SyncRep")
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
        else maintenance(
            "Find out what delays the standby: its disk, its processors or the network to it.",
            sql="SELECT application_name, write_lag, flush_lag, replay_lag FROM pg_stat_replication;",
        )
    )
    yield finding(
        f"Each commit waits {format_duration(each * 1e9)} for a synchronous standby",
        first,
        Candidate(
            "setting",
            "With several standby servers, wait for the fastest one: ANY 1 in synchronous_standby_names.",
            against=("After the loss of the primary, the standby with all commits must be found.",),
        ),
        _FEWER,
        _ASYNCHRONOUS,
        objects=("synchronous_commit" if applies else "synchronous_standby_names",),
        bill=bill,
        evidence=(
            f"synchronous_commit is {level or 'on'}"
            + (f", synchronous_standby_names is {names}." if names else ".")
        ),
        proof="Compare commits with uncork run on a copy with a standby; watch flush_lag and replay_lag.",
    )


def _disk(evidence: Evidence) -> Iterator[Finding]:
    """One session at a time flushes WAL, so the time of sessions that do is the time of all flushes."""
    flushes = evidence.grown("wal_sync") or _wal_io(evidence, "fsyncs")
    if flushes < _FLUSHES:
        return
    flushing = evidence.sessions_in(
        lambda piece: piece.wait_class == "IO" and piece.wait_event.lower() == "walsync"
    )
    each = flushing * evidence.seconds / flushes
    if each < _FLUSH_S:
        return
    yield finding(
        f"Each flush of the write-ahead log to disk takes {format_duration(each * 1e9)}",
        maintenance("Put pg_wal on a faster disk: pg_test_fsync measures how fast one flushes."),
        _FEWER,
        Setting("commit_delay", f"{min(_MOST_DELAY_US, round(each * 1e6 / 2))}").candidate(
            "Let commits of several sessions share a flush.",
            "It helps only if at least commit_siblings transactions are open at once.",
        ),
        _ASYNCHRONOUS,
        objects=("pg_wal",),
        bill=evidence.bill(lambda piece: piece.waits_for_wal),
        evidence=f"There were {format_count(round(flushes))} flushes within the watch, one after the other.",
        proof="Run pg_test_fsync on both disks, and compare the commits with uncork run.",
    )


# ---- on which of several servers a finding of logs is ----


_SHOWN: Final = 3


def for_servers(finding: Finding, log: LogResult) -> Finding:
    """Return a finding with the servers on which its statements took their time, if logs are of several."""
    if not log.servers or not finding.templates or " on server " in finding.headline:
        return finding
    times = Counter[str]()
    for template in log.templates:
        if template.number in finding.templates:
            for part in template.servers:
                times[part.name] += part.sum_ns
    total = times.total()
    if not total:
        return finding
    ranked = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) == 1:
        words = f"All of its time is on server {ranked[0][0]}."
    else:
        shares = [f"{name} {_percent(spent / total)}" for name, spent in ranked[:_SHOWN]]
        more = f", {len(ranked) - _SHOWN} others" if len(ranked) > _SHOWN else ""
        words = f"Its time by server: {', '.join(shares)}{more}."
    return replace(finding, evidence=(*finding.evidence, words))


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %") if share >= 0.01 else "under 1 %"


def servers_of(errors: Sequence[ErrorFacts]) -> Counter[str]:
    """Return how often errors happened on each server."""
    counts = Counter[str]()
    for server in (server for error in errors for server in error.servers):
        counts[server.name] += server.count
    return counts


def on_servers(counts: Counter[str]) -> str:
    """Return where something happened, the most frequent first: " on server a"; "" without names."""
    names = [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if name]
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else ""
    return f" on {'server' if len(names) == 1 else 'servers'} {', '.join(names[:_SHOWN])}{more}"
