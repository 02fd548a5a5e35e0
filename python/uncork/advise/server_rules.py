"""Rules that look for faults of a watched server. Each yields its findings with their cost. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from uncork.advise import server_thresholds as at
from uncork.advise.plan_rules import scanned_rows
from uncork.model.results.database import (
    CPU,
    IDLE,
    BlockerFacts,
    DatabaseResult,
    TableFacts,
    TemplateActivity,
)
from uncork.model.results.database_finding import DatabaseFinding, InTransaction
from uncork.model.units import parse_bytes

__all__ = [
    "bloat",
    "checkpoints",
    "dead_rows",
    "forgotten_transactions",
    "jit",
    "lock_waits",
    "missing_indexes",
    "row_commits",
    "slow_statements",
    "statements_one_by_one",
    "temporary_files",
]

_WORK: Final = frozenset({CPU, "IO", "IPC", "LWLock", "BufferPin"})
"""Wait classes in which a statement does its own work, or waits for blocks and helper processes."""
_PREPARED: Final = "prepared transaction"
_WHERE: Final = re.compile(r"\bwhere\b(.*)", re.DOTALL)
_CAST: Final = r"(?:\s*::\s*[\w\"\[\]. ]+?)?"
_EQUAL: Final = re.compile(
    rf"=\s*(?:any\s*\(+)?\?|\?{_CAST}\s*=\s*[a-z_\"]|\bin\s*\(+\?|\bi?like\s+\?|@@|@>\s*\?"
)
"""A column compared with a value, on either side: a condition that an index can serve. Object-relational
mappers write ``?::integer = item.order_id`` too."""
_GROUPED: Final = re.compile(
    r"\b(?:count|sum|avg|min|max|bool_and|bool_or|every|(?:string|array|jsonb?|jsonb?_object)_agg)\s*\(|"
    r"\bgroup by\b|\bdistinct\b"
)
"""An aggregating query: the number of rows it returns does not show how many rows it needed."""
_WRITES: Final = re.compile(r"(?:insert|update|delete|merge)\b")
_BEGIN: Final = re.compile(r"begin\b|start transaction\b")
_DEFAULT_WAL: Final = 1 << 30


def _worth(share: float, sessions: float, least: float = at.LEAST_SHARE) -> bool:
    return share >= least and sessions >= at.LEAST_SESSIONS


def _seconds(result: DatabaseResult) -> float:
    return max(1e-3, (result.watch.ended_us - result.watch.begun_us) / 1e6)


def _share(result: DatabaseResult, sessions: float) -> float:
    return min(1.0, sessions / result.tree.sessions) if result.tree.sessions else 0.0


def _of_class(result: DatabaseResult, name: str) -> float:
    return sum(node.sessions for node in result.tree.children if node.name == name)


# ---- locks and open transactions ----


def _loops(result: DatabaseResult) -> list[InTransaction]:
    """Return the templates that a client sends one by one, in a loop within a transaction.

    A loop may send several templates in turn. Each of them then has fewer executions than a loop of one, so
    all are counted together. In this case each must also have several calls for each BEGIN that
    pg_stat_statements counted: estimates from samples alone could take the statements of a transaction that
    was written by hand for a loop.
    """
    found = [
        one
        for one in result.transactions
        if one.template is not None and one.samples >= at.LOOP_SAMPLES and one.gap_ns <= at.SHORT_GAP_NS
    ]
    in_turn: dict[tuple[str, str], list[InTransaction]] = {}
    for one in found:
        if _executions(one, result) >= at.LOOP_IN_TURN and _calls_a_begin(one, result) >= at.LOOP_IN_TURN:
            in_turn.setdefault((one.application, one.user), []).append(one)
    together = {
        key
        for key, all_of in in_turn.items()
        if sum(_executions(one, result) for one in all_of) >= at.LOOP_STATEMENTS
    }
    return [
        one
        for one in found
        if _executions(one, result) >= at.LOOP_STATEMENTS
        or ((one.application, one.user) in together and one in in_turn[one.application, one.user])
    ]


def _calls_a_begin(one: InTransaction, result: DatabaseResult) -> float:
    """Return how often a template was called for each BEGIN of any client; 0 if either was not counted."""
    calls = begins = 0
    for each in result.templates:
        if each.statements is not None and each.number == one.template:
            calls = each.statements.calls
        if each.statements is not None and _BEGIN.match(each.text):
            begins += each.statements.calls
    return calls / begins if begins else 0.0


def _executions(one: InTransaction, result: DatabaseResult) -> float:
    """Estimate how often one transaction executes a template.

    The estimate is the rate of calls while sessions are busy with the template, times the length of one
    transaction. Other clients may execute it outside transactions, so the pauses between statements bound it.
    If transactions are of one application only, a template with hardly more calls than BEGIN is in no loop.
    """
    others = any((each.application, each.user) != (one.application, one.user) for each in result.transactions)
    counted = _calls_a_begin(one, result)
    if not others and 0 < counted < at.LOOP_LEAST_CALLS:
        return counted
    template = next((each for each in result.templates if each.number == one.template), None)
    if template is None or template.statements is None or not template.sessions:
        return one.per_transaction
    a_second = template.statements.calls / (template.sessions * _seconds(result))
    return min(a_second * one.part * one.length_ns / 1e9, at.PAUSES_TOO_LONG * one.per_transaction)


def _forgotten(one: BlockerFacts) -> bool:
    """Return whether a transaction that others wait behind was left idle, instead of working."""
    idle_ns = one.transaction_ns if one.idle_ns is None else one.idle_ns
    return one.state == IDLE and (idle_ns or 0) >= at.FORGOTTEN_IDLE_NS


def forgotten_transactions(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield transactions left idle that block others, or that keep VACUUM from removing dead rows."""
    blocking = set()
    for one in result.blockers:
        share = _share(result, one.sessions)
        if _forgotten(one) and _worth(share, one.sessions):
            blocking.add((one.application, one.user))
            figures = {"idle_ns": float(one.idle_ns or one.transaction_ns or 0)}
            yield DatabaseFinding(
                "forgotten-transaction",
                share,
                one.sessions,
                one.application or one.user,
                one.template,
                one.text,
                {**figures, "blocked": one.sessions},
            )
    for held in result.transactions:
        if (held.application, held.user) in blocking or held.idle_ns < at.OLD_IDLE_NS:
            continue
        if (held.held_age or 0) >= at.OLD_HELD:
            blocking.add((held.application, held.user))
            yield DatabaseFinding(
                "forgotten-transaction",
                0.0,
                0.0,
                held.application or held.user,
                held.template,
                held.text,
                {"idle_ns": float(held.idle_ns), "held_age": float(held.held_age or 0)},
            )


