"""Dead rows that VACUUM leaves, what they cost, why they stay; space that is empty or soon deleted. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from math import inf
from typing import TYPE_CHECKING, Final, Literal

from uncork.diagnosis.changes import (
    Setting,
    TableOptions,
    autovacuum_on,
    client_change,
    ddl_change,
    maintenance,
    vacuum,
)
from uncork.diagnosis.evidence import WORK, Evidence, Existing, Piece, Statement
from uncork.diagnosis.rule import finding, rule, worth
from uncork.diagnosis.rules.clients.sessions import leaves_dead_rows
from uncork.diagnosis.rules.indexes.reads import reads_whole, selective, served_completely
from uncork.diagnosis.rules.writes.written import executed_within
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.names import literal, sql_name
from uncork.model.results.database_transactions import HorizonHolder
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_bytes, format_count, format_duration, share_text

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

# ---- what dead rows cost statements, and what keeps autovacuum from removing them ----


Delay = Literal["", "off", "late", "threshold", "slow"]
"""Why dead rows stay: autovacuum is off, has not run for long, is not due yet, or is too slow."""

_LATE_NS: Final = 600_000_000_000
"""Time since the last vacuum of a table with more than twice the threshold: ten rounds of
autovacuum (autovacuum_naptime). Until then autovacuum is merely on its way."""
_HELD: Final = 10_000
"""Transactions since the oldest open one from which on it, not autovacuum, keeps dead rows."""
_LONG_NS: Final = 60_000_000_000
"""Time that a transaction must be open, unless so many began since: autovacuum_naptime. A shorter
one delays autovacuum by at most one round."""
_SAME: Final = 0.9
"""Fraction of the oldest age from which on two ages are the same. A snapshot keeps what the
transactions in progress keep, so a short query looks as old as the transaction behind it."""
_BLOCKS: Final = 20
_TIMES: Final = 3.0
"""Blocks of a call, and how many times as many as its rows need, from which on it reads dead
entries. An index has three or four levels, and each row may be on a block of its own."""
_LEVELS: Final = 4
_DEAD: Final = 1_000
"""Fewest dead rows of a table: fewer are a few pages."""
_SLOW: Final = 0.5
"""Part of autovacuum's time in which it pauses for its cost limit."""
_OWN: Final = ("session", "prepared transaction")
_DEFAULTS: Final = {"autovacuum_vacuum_threshold": 50.0, "autovacuum_vacuum_scale_factor": 0.2}


def dead_reads(table: TableFacts, evidence: Evidence) -> dict[int, float]:
    """Return the fraction of each statement's time that it spends on dead rows of a table.

    Of a scan of the whole table, it is the fraction of dead rows. A statement that an index serves
    completely needs a few blocks for each row that it returns; the others had only dead entries.
    """
    dead, live = table.dead or 0, table.live or 0
    if dead < _DEAD:
        return {}
    found: dict[int, float] = {}
    for statement in evidence.statements.values():
        if reads_whole(statement, table, evidence):
            if not selective(statement, table, evidence):  # else it lacks an index
                found[statement.number] = dead / (dead + live)
        elif served_completely(statement, table, evidence):
            blocks, needed = statement.a_call(statement.blocks), _needed(statement, table, evidence)
            if blocks is not None and needed and blocks >= max(_BLOCKS, _TIMES * needed):
                wasted = min(blocks - needed, float(dead), _own_blocks(statement, table, evidence))
                found[statement.number] = wasted / blocks
    return found


def _own_blocks(statement: Statement, table: TableFacts, evidence: Evidence) -> float:
    """Return how many blocks of a table a call touches at most, if some are those of its triggers' tables."""
    if not statement.calls or not executed_within(statement, evidence):
        return inf
    return (table.heap_hit + table.heap_read) / statement.calls


def _needed(statement: Statement, table: TableFacts, evidence: Evidence) -> float | None:
    """Return how many blocks a call would touch without dead rows; None if that is unknown."""
    rows = statement.a_call(statement.rows)
    if rows is None or not statement.shape.kind:
        return None
    changes = statement.shape.kind != "select"
    each = 2.0 + (_LEVELS * (1 + len(evidence.indexes.get(table.name, ()))) if changes else 0.0)
    return _LEVELS * len(statement.shape.tables) + rows * each


