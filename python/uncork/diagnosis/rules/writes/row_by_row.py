"""Work that clients repeat: rows written one by one, and temporary tables created again and again. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from uncork.diagnosis.changes import client_change, ddl_change, session_setting, statement_change
from uncork.diagnosis.evidence import WORK, Evidence, Piece, Statement
from uncork.diagnosis.rule import finding, rule, statement_rule
from uncork.diagnosis.rules.indexes.problems import scanned_within
from uncork.diagnosis.rules.writes.written import Written, batched, one_row, written
from uncork.model.database.catalogue import FunctionFacts, TriggerFacts
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.results.database_transactions import RowWriter
from uncork.model.results.log import LogResult, Repetition, TemplateFacts
from uncork.model.units import count_words, format_count, format_duration, share_text

_SHARE: Final = 0.3
"""Fraction of the busy time of sessions that only write single rows. Below it, they are an event
log beside the real work."""
_LOG_SHARE: Final = 0.5
"""Fraction of their time in which their statements do not execute: they commit, or wait for the
client. From half on, larger transactions make them at least twice as fast."""
_SESSIONS: Final = 3
"""Most sessions that write rows one by one as a job in a loop. More serve independent requests."""
_ONE_ROW: Final = 2.0
_CALLS: Final = 500
"""Fewest executions during the watch; a minute of a slow disk has thousands."""
_LITTLE_ELSE: Final = 0.1
"""Most other statements of the role for each execution. So many of the executions, at most, can have followed
another statement than the write; all others directly followed a write of the same session."""
_SAMPLES: Final = 50
"""Fewest samples in which the sessions worked."""
_EVEN: Final = 0.5
"""Fewest seconds of the least busy session for each of the busiest. A pool may keep most requests on its
first connections. ``tests/calibration/test_row_writers.py`` simulates pools of each kind: with so many
samples and this evenness, requests of four clients or more pass for a loop in at most 2 % of watches."""
_GAP_NS: Final = 20e6
"""Longest mean time between two executions of a session. A client that takes longer does something
else in between."""
_IDLE: Final = 0.1
"""Most of their time that sessions which commit each statement can be idle in transaction."""
_CYCLES: Final = 10.0
"""Longest transaction of one row, in mean times between two executions of a session. Samples prefer
the long ones, of which a busy machine has many."""
_COMMITS: Final = 0.8
"""Fewest commits of the database for each execution."""
_CONTROL: Final = re.compile(r"(?:begin|start transaction|commit|end)\b")
_VERBS: Final = {"insert": "Insert", "update": "Update", "delete": "Delete", "lock": "Lock"}
_REQUESTS: Final = (
    "If the rows come from independent requests, such as those of a pooler or a queue, each needs "
    "its own commit."
)


def writes_many_rows(writer: RowWriter, seconds: float) -> bool:
    """Return whether so few sessions execute a write so often, and little else, that they are a loop."""
    # All waits between executions, if each session worked during the whole watch.
    waiting_s = max(0.0, writer.processes - writer.sessions) * seconds
    return (
        writer.calls >= _CALLS
        and writer.others <= _LITTLE_ELSE * writer.calls
        and writer.processes <= _SESSIONS
        and writer.samples >= _SAMPLES
        and writer.evenness >= _EVEN
        and waiting_s * 1e9 / writer.calls <= _GAP_NS
    )


def _commits_each(writer: RowWriter, evidence: Evidence) -> bool:
    """Return whether a writer commits each row, in a transaction for each or without.

    The server does not count a BEGIN that a driver has prepared, but samples show how old transactions are.
    """
    if evidence.rates is not None and evidence.rates.commits * evidence.seconds < _COMMITS * writer.calls:
        return False
    own = (
        transaction
        for transaction in evidence.transactions
        if (transaction.user, transaction.template) == (writer.user, writer.template)
    )
    longest_ns = max((transaction.length_ns for transaction in own), default=0)
    cycle_ns = writer.processes * evidence.seconds * 1e9 / writer.calls
    return writer.idle_share <= _IDLE or longest_ns <= _CYCLES * cycle_ns


@rule("row-by-row-commit")
def find_commits(evidence: Evidence) -> Iterator[Finding]:
    """Find rows written one by one, each with a commit of its own.

    Requests that each write one row look the same in samples, and each needs its own commit. One
    client that writes many rows differs in what can be counted: its role executes thousands of
    these statements and little else, by few sessions, each of which sends the next at once. In a
    log, plans and durations show the same.
    """
    control = {
        statement.number for statement in evidence.statements.values() if _CONTROL.match(statement.text)
    }
    for writer in () if evidence.database is None else evidence.database.writers:
        if not writes_many_rows(writer, evidence.seconds) or not _commits_each(writer, evidence):
            continue
        statement = evidence.statements.get(writer.template, Statement(writer.template, writer.text))
        write = written(statement)
        rows = statement.a_call(statement.rows)
        executing_s = (statement.mean_ns or 0.0) * writer.calls / 1e9
        if write is None or (rows is not None and rows > _ONE_ROW):
            continue
        if executing_s > (1 - _LOG_SHARE) * writer.processes * evidence.seconds:
            continue
        name = writer.application or writer.user
        who = f"Application {name}" if writer.application else f"Role {name}"
        yield finding(
            f"{who} {write.words(writer.calls)} with a commit for each",
            *_fewer_commits(write, statement, evidence),
            objects=(name, write.table),
            bill=evidence.bill(partial(_spent, writer, control)),
            statements=[Statement(writer.template, writer.text)],
            evidence=_evidence(writer, evidence),
            against=(_REQUESTS,),
            proof="Compare a commit a row with larger transactions in uncork run: the batch strategies.",
        )


def _evidence(writer: RowWriter, evidence: Evidence) -> Iterator[str]:
    each = format_duration(writer.processes * evidence.seconds * 1e9 / writer.calls)
    yield (
        f"Role {writer.user} executed it {format_count(writer.calls)} times during the watch, and "
        f"all other statements {format_count(writer.others)} times."
    )
    yield f"{count_words(writer.processes, 'session')} sent it, one row each {each} per session."
    yield f"They wait for the write-ahead log in {share_text(writer.log_share)} of their busy time."


def _fewer_commits(write: Written, statement: Statement, evidence: Evidence) -> tuple[Candidate, ...]:
    return (
        client_change(
            f"{_VERBS[write.kind]} many rows with one statement, or commit once for many rows.",
            sql=batched(statement, evidence),
            habit="commits each",
        ),
        session_setting("synchronous_commit", "off").candidate(
            "Let these sessions not wait for the disk, with synchronous_commit = off.",
            "A crash of the server loses the commits of the last moments.",
        ),
    )


def _spent(writer: RowWriter, control: Collection[int | None], piece: Piece) -> float:
    """Return 1 for the writer's time, except while it waits for locks: fewer commits do not shorten that."""
    of_writer = piece.template == writer.template or piece.template in control
    return float(piece.user == writer.user and of_writer and piece.wait_class != "Lock")


