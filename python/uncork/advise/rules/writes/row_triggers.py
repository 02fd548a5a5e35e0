"""Triggers that run once for each row of statements that write many rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import WORK, Evidence, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.indexes.problems import scanned_within
from uncork.advise.rules.writes.written import one_row, written
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import format_count, share_text

if TYPE_CHECKING:
    from uncork.model.database.catalogue import FunctionFacts, TriggerFacts

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


def _find(evidence: Evidence) -> Iterator[Finding]:
    if not evidence.catalogue.triggers:
        return
    functions = {function.name.rpartition(".")[2]: function for function in evidence.catalogue.functions}
    for statement in evidence.costliest():
        what = written(statement)
        rows = statement.a_call(statement.rows)
        if what is None or what.kind == "lock" or rows is None or rows < _ROWS:
            continue
        events = {what.kind, "update"} if what.upsert else {what.kind}
        for trigger in evidence.catalogue.triggers:
            fits = trigger.per_row and trigger.enabled and events.intersection(map(str.lower, trigger.events))
            if trigger.table != what.table or not fits:
                continue
            function = functions.get(trigger.function.partition("(")[0].rpartition(".")[2])
            part = _part(statement, trigger, function, rows)
            if _single_rows_dominate(trigger, evidence):
                continue
            scans = function is not None and scanned_within(statement, function.name, part, evidence)
            if part and not scans:
                yield _finding(statement, trigger, function, rows, part, evidence)


def _single_rows_dominate(trigger: TriggerFacts, evidence: Evidence) -> bool:
    """Return whether statements of single rows would lose more time than the others save."""
    events = set(map(str.lower, trigger.events))
    single, many = 0, 0
    for statement in evidence.statements.values():
        what = written(statement)
        if what is None or what.table != trigger.table or what.kind not in events or not statement.calls:
            continue
        if one_row(statement):
            single += statement.calls
        else:
            many += statement.rows or 0
    return many < _ROWS_FOR_ONE * single


def _part(statement: Statement, trigger: TriggerFacts, function: FunctionFacts | None, rows: float) -> float:
    """Return the fraction of a statement's time that a trigger takes: executed, counted, or estimated."""
    plan = statement.plan
    if plan is not None and plan.source == "executed" and plan.root.milliseconds:
        taken = sum(took for name, took in plan.triggers if name == trigger.name)
        return min(1.0, taken / (plan.root.milliseconds + taken)) if taken else 0.0
    whole_ms = (statement.mean_ns or 0.0) * (statement.calls or 0) / 1e6
    if function is not None and function.total_ms is not None and function.calls:
        return min(1.0, function.total_ms / whole_ms) if whole_ms else 0.0
    if function is None or not _QUERY.search(function.source):
        return 0.0
    a_row_s = (statement.mean_ns or 0.0) / rows / 1e9
    return max(0.0, 1.0 - _SINGLE_S / a_row_s) if a_row_s else 0.0


def _finding(
    statement: Statement,
    trigger: TriggerFacts,
    function: FunctionFacts | None,
    rows: float,
    part: float,
    seen: Evidence,
) -> Finding:
    each = format_count(round(rows))
    source = "" if function is None else function.source
    changes = trigger.timing == "before" or _CHANGES_ROW.search(source) is not None
    counted = function is not None and function.total_ms is not None
    estimated = "" if counted else ", as its time per row suggests"
    evidence = [
        f"A call writes {each} rows, and executes function {trigger.function} for each of them.",
        f"This takes {share_text(part)} of the statement's time{estimated}.",
    ]
    return RULE.finding(
        f"Trigger {trigger.name} on {trigger.table} runs for each of {each} rows a call",
        objects=(trigger.table, trigger.name),
        bill=seen.bill_of({statement.number: part}, WORK | {"Lock"}),
        statements=[statement],
        evidence=evidence,
        candidates=_candidates(trigger, function, seen, changes=changes),
        proof="Compare both triggers with uncork run, with statements that write as many rows.",
    )


def _candidates(
    trigger: TriggerFacts, function: FunctionFacts | None, evidence: Evidence, *, changes: bool
) -> Iterator[Candidate]:
    turned = None if function is None else _turned(trigger, function, evidence)
    if turned is not None:
        yield turned
        return
    if changes:
        yield Candidate(
            "ddl",
            f"Set the columns that {trigger.name} computes by defaults, generated columns or the statement "
            "itself, and drop the trigger.",
        )
        return
    yield Candidate(
        "ddl",
        f"Write a trigger FOR EACH STATEMENT in place of {trigger.name}. Its function reads the transition "
        "table: it adds up the rows of each key first, and then writes one row for each key.",
        against=("A statement that writes a single row becomes slower. Try it on a copy first.",),
    )


def _turned(trigger: TriggerFacts, function: FunctionFacts, evidence: Evidence) -> Candidate | None:
    """Return the trigger that does the same for all rows of a statement at once; None if none surely does.

    A transition table shows the rows of one event, after they were written. Statement-level triggers of a
    partition do not fire if a statement names its parent, or the other way round.
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
    fired = {one.table for one in evidence.catalogue.triggers if one.enabled}
    # Triggers of the tables that it writes would run once for a group of rows.
    if body is None or any(
        table in fired or table not in evidence.catalogue.columns for table in body.tables
    ):
        return None
    name, table = f"{trigger.name}_all", sql_name(trigger.table)
    new_function = f"{sql_name(f'{function.name}_all')}()"
    table_kind = "NEW" if event == "insert" else "OLD"
    by_key = _BY_KEY if body.joins else ""
    return Candidate(
        "ddl",
        f"Replace {trigger.name} by a trigger FOR EACH STATEMENT that handles all rows at once.",
        sql=f"CREATE FUNCTION {new_function} RETURNS trigger LANGUAGE plpgsql{by_key} AS $body$\n"
        f"{body.source}\n$body$;\n"
        f"DROP TRIGGER {quoted(trigger.name)} ON {table};\n"
        f"CREATE TRIGGER {quoted(name)} AFTER {event.upper()} ON {table} REFERENCING {table_kind} TABLE AS "
        f"{_RECORDS[event]}_rows FOR EACH STATEMENT EXECUTE FUNCTION {new_function};",
        undo=f"DROP TRIGGER {quoted(name)} ON {table};\n{trigger.definition};\nDROP FUNCTION {new_function};",
        against=(
            "It runs after all rows of the statement were written, so other triggers of these rows do not "
            f"see what it writes. Function {function.name} stays, in case other triggers use it.",
            "A statement that writes a single row becomes slower.",
            "If the old one is ENABLE ALWAYS or REPLICA, rows of logical replication do not fire this one.",
        ),
        check=body.check,
        tried_first=True,
    )


RULE: Final = Rule("row-trigger", _find, depth=2)