def threshold(table: TableFacts, evidence: Evidence) -> float:
    """Return from how many dead rows on autovacuum vacuums a table."""
    values, own = {}, evidence.options(table.name)
    for name, default in _DEFAULTS.items():
        try:
            values[name] = float(own.get(name) or evidence.setting(name) or default)
        except ValueError:
            values[name] = default
    base, factor = values.values()
    return base + factor * evidence.rows(table.name)


def held_back(evidence: Evidence) -> bool:
    """Return whether an open transaction keeps dead rows, whatever autovacuum does."""
    return oldest_holder(evidence) is not None or any(
        (transaction.held_age or 0) >= _HELD for transaction in evidence.transactions
    )


def oldest_holder(evidence: Evidence) -> HorizonHolder | None:
    """Return what keeps the oldest dead rows, if it has kept them for long.

    Of several with the same age, it is the one that was open first; a slot only if nothing else is
    as old, because a standby reports the transactions in progress too.
    """
    holders = () if evidence.database is None else evidence.database.horizons
    oldest = max((holder.held_age for holder in holders), default=0)
    same = [holder for holder in holders if holder.held_age >= _SAME * oldest]
    found = max(same, key=lambda holder: (holder.kind in _OWN, holder.open_ns or 0), default=None)
    if found is None or not (found.held_age >= _HELD or (found.open_ns or 0) >= _LONG_NS):
        return None
    return found


def autovacuum_delay(table: TableFacts, evidence: Evidence) -> Delay:
    """Return why autovacuum has not removed a table's dead rows; empty if it is on its way."""
    if table.autovacuum is False or evidence.setting("autovacuum") == "off":
        return "off"
    dead, limit = table.dead or 0, threshold(table, evidence)
    if dead < limit:
        return "threshold"
    if any(_pauses(evidence)):
        return "slow"
    ended_us = 0 if evidence.database is None else evidence.database.watch.ended_us
    if table.vacuumed_us is None or 1000.0 * (ended_us - table.vacuumed_us) < _LATE_NS:
        return ""
    return "late" if dead >= 2 * limit else ""


def _pauses(evidence: Evidence) -> Iterator[bool]:
    """Yield whether autovacuum pauses for its cost limit for most of its time, if it runs."""
    for process in () if evidence.database is None else evidence.database.background.children:
        if process.name == "autovacuum worker" and process.sessions:
            events = [event for of_class in process.children for event in of_class.children]
            pausing = sum(event.sessions for event in events if event.name == "VacuumDelay")
            yield pausing >= _SLOW * process.sessions


_PART: Final = 0.2
_ROWS: Final = 10_000
"""Dead rows as a fraction of all rows (autovacuum tolerates autovacuum_vacuum_scale_factor), and
their number, from which on a table is a finding although nothing reads them."""


@rule("dead-rows", depth=2)
def find_dead_rows(evidence: Evidence) -> Iterator[Finding]:
    """Find tables with many dead rows for which autovacuum is off, or overdue."""
    if evidence.database is None:
        return
    off = evidence.setting("autovacuum") == "off"
    for table in evidence.tables.values():
        delay = autovacuum_delay(table, evidence)
        if delay not in ("off", "late"):
            continue
        dead = table.dead or 0
        rows = (table.live or 0) + dead
        parts = {} if delay == "late" and held_back(evidence) else dead_reads(table, evidence)
        bill = evidence.bill_of(parts)
        if not worth(bill) and (dead < _ROWS or dead < _PART * rows):
            continue
        since_us = None if table.vacuumed_us is None else evidence.database.watch.ended_us - table.vacuumed_us
        reason = "and autovacuum is off"
        if delay != "off" and since_us is not None:
            reason = f"and was last vacuumed {format_duration(1000.0 * max(0, since_us))} ago"
        yield finding(
            f"Table {table.name} has {format_count(dead)} dead rows ({share_text(dead / rows)} of "
            f"all), {reason}",
            *_turn_on(table.name, off=off, disabled=delay == "off"),
            objects=(table.name,),
            bill=bill,
            statements=evidence.by_cost(parts),
            cost=f"{format_count(dead)} dead rows",
            proof="After VACUUM, pg_stat_user_tables.n_dead_tup must stay below a fifth of the rows.",
        )