_LONGEST: Final = 50
"""Executions in a row by one session, with nothing in between, that show a job."""
_IN_ROWS: Final = 0.9
"""Least fraction of a template's executions in rows of one session. More sessions than a job has,
or other statements in between, show requests."""


@rule("row-by-row-commit", least_share=_SHARE)
def find_commits_in_log(evidence: Evidence) -> Iterator[Finding]:
    """Find the same in a log: a plan ends long before the duration of its statement.

    A watched server shows the waits for the write-ahead log themselves, so it is asked instead.
    """
    log = evidence.log
    if log is None or evidence.database is not None:
        return
    for template in log.templates:
        row, statement = template.repetition, evidence.statements.get(template.number)
        if row is None or statement is None or row.longest < _LONGEST or not _alone(template, row, log):
            continue
        if row.pipelined or row.rows > _SESSIONS or row.executions < _IN_ROWS * template.executions:
            continue
        committing = _committing(template, statement)
        if committing is None or committing < _LOG_SHARE:
            continue
        write = written(statement)
        if write is None or not one_row(statement):
            continue
        name = next((application.name for application in template.applications), "")
        who = f"Application {name}" if name else "A client"
        yield finding(
            f"{who} {write.words(template.executions)} with a commit for each",
            *_fewer_commits(write, statement, evidence),
            objects=(*((name,) if name else ()), write.table),
            bill=evidence.bill_of((template.number,)),
            statements=[statement],
            evidence=(
                f"An execution takes {format_duration(template.mean_ns)}. Its plan has ended after at most "
                f"{share_text(1 - committing)} of that: then the commit waits for the write-ahead log."
            ),
            proof="Compare a commit a row with larger transactions in uncork run: the batch strategies.",
        )


