"""Conditions on columns that depend on each other, which the planner multiplies as if independent. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.costs import (
    LARGE_ROWS,
    SLOWER,
    duration_ns,
    many_more_rows,
    once_ns,
    relations,
    slower_than_planned,
)
from uncork.advise.rules.plans.outdated import outdated
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import quoted, sql_name
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode

_FEWER: Final = 5.0
"""How many times fewer rows all conditions must leave than the most selective one, by the planner's estimate.
With less, multiplying them does not change the plan."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
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
    return Finding(
        RULE.name,
        f"The planner takes columns {' and '.join(columns[:3])} of {table} for independent",
        objects=(table, *columns),
        bill=evidence.bill_of({statement.number: max(0.0, 1 - once / mean)}),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"It expects {format_count(node.rows)} rows of {table}; the most selective condition alone "
            f"leaves about {format_count(round(most))}.",
            f"The estimated cost is {statement.plan.root.cost:.0f}, but a call takes {takes}.",
        ),
        candidates=(_statistics(table, columns),),
        proof="Compare the statement with and without the statistics with uncork run.",
    )


def _multiplied(statement: Statement, evidence: Evidence) -> Iterator[tuple[PlanNode, tuple[str, ...]]]:
    """Yield scans of large tables whose estimate is the product of several columns' selectivities.

    Only joins count: a plan of one table is the same for any number of rows.
    """
    if statement.shape is None or statement.plan is None:
        return
    nodes = [node for node in statement.plan.root.walk() if node.relation]
    if len(nodes) < 2:
        return
    for node in nodes:
        rows = evidence.rows(node.relation)
        columns = tuple(
            dict.fromkeys(
                predicate.column
                for predicate in statement.shape.predicates
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


def _statistics(table: str, columns: tuple[str, ...]) -> Candidate:
    schema, _, bare = table.rpartition(".")
    name = sql_name((f"{schema}." if schema else "") + f"{'_'.join((bare, *columns))[:58]}_stat")
    keys = ", ".join(map(quoted, columns))
    return Candidate(
        "ddl",
        f"Create statistics over the columns together, and analyse {table}.",
        sql=f"CREATE STATISTICS {name} (ndistinct, dependencies, mcv) ON {keys} "
        f"FROM {sql_name(table)}; ANALYZE {sql_name(table)};",
        undo=f"DROP STATISTICS {name};",
        against=("ANALYZE and planning take a little longer.",),
    )


RULE: Final = Rule("correlated-columns", each_statement(_find))