def _turn_on(table: str, *, off: bool, disabled: bool) -> Iterator[Candidate]:
    if not disabled:
        why = "its output shows why dead rows cannot be removed."
        yield vacuum(table, "VERBOSE, ANALYZE", f"Run VACUUM (VERBOSE, ANALYZE) on table {table}: {why}")
        return
    if off:
        yield Setting("autovacuum", "on", "off").candidate("Turn autovacuum on for the server.")
    else:
        yield autovacuum_on(table, f"Turn autovacuum on for table {table}.")
    yield vacuum(table, "ANALYZE", f"Then run VACUUM (ANALYZE) on table {table} once.")


_FACTOR: Final = 0.01
"""The proposed autovacuum_vacuum_scale_factor: one dead row in a hundred. The default of 0.2 lets a
table of a million rows collect 200 000 dead ones."""
_LEAST_ROWS: Final = 1_000
"""The proposed autovacuum_vacuum_threshold, so that a small table is not vacuumed continuously."""
_COST_LIMIT: Final = 2_000
"""The proposed autovacuum_vacuum_cost_limit: ten times the default of 200, which reads about 40
MB/s of pages that are not in shared buffers and writes 4 MB/s."""


@rule("autovacuum-behind", depth=2)
def find_behind(evidence: Evidence) -> Iterator[Finding]:
    """Find dead rows that statements read because autovacuum is not due yet, or too slow."""
    if evidence.database is None or held_back(evidence):
        return
    for table in evidence.tables.values():
        delay = autovacuum_delay(table, evidence)
        if delay not in ("threshold", "slow"):
            continue
        parts = dead_reads(table, evidence)
        if parts:
            slow = delay == "slow"
            dead, limit = table.dead or 0, threshold(table, evidence)
            statements = evidence.by_cost(parts)
            top = statements[0]
            blocks, rows = top.a_call(top.blocks), top.a_call(top.rows)
            sentences = [
                f"{share_text(dead / max(1, dead + (table.live or 0)))} of the table's rows are "
                f"dead. Autovacuum starts at {format_count(round(limit))} dead rows."
            ]
            if blocks is not None and rows is not None:
                sentences.append(
                    f"A call of the statement touches {format_count(round(blocks))} blocks and "
                    f"returns or changes {format_count(round(rows))} rows."
                )
            if slow:
                sentences.append(
                    "Autovacuum pauses for its cost limit (wait event VacuumDelay) most of the time."
                )
            why = "autovacuum is too slow" if slow else "autovacuum starts too late"
            yield finding(
                f"Statements read {format_count(dead)} dead rows of table {table.name}: {why}",
                _faster(table, evidence) if slow else _earlier(table, evidence),
                vacuum(table.name, "ANALYZE", f"Run VACUUM (ANALYZE) on table {table.name} once."),
                objects=(table.name,),
                bill=evidence.bill_of(parts),
                statements=statements,
                evidence=sentences,
                proof="Compare the statements before and after VACUUM with uncork run. After it, "
                "pg_stat_user_tables.n_dead_tup must stay low.",
            )


def _earlier(table: TableFacts, evidence: Evidence) -> Candidate:
    new = {"autovacuum_vacuum_scale_factor": str(_FACTOR), "autovacuum_vacuum_threshold": str(_LEAST_ROWS)}
    return TableOptions(table.name, new, evidence.options(table.name)).candidate(
        f"Let autovacuum start at {share_text(_FACTOR)} dead rows in table {table.name}.",
        "Autovacuum reads all indexes of the table each time it runs.",
    )


def _faster(table: TableFacts, evidence: Evidence) -> Candidate:
    limit = "autovacuum_vacuum_cost_limit"
    new = {"autovacuum_vacuum_cost_delay": "2", limit: str(_COST_LIMIT)}
    options = evidence.options(table.name)
    reads = "Autovacuum then reads and writes more blocks a second, beside the statements."
    if any(name in options for name in new):
        text = f"Let autovacuum pause less in table {table.name}, whose own options slow it down."
        return TableOptions(table.name, new, options).candidate(text, reads)
    text = "Let autovacuum work ten times as long between two pauses."
    return Setting(limit, str(_COST_LIMIT), evidence.setting(limit)).candidate(text, reads)