def _alone(template: TemplateFacts, row: Repetition, log: LogResult) -> bool:
    """Return whether a row of executions is longer than any transaction of its applications."""
    names = {application.name for application in template.applications} or {""}
    return all(
        transaction.statements_max < row.longest
        for transaction in log.transactions
        if transaction.application in names
    )


def _committing(template: TemplateFacts, statement: Statement) -> float | None:
    """Return the least fraction of an execution's time after its plan; None if no plan was logged.

    Logs keep the plan of the slowest execution.
    """
    plan = statement.plan
    if plan is None or plan.root.milliseconds is None or not template.mean_ns:
        return None
    spent_ms = plan.root.milliseconds + sum(milliseconds for _, milliseconds in plan.triggers)
    return max(0.0, 1 - spent_ms * 1e6 / template.mean_ns)


_ROWS: Final = 20.0
"""Rows per call from which on a statement-level trigger saves most calls of the function."""
_ROWS_FOR_ONE: Final = 4.0
"""Rows of larger statements that make up for one statement that writes a single row.

Processor time on PostgreSQL 18, with 50 or 50 000 counters: a statement of one row takes 0.02 to 0.03 ms
longer with a statement-level trigger; one of 50 or 1 000 rows takes 0.005 to 0.010 ms less for each row.
"""
_SINGLE_S: Final = 20e-6
"""Time to write a row of a table with an index or two, from shared buffers. A row that takes longer, in a
table whose trigger executes statements, spends the rest in the trigger. Used only if nothing was counted."""
_QUERY: Final = re.compile(r"\b(?:select|insert\s+into|update|delete\s+from|perform)\b", re.IGNORECASE)
_BY_KEY: Final = "\nSET enable_hashjoin = off SET enable_mergejoin = off"
"""Look up each key of the written table. The first statement of a session decides the plan: one of 1 000 rows
leads to a scan of the whole table, with which single rows took 4 ms instead of 0.1 ms."""
_RECORDS: Final = {"insert": "new", "delete": "old"}
"""The record that a trigger reads, by its event. An update has both, whose rows would have to be matched."""
_PLAIN: Final = re.compile(
    r"^CREATE TRIGGER .* FOR EACH ROW EXECUTE (?:FUNCTION|PROCEDURE) [^()]*\(\)$", re.IGNORECASE | re.DOTALL
)
"""A definition without a condition (WHEN) and without arguments of the function; not a constraint trigger."""
_CHANGES_ROW: Final = re.compile(r"\bnew\s*\.\s*\"?\w+\"?\s*:?=(?!=)|\bnew\s*:=", re.IGNORECASE)


@rule("row-trigger", depth=2)
def find_triggers(evidence: Evidence) -> Iterator[Finding]:
    """Find triggers that run once for each row of statements that write many rows."""
    if not evidence.catalogue.triggers:
        return
    functions = {function.name.rpartition(".")[2]: function for function in evidence.catalogue.functions}
    for statement in evidence.costliest():
        write = written(statement)
        rows = statement.a_call(statement.rows)
        if write is None or write.kind == "lock" or rows is None or rows < _ROWS:
            continue
        for trigger in evidence.catalogue.triggers:
            if not trigger.per_row or not trigger.fires_for(write.table, write.events):
                continue
            function = functions.get(trigger.function.partition("(")[0].rpartition(".")[2])
            part = _part(statement, trigger, function, rows)
            if _single_rows_dominate(trigger, evidence):
                continue
            scans = function is not None and scanned_within(statement, function.name, part, evidence)
            if part and not scans:
                each = format_count(round(rows))
                source = "" if function is None else function.source
                changes = trigger.timing == "before" or _CHANGES_ROW.search(source) is not None
                measured = _measured_part(statement, trigger, function) is not None
                estimated = "" if measured else ", as its time per row suggests"
                sentences = [
                    f"A call writes {each} rows, and executes function {trigger.function} for each of them.",
                    f"This takes {share_text(part)} of the statement's time{estimated}.",
                ]
                yield finding(
                    f"Trigger {trigger.name} on {trigger.table} runs for each of {each} rows a call",
                    *_fewer_triggers(trigger, function, evidence, changes=changes),
                    objects=(trigger.table, trigger.name),
                    bill=evidence.bill_of({statement.number: part}, WORK | {"Lock"}),
                    statements=[statement],
                    evidence=sentences,
                    proof="Compare both triggers with uncork run, with statements that write as many rows.",
                )


