"""Statistics of the planner that are out of date, or that lack how columns depend on each other. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Final

from uncork.diagnosis.changes import TableOptions, autovacuum_on, ddl_change, maintenance
from uncork.diagnosis.evidence import Evidence, Statement
from uncork.diagnosis.rule import finding, rule, statement_rule
from uncork.diagnosis.rules.plans.costs import (
    LARGE_ROWS,
    SLOWER,
    duration_ns,
    many_more_rows,
    once_ns,
    relations,
    slower_than_planned,
)
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.plan import PlanNode
from uncork.model.results.database import TableFacts
from uncork.model.units import count_words, format_count, format_duration

# ---- whether the planner's statistics of a table describe its rows ----


_CHANGED: Final = 0.25
"""Fraction of the rows changed since the last ANALYZE. Autovacuum analyses a table after a tenth
(autovacuum_analyze_scale_factor), and looks once a minute."""
_LEAST: Final = 1_000
"""Changed rows below which a table is small enough for any plan."""


def never_analysed(facts: TableFacts, evidence: Evidence) -> bool:
    """Return whether a table has no statistics. An unreadable catalogue counts as statistics."""
    columns = evidence.catalogue.columns.get(facts.name, ())
    if any(column.distinct is not None for column in columns):
        return False
    if facts.analysed_us is not None:
        return False
    if evidence.is_standby:
        return facts.rows is None  # a standby has the primary's statistics, but does not know their time
    # Without reltuples, neither VACUUM, ANALYZE nor CREATE INDEX has ever counted the rows.
    return facts.rows is None or bool(columns)


def changed_part(facts: TableFacts) -> float:
    """Return how many rows were changed since the last ANALYZE, as a multiple of the table's rows."""
    return (facts.modified or 0) / max(1.0, float(facts.live or 0), facts.rows or 0.0)


def outdated(table: str, evidence: Evidence) -> bool:
    """Return whether a table was never analysed, or not since much of it changed."""
    facts = evidence.tables.get(table)
    if facts is None or max(float(facts.live or 0), facts.rows or 0.0) < _LEAST:
        return False
    if never_analysed(facts, evidence):
        return True
    return (facts.modified or 0) >= _LEAST and changed_part(facts) >= _CHANGED


def misled(statement: Statement, table: str, evidence: Evidence) -> bool:
    """Return whether a table's statistics are the reason why a statement works longer than its scans take."""
    return outdated(table, evidence) and (slower_than_planned(statement, evidence) or 0.0) >= SLOWER


_FEWER_ROWS: Final = 10.0
"""How many times fewer rows a call returns than a full scan was expected to, if the planner is mistaken."""
_MORE_WORK: Final = 3.0
"""How many times longer a call takes than reading each of its tables once, if it has no plan to compare."""


@rule("stale-statistics")
def find_stale(evidence: Evidence) -> Iterator[Finding]:
    """Find a table whose statistics are missing or out of date, so that statements get a wrong plan."""
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
        yield finding(
            f"Table {table} was never analysed, so the planner guesses its rows"
            if never
            else f"Statistics of table {table} are out of date, so the planner is wrong about its rows",
            *_analyse(facts, evidence),
            objects=(table,),
            bill=evidence.bill_of(parts),
            statements=evidence.chosen(parts),
            evidence=_evidence(top, facts, evidence, never=never),
            proof="Compare the statement before and after ANALYZE on a copy with uncork run.",
        )


def _saved(statement: Statement, table: str, evidence: Evidence) -> float:
    """Return which fraction of a statement's time a plan with the right numbers of rows would save."""
    mean = duration_ns(statement, evidence) or 0.0
    if statement.plan is None:
        once = once_ns(relations(statement), evidence)
        return 0.0 if once is None or mean < _MORE_WORK * once else 1 - once / mean
    more = any(node.relation == table and many_more_rows(node) for node in statement.nodes)
    if (slower_than_planned(statement, evidence) or 0.0) >= SLOWER or more:
        once = once_ns(relations(statement), evidence)
        return 0.0 if once is None or not mean else max(0.0, 1 - once / mean)
    return _read_in_vain(statement, table, evidence)


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
    if (
        scan is None
        or scan.kind != "Seq Scan"
        or rows < LARGE_ROWS
        or scan.rows < _FEWER_ROWS * max(1.0, found)
    ):
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
            f"{changed} rows were changed since the last ANALYZE, {changed_part(facts):.1f} times "
            f"the {live} rows of the table."
        )
    if top.plan is not None and top.mean_ns is not None:
        root, takes = top.plan.root, format_duration(top.mean_ns)
        rows = count_words(round(root.rows), "row")
        yield f"Estimated cost {root.cost:.0f}, {rows}, but a call takes {takes}."
    if facts.autovacuum is False:
        yield "Autovacuum is turned off for the table, so nothing analyses it."