_OLD: Final = 0.5
"""Part of the dead rows that must be older than the last VACUUM. The others wait for the next one."""
_SHOWN: Final = 3


@rule("vacuum-held-back", depth=2)
def find_held_back(evidence: Evidence) -> Iterator[Finding]:
    """Find dead rows that VACUUM cannot remove for a long transaction, a prepared one, a slot or a standby.

    VACUUM removes only rows that are dead for everyone, so the oldest snapshot or unfinished
    transaction decides, whatever it reads. The proof is a VACUUM that ran meanwhile: a table still
    has many rows that died before it.
    """
    holder = oldest_holder(evidence)
    if holder is None or any(
        leaves_dead_rows(transaction)
        and (transaction.application, transaction.user) == (holder.name, holder.user)
        for transaction in evidence.transactions
    ):
        return
    tables = [table for table in evidence.tables.values() if _kept(table, holder, evidence)]
    if not tables:
        return
    parts: dict[int, float] = defaultdict(float)
    for table in tables:
        for number, part in dead_reads(table, evidence).items():
            parts[number] = min(1.0, parts[number] + part)
    bill = evidence.bill_of(parts)
    many = any((table.dead or 0) >= max(_ROWS, _PART * _all(table)) for table in tables)
    if worth(bill) or many:
        tables.sort(key=lambda table: -(table.dead or 0))
        yield _held_back(holder, tables, parts if worth(bill) else {}, bill, evidence)


def _all(table: TableFacts) -> int:
    return (table.live or 0) + (table.dead or 0)


def _kept(table: TableFacts, holder: HorizonHolder, evidence: Evidence) -> bool:
    """Return whether a VACUUM since the holder's beginning left dead rows that were dead before it."""
    if evidence.database is None or table.vacuumed_us is None:
        return False
    ended_us, dead = evidence.database.watch.ended_us, table.dead or 0
    if holder.open_ns is not None and table.vacuumed_us < ended_us - holder.open_ns // 1000:
        return False
    since_s = max(0.0, (ended_us - table.vacuumed_us) / 1e6)
    old = dead - (table.updated + table.deleted) / evidence.seconds * since_s
    return old >= max(_DEAD, threshold(table, evidence), _OLD * dead)


# ---- the finding ----


def _held_back(
    holder: HorizonHolder, tables: list[TableFacts], parts: dict[int, float], bill: Bill, evidence: Evidence
) -> Finding:
    dead = sum(table.dead or 0 for table in tables)
    return finding(
        f"VACUUM keeps dead rows of {tables[0].name} for {_who(holder)}",
        *_end_holder(holder),
        objects=(*(table.name for table in tables), holder.name or holder.user),
        bill=bill if parts else None,
        statements=evidence.by_cost(parts),
        cost="" if parts else f"{format_count(dead)} dead rows that stay",
        evidence=_evidence(holder, tables, evidence),
        proof="After the change, VACUUM (VERBOSE) must report that no dead row version is kept "
        '("not yet removable").',
    )


def _who(holder: HorizonHolder) -> str:
    since = "" if holder.open_ns is None else f", open for {format_duration(float(holder.open_ns))}"
    if holder.kind == "session":
        return f"a transaction of {holder.name or holder.user}{since}"
    if holder.kind == "standby":
        return f"the oldest query on standby {holder.name}"
    if holder.kind == "prepared transaction":
        return f"prepared transaction {holder.name}{since}"
    return f"replication slot {holder.name}"


def _evidence(holder: HorizonHolder, tables: list[TableFacts], evidence: Evidence) -> Iterator[str]:
    later = count_words(holder.held_age, "transaction")
    if holder.kind == "session":
        who = f"Application {holder.name or '(unnamed)'} (role {holder.user}, process {holder.pid})"
        doing = "waited for its client" if holder.idle_ns is not None else "was working"
        after = "after" if holder.idle_ns is not None else "on"
        yield f"{who} {doing} {after}: {short_template(holder.text)}" if holder.text else f"{who} {doing}."
    elif holder.kind == "prepared transaction":
        yield f"Role {holder.user} prepared it (PREPARE TRANSACTION), and nobody has ended it."
    elif holder.kind == "replication slot":
        yield "A standby reads from the slot." if holder.active else "Nobody reads from the slot."
    yield f"{later} began since the oldest one whose dead rows VACUUM must keep for it."
    for table in tables[:_SHOWN]:
        share = share_text((table.dead or 0) / max(1, _all(table)))
        ended_us = 0 if evidence.database is None else evidence.database.watch.ended_us
        ago = format_duration(1000.0 * max(0, ended_us - (table.vacuumed_us or 0)))
        yield (
            f"Table {table.name} has {format_count(table.dead or 0)} dead rows ({share} of all), "
            f"although VACUUM ran {ago} ago."
        )