def statements_one_by_one(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield applications that send many short statements one by one within transactions (N+1).

    Sessions that wait for the locks of such a transaction count towards the finding.
    """
    by_application: dict[tuple[str, str], list[InTransaction]] = {}
    for one in _loops(result):
        by_application.setdefault((one.application, one.user), []).append(one)
    for (application, user), found in by_application.items():
        held = sum(
            one.sessions for one in result.blockers if (one.application, one.user) == (application, user)
        )
        sessions = sum(one.sessions for one in found) + held
        share = _share(result, sessions)
        if not _worth(share, sessions):
            continue
        top = max(found, key=lambda one: one.sessions)
        numbers = {one.template for one in found}
        calls = sum(
            one.statements.calls for one in result.templates if one.number in numbers and one.statements
        )
        figures = {
            "calls": float(calls),
            "per_transaction": _executions(top, result),
            "templates": float(len(numbers)),
            "calls_a_begin": _calls_a_begin(top, result),
            "blocked": held,
        }
        yield DatabaseFinding(
            "one-by-one", share, sessions, application or user, top.template, top.text, figures
        )


def lock_waits(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield sessions that queue for locks, except behind transactions of another finding."""
    loops = {(one.application, one.user) for one in _loops(result)}
    others = [
        one for one in result.blockers if not _forgotten(one) and (one.application, one.user) not in loops
    ]
    reported = sum(one.sessions for one in result.blockers) - sum(one.sessions for one in others)
    waiting = _of_class(result, "Lock") - reported
    top = next(iter(others), None)
    if top is None:
        return
    long = top.state == _PREPARED or 2 * (top.transaction_mean_ns or 0) >= at.LONG_LOCK_NS
    share = _share(result, waiting)
    if _worth(share, waiting, at.LEAST_SHARE if long else at.SHORT_LOCK_SHARE):
        most = max(others, key=lambda one: one.sessions)
        figures = {"blocked": most.sessions, "at_most": float(most.most), "long": float(long)}
        if most.transaction_ns is not None:
            figures["open_ns"] = float(most.transaction_ns)
        yield DatabaseFinding(
            "lock-wait", share, waiting, most.application or most.user, most.template, most.text, figures
        )


# ---- statements ----


def _works(one: TemplateActivity) -> float:
    """Return how many sessions worked on a template on average, excluding waits for locks and clients."""
    return sum(part.sessions for part in one.classes if part.name in _WORK)


def _repeated(one: TemplateActivity, result: DatabaseResult) -> bool:
    """Return whether a statement is part of the application's traffic.

    It is called often, or several sessions execute it at once.
    """
    calls = 0 if one.statements is None else one.statements.calls
    often = calls >= at.REPEATED_CALLS and calls / _seconds(result) >= at.REPEATED_PER_S
    return often or (calls >= at.SELECTIVE_CALLS and one.sessions >= at.TOGETHER)


def _mentions(text: str, table: TableFacts) -> bool:
    name = re.escape(table.name.rpartition(".")[2].lower())
    return re.search(rf"(?<![\w$]){name}(?![\w$])", text) is not None


def _rows(table: TableFacts) -> float:
    return float(table.live or 0) if table.rows is None else table.rows


def _reads_whole(one: TemplateActivity, table: TableFacts, result: DatabaseResult) -> bool:
    """Return whether each call of a template scans a whole table, by the number of blocks per call."""
    if not _mentions(one.text, table) or not table.seq_scans or not table.bytes:
        return False
    figures = one.statements
    if figures is None:
        return result.counted_ns is None
    blocks = (figures.shared_hit + figures.shared_read) / max(1, figures.calls)
    return blocks * result.block_bytes >= at.READS_WHOLE * table.bytes


def _selective(one: TemplateActivity, table: TableFacts, result: DatabaseResult) -> bool:
    """Return whether a template often needs few rows of a table, which an index would serve.

    The condition must compare a column with a value. The rows that a query returns show how many it needed,
    unless it aggregates them: such a query must also belong to the application's traffic.
    """
    condition = _WHERE.search(one.text)
    if condition is None or not _EQUAL.search(condition[1]):
        return False
    figures = one.statements
    if figures is None:
        reads = table.whole_reads or 0.0
        return reads >= at.REPEATED_CALLS and reads / _seconds(result) >= at.REPEATED_PER_S
    if _GROUPED.search(one.text):
        passing = _passing(one, table, result)
        return _repeated(one, result) and (passing is None or passing <= at.AGGREGATED)
    few = figures.rows <= at.SELECTIVE * _rows(table) * figures.calls
    return few and figures.calls >= at.SELECTIVE_CALLS


def _passing(one: TemplateActivity, table: TableFacts, result: DatabaseResult) -> float | None:
    """Return the fraction of a table's rows that pass a statement's filter, by its plan; None if unknown."""
    plan = next((each for each in result.plans if each.template == one.number), None)
    if plan is None:
        return None
    rows = scanned_rows(plan.text, table.name.rpartition(".")[2])
    return None if rows is None or not _rows(table) else rows / _rows(table)


def missing_indexes(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield large tables that a statement scans again and again for a few rows."""
    large = [one for one in result.tables if _rows(one) >= at.LARGE_TABLE_ROWS and one.bytes]
    for one in result.templates:
        sessions = _works(one)
        share = _share(result, sessions)
        if one.number < 0 or not _worth(share, sessions):
            continue
        found = [
            table for table in large if _reads_whole(one, table, result) and _selective(one, table, result)
        ]
        if not found:
            continue
        table = max(found, key=lambda table: table.seq_rows)
        figures = {"table_rows": _rows(table)}
        if one.statements is not None:
            figures["calls"] = float(one.statements.calls)
            figures["rows_a_call"] = one.statements.rows / max(1, one.statements.calls)
        elif table.whole_reads:
            figures["whole_reads"] = table.whole_reads
        yield DatabaseFinding("missing-index", share, sessions, table.name, one.number, one.text, figures)


def _waits(one: TemplateActivity) -> bool:
    """Return whether a writing statement waits for more than half of its working time."""
    on_cpu = sum(part.sessions for part in one.classes if part.name == CPU)
    return _WRITES.match(one.text) is not None and on_cpu < at.WAITS * _works(one)


def slow_statements(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield a slow statement of the application's traffic that takes most of the time."""
    for one in result.templates:
        sessions, figures = _works(one), one.statements
        share = _share(result, sessions)
        if figures is None or not _repeated(one, result) or not _worth(share, sessions, at.SLOW_SHARE):
            continue
        mean_ns = figures.execution_ns / figures.calls
        if mean_ns >= at.SLOW_NS:
            facts = {"calls": float(figures.calls), "mean_ns": mean_ns, "waits": float(_waits(one))}
            yield DatabaseFinding("slow-statement", share, sessions, "", one.number, one.text, facts)


def temporary_files(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield repeated statements that write temporary files in each call."""
    for one in result.templates:
        sessions, figures = _works(one), one.statements
        share = _share(result, sessions)
        if figures is None or not _repeated(one, result) or not _worth(share, sessions, at.SPILL_SHARE):
            continue
        written = figures.temp_written * result.block_bytes / figures.calls
        if written >= at.SPILL_BYTES:
            facts = {"calls": float(figures.calls), "bytes_a_call": written}
            yield DatabaseFinding("temporary-files", share, sessions, "", one.number, one.text, facts)


def jit(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield the time that the server spends compiling repeated statements (jit)."""
    found = [one for one in result.templates if _repeated(one, result)]
    times = [(one.statements.jit_ns or 0.0, one) for one in found if one.statements is not None]
    sessions = sum(time for time, _ in times) / 1e9 / _seconds(result)
    share = _share(result, sessions)
    if times and _worth(share, sessions, at.JIT_SHARE):
        _, top = max(times, key=lambda item: item[0])
        yield DatabaseFinding("jit", share, sessions, "", top.number, top.text)


def row_commits(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield applications that insert rows one by one, each in its own transaction, and wait for the log."""
    for one in result.writers:
        share = _share(result, one.sessions)
        if one.log_share < at.LOG_SHARE or not _worth(share, one.sessions, at.ROW_COMMIT_SHARE):
            continue
        figures = next((each.statements for each in result.templates if each.number == one.template), None)
        if figures is not None and figures.rows > 2 * figures.calls:
            continue
        facts = {"log_share": one.log_share}
        if figures is not None:
            facts["calls"] = float(figures.calls)
        yield DatabaseFinding(
            "row-by-row-commit", share, one.sessions, one.application, one.template, one.text, facts
        )


# ---- space ----


def bloat(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield tables whose empty space costs time in scans, or much disk space."""
    for table in result.tables:
        if not table.bloat_bytes or not table.bytes:
            continue
        part = min(1.0, table.bloat_bytes / table.bytes)
        readers = [one for one in result.templates if _reads_whole(one, table, result)]
        sessions = part * sum(_works(one) for one in readers)
        share = _share(result, sessions)
        costs_time = _worth(share, sessions)
        if costs_time or (part >= at.BLOAT_PART and table.bloat_bytes >= at.BLOAT_BYTES):
            figures = {"bloat_bytes": float(table.bloat_bytes), "bytes": float(table.bytes)}
            cost = (share, sessions) if costs_time else (0.0, 0.0)
            reader = readers[0].number if costs_time else None
            yield DatabaseFinding("bloat", *cost, table.name, reader, figures=figures)


def dead_rows(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield tables with many dead rows for which autovacuum is off, or overdue."""
    off = any(one.name == "autovacuum" and one.value == "off" for one in result.settings)
    for table in result.tables:
        dead = table.dead or 0
        rows = (table.live or 0) + dead
        if dead < at.DEAD_ROWS or dead < at.DEAD_PART * rows:
            continue
        disabled = off or table.autovacuum is False
        since_us = None if table.vacuumed_us is None else max(0, result.watch.ended_us - table.vacuumed_us)
        late = (
            since_us is not None and since_us * 1000 >= at.VACUUM_LATE_NS and dead >= 2 * at.DEAD_PART * rows
        )
        if disabled or late:
            figures = {"dead": float(dead), "rows": float(rows), "disabled": float(disabled)}
            if since_us is not None:
                figures["since_ns"] = since_us * 1000.0
            yield DatabaseFinding("dead-rows", 0.0, 0.0, table.name, figures=figures)


# ---- the whole server ----


def checkpoints(result: DatabaseResult) -> Iterator[DatabaseFinding]:
    """Yield checkpoints forced by the amount of WAL, if most of that WAL is full-page images after them."""
    grown = {
        name: sum(one.delta for one in result.counters if one.counter in names)
        for name, names in (
            ("forced", ("checkpoints_req", "num_requested")),
            ("wal_bytes", ("wal_bytes",)),
            ("pages", ("wal_fpi",)),
        )
    }
    text = next((one.value for one in result.settings if one.name == "max_wal_size"), "")
    try:
        limit = parse_bytes(text) if text else _DEFAULT_WAL
    except ValueError:
        limit = _DEFAULT_WAL
    forced, wal_bytes = grown["forced"], grown["wal_bytes"]
    full = grown["pages"] * result.block_bytes
    if forced < at.EARLY_CHECKPOINTS or wal_bytes < at.CHECKPOINT_PART * limit * forced:
        return
    if full >= at.FULL_PAGES * wal_bytes:
        figures = {"forced": forced, "wal_bytes": wal_bytes, "full_bytes": min(full, wal_bytes)}
        yield DatabaseFinding("checkpoints", 0.0, 0.0, "max_wal_size", figures=figures)