def _analyse(facts: TableFacts, evidence: Evidence) -> Iterator[Candidate]:
    yield maintenance(
        f"Analyse {facts.name}, and do so after each bulk load.",
        "Plans of other statements that use the table may change too.",
        sql=f"ANALYZE {sql_name(facts.name)};",
    )
    if facts.autovacuum is False:
        yield autovacuum_on(facts.name, "Let autovacuum analyse the table.")
        return
    new = {"autovacuum_analyze_scale_factor": "0.02"}
    yield TableOptions(facts.name, new, evidence.options(facts.name)).candidate(
        "Let autovacuum analyse the table after fewer changes.",
        "Autovacuum checks tables once a minute: run ANALYZE in the job that loads the rows.",
    )


_FEWER: Final = 5.0
"""How many times fewer rows all conditions must leave than the most selective one, by the planner's
estimate. With less, multiplying them does not change the plan."""


@statement_rule("correlated-columns")
def find_correlated(statement: Statement, evidence: Evidence) -> Finding | None:
    """Find conditions on columns that depend on each other, which the planner takes for independent."""
    if statement.plan is None or any(outdated(table, evidence) for table in relations(statement)):
        return None
    mean = duration_ns(statement, evidence)
    scan = next(iter(_multiplied(statement, evidence)), None)
    once = once_ns(relations(statement), evidence)
    if scan is None or once is None or not mean:
        return None
    node, columns = scan
    if not many_more_rows(node) and (slower_than_planned(statement, evidence) or 0.0) < SLOWER:
        return None
    table, takes = node.relation, format_duration(mean)
    most = min(evidence.rows(table) / (evidence.distinct(table, column) or 1.0) for column in columns)
    return finding(
        f"The planner takes columns {' and '.join(columns[:3])} of {table} for independent",
        _together(table, columns),
        objects=(table, *columns),
        bill=evidence.bill_of({statement.number: max(0.0, 1 - once / mean)}),
        statements=[statement],
        evidence=(
            f"It expects {format_count(node.rows)} rows of {table}; the most selective condition "
            f"alone leaves about {format_count(round(most))}.",
            f"The estimated cost is {statement.plan.root.cost:.0f}, but a call takes {takes}.",
        ),
        proof="Compare the statement with and without the statistics with uncork run.",
    )


def _multiplied(statement: Statement, evidence: Evidence) -> Iterator[tuple[PlanNode, tuple[str, ...]]]:
    """Yield scans of large tables whose estimate is the product of several columns' selectivities.

    Only joins count: a plan of one table is the same for any number of rows.
    """
    nodes = [node for node in statement.nodes if node.relation]
    for node in nodes if len(nodes) > 1 else ():
        rows = evidence.rows(node.relation)
        columns = tuple(
            dict.fromkeys(
                predicate.column
                for predicate in statement.predicates
                if predicate.table == node.relation
                and predicate.alias in {"", node.alias}
                and predicate.column
                and predicate.operator == "="
                and predicate.value in {"parameter", "constant"}
                and not predicate.alternative
            )
        )
        each_rows = [
            rows / distinct for name in columns if (distinct := evidence.distinct(node.relation, name))
        ]
        if rows < LARGE_ROWS or len(columns) < 2 or len(each_rows) < len(columns):
            continue
        product = rows * prod(each_row / rows for each_row in each_rows)
        if node.rows * _FEWER <= min(each_rows) and product * _FEWER <= min(each_rows):
            yield node, columns


def _together(table: str, columns: tuple[str, ...]) -> Candidate:
    schema, _, bare = table.rpartition(".")
    name = sql_name((f"{schema}." if schema else "") + f"{'_'.join((bare, *columns))[:58]}_stat")
    keys = ", ".join(map(quoted, columns))
    return ddl_change(
        f"Create statistics over the columns together, and analyse {table}.",
        "ANALYZE and planning take a little longer.",
        sql=f"CREATE STATISTICS {name} (ndistinct, dependencies, mcv) ON {keys} "
        f"FROM {sql_name(table)}; ANALYZE {sql_name(table)};",
        undo=f"DROP STATISTICS {name};",
    )