def _end_holder(holder: HorizonHolder) -> Iterator[Candidate]:
    if holder.kind == "session":
        who = holder.name or holder.user
        yield client_change(
            f"Let application {who} work in shorter transactions, or run such reports on a standby "
            "with hot_standby_feedback = off.",
            "Several transactions do not see the same state of the tables.",
        )
        yield client_change(
            f"If nobody needs its result, end it: SELECT pg_terminate_backend({holder.pid}).",
            "The transaction is rolled back, and the client gets an error.",
        )
    elif holder.kind == "prepared transaction":
        name = literal(holder.name)
        yield client_change(
            f"Ask its transaction manager how it ended. Then its owner must COMMIT PREPARED {name} "
            f"or ROLLBACK PREPARED {name}.",
            "The wrong choice makes the databases of the transaction differ.",
        )
    elif holder.kind == "replication slot" and not holder.active:
        yield client_change(
            "If its standby does not return, drop the slot: "
            f"SELECT pg_drop_replication_slot({literal(holder.name)}).",
            "A standby that used it can then lack WAL, and must be made again.",
        )
    else:
        yield client_change(
            "End long queries on the standby, or set hot_standby_feedback = off there.",
            "Without feedback, the standby cancels queries that need removed rows.",
        )


_AGE: Final = 1_000_000_000
"""Transactions since a table's last freeze: five times the age at which autovacuum freezes it
(autovacuum_freeze_max_age), so autovacuum has failed for long."""
_LIMIT: Final = 2_144_483_648
"""The age at which the server refuses transactions that write: three million before the wraparound."""


@rule("not-frozen")
def find_not_frozen(evidence: Evidence) -> Iterator[Finding]:
    """Find tables that were not frozen for so long that the server may soon refuse to write.

    See "Preventing Transaction ID Wraparound Failures" in PostgreSQL's manual.
    """
    old = [table for table in evidence.tables.values() if (table.frozen_age or 0) >= _AGE]
    old.sort(key=lambda table: -(table.frozen_age or 0))
    for table in old[:1]:
        age = table.frozen_age or 0
        others = "" if len(old) == 1 else f" {len(old) - 1} other tables were not frozen for long either."
        yield finding(
            f"Table {table.name} was last frozen {format_count(age)} transactions ago",
            vacuum(
                table.name,
                "FREEZE, VERBOSE",
                f"Freeze table {table.name} now. If VACUUM cannot, end what holds it back: old "
                "transactions, prepared ones, and unused replication slots.",
                "It reads all pages of the table that are not frozen, and writes most of them.",
            ),
            objects=(other.name for other in old),
            cost=f"all writing, after {format_count(max(0, _LIMIT - age))} more transactions",
            evidence=(
                f"Autovacuum has not frozen it for long.{others} At {format_count(_LIMIT)} "
                "transactions the server refuses to write."
            ),
            proof="age(relfrozenxid) in pg_class must fall.",
        )


# ---- space that is empty, or that rows take which are deleted by their age ----


_EMPTY: Final = 0.5
_TABLE_BYTES: Final = 64 << 20
"""Empty space, as a fraction of the table and in bytes. An updated table needs room for new row versions, a
fifth with autovacuum's defaults. Rewriting a table needs a lock, which a few megabytes are not worth."""