def _single_rows_dominate(trigger: TriggerFacts, evidence: Evidence) -> bool:
    events = set(map(str.lower, trigger.events))
    single, many = 0, 0
    for statement in evidence.statements.values():
        write = written(statement)
        if write is None or write.table != trigger.table or write.kind not in events or not statement.calls:
            continue
        if one_row(statement):
            single += statement.calls
        else:
            many += statement.rows or 0
    return many < _ROWS_FOR_ONE * single


def _part(statement: Statement, trigger: TriggerFacts, function: FunctionFacts | None, rows: float) -> float:
    """Return the fraction of a statement's time that a trigger takes: measured, or else estimated."""
    measured = _measured_part(statement, trigger, function)
    if measured is not None:
        return measured
    if function is None or not _QUERY.search(function.source):
        return 0.0
    a_row_s = (statement.mean_ns or 0.0) / rows / 1e9
    return max(0.0, 1.0 - _SINGLE_S / a_row_s) if a_row_s else 0.0


def _measured_part(
    statement: Statement, trigger: TriggerFacts, function: FunctionFacts | None
) -> float | None:
    """Return that fraction from an executed plan, or from the function's counters; None without both."""
    plan = statement.plan
    if plan is not None and plan.source == "executed" and plan.root.milliseconds:
        taken = sum(took for name, took in plan.triggers if name == trigger.name)
        return min(1.0, taken / (plan.root.milliseconds + taken)) if taken else 0.0
    whole_ms = (statement.mean_ns or 0.0) * (statement.calls or 0) / 1e6
    if function is not None and function.total_ms is not None and function.calls:
        return min(1.0, function.total_ms / whole_ms) if whole_ms else 0.0
    return None


def _fewer_triggers(
    trigger: TriggerFacts, function: FunctionFacts | None, evidence: Evidence, *, changes: bool
) -> Iterator[Candidate]:
    turned = None if function is None else _turned(trigger, function, evidence)
    if turned is not None:
        yield turned
        return
    if changes:
        yield ddl_change(
            f"Set the columns that {trigger.name} computes by defaults, generated columns or the "
            "statement itself, and drop the trigger."
        )
        return
    yield ddl_change(
        f"Write a trigger FOR EACH STATEMENT in place of {trigger.name}. Its function reads the transition "
        "table: it adds up the rows of each key first, and then writes one row for each key.",
        "A statement that writes a single row becomes slower. Try it on a copy first.",
    )


def _turned(trigger: TriggerFacts, function: FunctionFacts, evidence: Evidence) -> Candidate | None:
    """Return the trigger that does the same for all rows of a statement at once; None if none surely does.

    A transition table shows the rows of one event, after they were written. Statement-level
    triggers of a partition do not fire if a statement names its parent, or the other way round.
    """
    event = trigger.events[0].lower() if len(trigger.events) == 1 else ""
    options = evidence.catalogue.options.get(trigger.table)
    alone = options is None or not (options.partition_key or options.parent)
    plain = trigger.timing == "after" and _PLAIN.search(trigger.definition) is not None
    if event not in _RECORDS or not alone or not plain:
        return None
    if function.language != "plpgsql" or function.configured is not False:
        return None
    body = evidence.turn_body(function.source, _RECORDS[event], trigger.table)
    fired = {other.table for other in evidence.catalogue.triggers if other.enabled}
    # Triggers of the tables that it writes would run once for a group of rows.
    if body is None or any(
        table in fired or table not in evidence.catalogue.columns for table in body.tables
    ):
        return None
    name, table = f"{trigger.name}_all", sql_name(trigger.table)
    new_function = f"{sql_name(f'{function.name}_all')}()"
    table_kind = "NEW" if event == "insert" else "OLD"
    by_key = _BY_KEY if body.joins else ""
    return ddl_change(
        f"Replace {trigger.name} by a trigger FOR EACH STATEMENT that handles all rows at once.",
        "It runs after all rows of the statement were written, so other triggers of these rows do "
        f"not see what it writes. Function {function.name} stays, in case other triggers use it.",
        "A statement that writes a single row becomes slower.",
        "If the old one is ENABLE ALWAYS or REPLICA, rows of logical replication do not fire this one.",
        sql=f"CREATE FUNCTION {new_function} RETURNS trigger LANGUAGE plpgsql{by_key} AS $body$\n"
        f"{body.source}\n$body$;\n"
        f"DROP TRIGGER {quoted(trigger.name)} ON {table};\n"
        f"CREATE TRIGGER {quoted(name)} AFTER {event.upper()} ON {table} REFERENCING {table_kind} "
        f"TABLE AS {_RECORDS[event]}_rows FOR EACH STATEMENT EXECUTE FUNCTION {new_function};",
        undo=f"DROP TRIGGER {quoted(name)} ON {table};\n{trigger.definition};\nDROP FUNCTION {new_function};",
        check=body.check,
        tried_first=True,
    )


