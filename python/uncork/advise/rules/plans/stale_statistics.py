"""A table whose statistics are missing or out of date, so that statements get a wrong plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule
from uncork.advise.rules.plans.costs import (
    LARGE_ROWS,
    SLOWER,
    duration_ns,
    many_more_rows,
    once_ns,
    relations,
    slower_than_planned,
)
from uncork.advise.rules.plans.outdated import changed_part, never_analysed, outdated
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import count_words, format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.results.database import TableFacts

_FEWER: Final = 10.0
"""How many times fewer rows a call returns than a full scan was expected to, if the planner is mistaken."""
_MORE_WORK: Final = 3.0
"""How many times longer a call takes than reading each of its tables once, if it has no plan to compare."""


def _find(evidence: Evidence) -> Iterator[Finding]:
    for table, facts in evidence.tables.items():
        if not outdated(table, evidence):
            continue
        parts = {
            statement.number: part
            for statement in evidence.costliest()
            if table in relations(statement) and (part := _saved(statement, table, evidence)) > 0
        }
        if not parts:
            continue
        top = evidence.statements[next(iter(parts))]
        never = never_analysed(facts, evidence)
        yield Finding(
            RULE.name,
            f"Table {table} was never analysed, so the planner guesses its rows"
            if never
            else f"Statistics of table {table} are out of date, so the planner is wrong about its rows",
            objects=(table,),
            bill=evidence.bill_of(parts),
            templates=tuple(parts),
            statement=top.text,
            evidence=tuple(_evidence(top, facts, evidence, never=never)),
            candidates=tuple(_candidates(facts, evidence)),
            proof="Compare the statement before and after ANALYZE on a copy with uncork run.",
        )


def _saved(statement: Statement, table: str, evidence: Evidence) -> float:
    """Return which fraction of a statement's time a plan with the right numbers of rows would save."""
    mean = duration_ns(statement, evidence) or 0.0
    if statement.plan is None:
        once = once_ns(relations(statement), evidence)
        return 0.0 if once is None or mean < _MORE_WORK * once else 1 - once / mean
    if (slower_than_planned(statement, evidence) or 0.0) >= SLOWER or _too_few(statement, table):
        once = once_ns(relations(statement), evidence)
        return 0.0 if once is None or not mean else max(0.0, 1 - once / mean)
    return _read_in_vain(statement, table, evidence)


def _too_few(statement: Statement, table: str) -> bool:
    """Return whether an executed plan found many more rows of the table than the planner expected."""
    nodes = () if statement.plan is None else statement.plan.root.walk()
    return any(node.relation == table and many_more_rows(node) for node in nodes)


def _read_in_vain(statement: Statement, table: str, evidence: Evidence) -> float:
    """Return the wasted fraction of a full scan that the planner prefers to an index by mistake."""
    found = statement.a_call(statement.rows)
    plan = statement.plan
    if (
        plan is None
        or found is None
        or statement.shape is None
        or statement.shape.aggregates
        or statement.shape.limit
    ):
        return 0.0
    scan = next((node for node in plan.root.walk() if node.relation == table), None)
    rows = evidence.rows(table)
    if scan is None or scan.kind != "Seq Scan" or rows < LARGE_ROWS or scan.rows < _FEWER * max(1.0, found):
        return 0.0
    compared = {
        predicate.column
        for predicate in statement.shape.predicates
        if predicate.table == table and predicate.operator == "="
    }
    served = any(evidence.indexed(table, column) for column in compared)
    return max(0.0, 1 - found / rows) if served and found <= 0.05 * rows else 0.0


def _evidence(top: Statement, facts: TableFacts, evidence: Evidence, *, never: bool) -> Iterator[str]:
    live = format_count(round(max(facts.live or 0, facts.rows or 0)))
    if never:
        yield f"The table has {live} rows, and no column has statistics."
    else:
        changed = format_count(facts.modified or 0)
        yield (
            f"{changed} rows were changed since the last ANALYZE, {changed_part(facts):.1f} times the "
            f"{live} rows of the table."
        )
    if top.plan is not None and top.mean_ns is not None:
        root, takes = top.plan.root, format_duration(top.mean_ns)
        rows = count_words(round(root.rows), "row")
        yield f"Estimated cost {root.cost:.0f}, {rows}, but a call takes {takes}."
    if facts.autovacuum is False:
        yield "Autovacuum is turned off for the table, so nothing analyses it."


def _candidates(facts: TableFacts, evidence: Evidence) -> Iterator[Candidate]:
    name = sql_name(facts.name)
    yield Candidate(
        "maintenance",
        f"Analyse {facts.name}, and do so after each bulk load.",
        sql=f"ANALYZE {name};",
        against=("Plans of other statements that use the table may change too.",),
    )
    options = evidence.catalogue.options.get(facts.name)
    if facts.autovacuum is False:
        yield Candidate(
            "ddl",
            "Let autovacuum analyse the table.",
            sql=f"ALTER TABLE {name} RESET (autovacuum_enabled);",
            undo=f"ALTER TABLE {name} SET (autovacuum_enabled = off);",
        )
        return
    old = "" if options is None else options.options.get("autovacuum_analyze_scale_factor", "")
    yield Candidate(
        "ddl",
        "Let autovacuum analyse the table after fewer changes.",
        sql=f"ALTER TABLE {name} SET (autovacuum_analyze_scale_factor = 0.02);",
        undo=f"ALTER TABLE {name} SET (autovacuum_analyze_scale_factor = {old});"
        if old
        else f"ALTER TABLE {name} RESET (autovacuum_analyze_scale_factor);",
        against=("Autovacuum checks tables once a minute: run ANALYZE in the job that loads the rows.",),
    )


RULE: Final = Rule("stale-statistics", _find)