@rule("bloat")
def find_empty_tables(evidence: Evidence) -> Iterator[Finding]:
    """Find empty space in a table that scans read, or that takes much of the disk."""
    for table in evidence.tables.values():
        if not table.bloat_bytes or not table.bytes:
            continue
        part = min(1.0, table.bloat_bytes / table.bytes)
        readers = [statement for statement in evidence.costliest() if reads_whole(statement, table, evidence)]
        bill = evidence.bill_of({reader.number: part for reader in readers})
        costs_time = worth(bill)
        if not costs_time and (part < _EMPTY or table.bloat_bytes < _TABLE_BYTES):
            continue
        room = f"{format_bytes(table.bloat_bytes)} of {format_bytes(table.bytes)}"
        read = ", and statements read all of it" if costs_time else ""
        yield finding(
            f"Table {table.name} is {share_text(part)} empty{read}",
            vacuum(
                table.name,
                "FULL, ANALYZE",
                f"Rewrite table {table.name} with pg_repack, or with VACUUM FULL while nobody needs it.",
                "VACUUM FULL locks the table against reading and writing until it ends.",
                "The space comes back unless the cause is removed: find out what kept "
                "autovacuum from freeing it.",
            ),
            objects=(table.name,),
            bill=bill,
            statements=readers,
            cost=f"{format_bytes(table.bloat_bytes)} of disk",
            evidence=f"{room} is space of rows that are gone.",
            proof="Compare the statements on a copy before and after VACUUM FULL.",
        )


_INDEX_BYTES: Final = 256 << 20
"""Empty space in bytes; as a fraction of the index, it is that of a table. A B-tree under random inserts is a
third empty, and after a rebuild it soon is again, so that only much more space is worth a rebuild."""
_PAGE: Final = 4.0
"""Time to visit a page of an index in shared buffers, as a multiple of the time to return an entry.
REINDEX saved 24 % to 32 % of the time if the index was 98 % empty, and 53 % if it was 99 % empty;
this predicts 35 % and 68 % (see bench/ADVICE.md)."""
_READS: Final = 0.3
"""Blocks per call, as a fraction of the index's blocks, from which on a call reads most of the
index: at least as many entries as a full index would have on so many blocks."""


@rule("index-bloat")
def find_empty_indexes(evidence: Evidence) -> Iterator[Finding]:
    """Find empty space in an index that scans read, or that takes much of the disk."""
    for table, indexes in evidence.indexes.items():
        for index in indexes:
            bloat, size = index.facts.bloat_bytes, index.facts.bytes
            if not bloat or not size:
                continue
            part = min(1.0, bloat / size)
            readers = [each for each in evidence.costliest() if _reads_most(each, index, evidence)]
            bill = _bill({reader.number for reader in readers}, part, index, evidence)
            costs_time = worth(bill)
            if costs_time or (part >= _EMPTY and bloat >= _INDEX_BYTES):
                yield finding(
                    f"Index {index.facts.name} is {share_text(part)} empty"
                    + (", and statements read all of it" if costs_time else ""),
                    _rebuild(index),
                    objects=(index.facts.name, table),
                    bill=bill,
                    statements=readers,
                    cost=f"{format_bytes(bloat)} of disk",
                    evidence=f"{format_bytes(bloat)} of {format_bytes(size)} is space of entries "
                    "that are gone.",
                    proof="Compare the statements on a copy before and after REINDEX.",
                )


def _bill(readers: Collection[int], part: float, index: Existing, evidence: Evidence) -> Bill:
    visits = _PAGE * (index.facts.bytes or 0) / evidence.block_bytes
    entries = evidence.rows(index.facts.table)
    rest = part * visits / (visits + entries)

    def costs(piece: Piece) -> float:
        if piece.template not in readers or piece.wait_class not in WORK:
            return 0.0
        return part if piece.wait_class == "IO" else rest

    return evidence.bill(costs)


def _reads_most(statement: Statement, index: Existing, evidence: Evidence) -> bool:
    blocks, name = statement.a_call(statement.blocks) or 0.0, index.facts.name.rpartition(".")[2]
    scans = [node for node in statement.nodes if node.index and node.index.rpartition(".")[2] == name]
    only = all(node.kind == "Index Only Scan" for node in scans)
    return bool(scans) and only and blocks * evidence.block_bytes >= _READS * (index.facts.bytes or 0)


def _rebuild(existing: Existing) -> Candidate:
    return maintenance(
        f"Rebuild index {existing.facts.name}.",
        "It needs the space of a second index, and waits for all transactions that are open.",
        "The space comes back unless its cause is removed, such as deleting old rows one by one.",
        sql=f"REINDEX INDEX CONCURRENTLY {sql_name(existing.facts.name)};",
    )