# ---- temporary tables that clients create again and again ----


_CREATE: Final = re.compile(
    r"(?:create\s+(?:local\s+|global\s+)?temp(?:orary)?\s+table|select\b.*?\binto\s+temp(?:orary)?(?:\s+table)?)"
    r"\s+(?:if\s+not\s+exists\s+)?(?:pg_temp\.)?\"?([\w$]+)",
    re.DOTALL,
)
_COLUMNS: Final = re.compile(
    r"(create\s+[\w ]*?table)\s+(?:if\s+not\s+exists\s+)?([\w$.\"]+\s*\(.*\))(?:\s+on\s+commit\s+[\w ]+)?$",
    re.DOTALL | re.IGNORECASE,
)
"""CREATE TABLE with a list of columns."""
_DROPS: Final = r"(?:drop\s+table|truncate)\s.*(?<![\w$]){name}(?![\w$])"
_CATALOGUE_ROWS: Final = 12
"""Rows that a temporary table adds to pg_class, pg_type, pg_attribute and pg_depend at least: it
has six system columns besides its own. Each becomes a dead row when the table goes."""


@statement_rule("temporary-tables")
def find_temporary_tables(statement: Statement, seen: Evidence) -> Finding | None:
    """Find a statement that creates a temporary table again and again."""
    match = _CREATE.match(statement.text)
    if match is None:
        return None
    name = match[1]
    calls = max(statement.calls or 0, _filled(name, seen))
    if not seen.is_traffic(replace(statement, calls=calls)):
        return None
    dropping = re.compile(_DROPS.format(name=re.escape(name)), re.DOTALL)
    drops = [each for each in seen.statements.values() if dropping.match(each.text)]
    rows = format_count(round(_CATALOGUE_ROWS * calls / seen.seconds))
    evidence = [
        f"Each creates and drops rows of the system catalogue, at least {rows} a second, which "
        "every session must then skip until VACUUM removes them."
    ]
    dropped = sum(seen.busy(drop.number) for drop in drops)
    if dropped:
        evidence.append(
            f"Dropping or truncating it takes {share_text(seen.share(dropped))} of the busy time."
        )
    match = _COLUMNS.match((statement.sql or statement.text).rstrip("; "))
    return finding(
        f"Temporary table {name} is created {count_words(calls, 'time')}",
        statement_change(
            f"Do without {name}: pass a list of values as an array (unnest), and intermediate "
            "rows as a common table expression (WITH)."
        ),
        client_change(
            f"Create {name} once for each connection, with IF NOT EXISTS, and empty it by ON "
            "COMMIT DELETE ROWS.",
            "A pooler in transaction mode may give each transaction another session.",
            sql=f"{match[1]} IF NOT EXISTS {match[2]} ON COMMIT DELETE ROWS;" if match else "",
            undo=f"DROP TABLE {sql_name(name)};",
        ),
        objects=(name,),
        bill=seen.bill_of({statement.number, *(drop.number for drop in drops)}, WORK | {"Lock"}),
        statements=[statement, *drops],
        evidence=evidence,
        proof="Compare both ways with uncork run, over more rounds than VACUUM needs to come by.",
    )


def _filled(name: str, evidence: Evidence) -> int:
    """Return how often rows were written to a table.

    PostgreSQL counts only the first execution of a CREATE TABLE that a driver has prepared.
    """
    inserts = (statement for statement in evidence.statements.values() if statement.text.startswith("insert"))
    filling = (insert for insert in inserts if (write := written(insert)) and write.table == name)
    return max((insert.calls or 0 for insert in filling), default=0)