_PARTITIONED_BYTES: Final = 1 << 30
"""Size with indexes, from which on partitions can be worth their upkeep; at least that of shared buffers."""
_DELETED_ROWS: Final = 1000
"""Deleted rows per call, from which on a call deletes a range and not a few rows."""
_TIME_TYPES: Final = frozenset({"timestamp without time zone", "timestamp with time zone", "date"})
_OLDER: Final = frozenset({"<", "<="})


@rule("expired-rows-deleted", of_tables=True)
def find_expired(evidence: Evidence) -> Iterator[Finding]:
    """Find rows of a large table that are deleted by their age, where dropping a partition would do.

    Deleting a row writes WAL for the row, and leaves it and its index entries to VACUUM. Dropping a
    partition removes files: about a tenth of the time, and a thousandth of the WAL (ADR-0052).
    """
    found: dict[tuple[str, str], list[Statement]] = {}
    for statement in evidence.costliest():
        key = _expired(statement, evidence)
        if key is not None:
            found.setdefault(key, []).append(statement)
    for (name, column), deletes in found.items():
        table = evidence.tables[name]
        if _can_be_partitioned(table, column, evidence):
            yield finding(
                f"Statements delete the old rows of table {name} by {column}",
                _partition(name, column),
                objects=(name,),
                bill=evidence.bill_of({delete.number for delete in deletes}),
                statements=deletes,
                evidence=(
                    "The statements deleted "
                    f"{format_count(sum(delete.rows or 0 for delete in deletes))} rows in "
                    f"{format_count(sum(delete.calls or 0 for delete in deletes))} calls.",
                    f"The table has {format_bytes(_size(table))} with its indexes"
                    + (f", and {format_count(table.dead)} dead rows." if table.dead else "."),
                ),
                proof="Compare both layouts with uncork run, with the reads and the writes of the "
                "table, as in the case message-archive.",
            )


def _expired(statement: Statement, evidence: Evidence) -> tuple[str, str] | None:
    """Return the table and the column of time if a statement deletes all rows that are older than a time."""
    shape = statement.shape
    if shape.kind != "delete" or (statement.a_call(statement.rows) or 0) < _DELETED_ROWS:
        return None
    names = {use.name for use in shape.tables}
    if len(names) != 1:
        return None
    name = names.pop()
    rest = [predicate for predicate in shape.predicates if predicate.value != "subquery"]
    columns = {each.column for each in rest}
    if name not in evidence.tables or len(columns) != 1:
        return None
    if any(each.alternative or each.negated for each in rest):
        return None
    column = evidence.column(name, columns.pop())
    if column is None or column.type not in _TIME_TYPES or any(each.operator not in _OLDER for each in rest):
        return None
    return name, column.name


def _can_be_partitioned(table: TableFacts, column: str, evidence: Evidence) -> bool:
    """Return whether partitions by a column of time would serve the deletes, and nothing forbids them."""
    options = evidence.catalogue.options.get(table.name)
    is_part = options is not None and bool(options.parent or options.partition_key)
    least = max(_PARTITIONED_BYTES, evidence.setting_bytes("shared_buffers") or 0)
    if table.kind != "table" or is_part or _size(table) < least:
        return False
    if any(key.referred == table.name for key in evidence.foreign_keys):
        return False
    of_table = (trigger for trigger in evidence.catalogue.triggers if trigger.table == table.name)
    if any("delete" in trigger.events for trigger in of_table):
        return False
    changes = any(
        column in statement.shape.set_columns and statement.changes(table.name)
        for statement in evidence.statements.values()
    )
    return evidence.indexed(table.name, column) and not changes


def _partition(name: str, column: str) -> Candidate:
    return ddl_change(
        f"Partition {name} by range of {column}, with one partition for each time that is deleted "
        "at once, and drop old partitions instead of deleting rows.",
        f"All rows must be copied to a new table. Every unique key must contain {column}.",
        f"Statements that do not compare {column} read each partition.",
        "Partitions must be created in advance and dropped on time, by a job such as pg_partman.",
        unprovable="uncork does not convert a table to partitions on a copy.",
    )


def _size(table: TableFacts) -> int:
    return (table.bytes or 0) + table.index_bytes
