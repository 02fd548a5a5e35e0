"""Conditions on columns that depend on each other, which the planner multiplies as if independent. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, worth
from uncork.advise.rules.plans.costs import (
    LARGE_ROWS,
    SLOWER,
    duration_ns,
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

_WRONG: Final = 10.0
"""Ratio of the numbers of rows found and expected, from which on the planner chooses another join."""
_FEWER: Final = 5.0
"""How many times fewer rows all conditions must leave than the most selective one, by the planner's estimate.
With less, multiplying them does not change the plan."""


def _find(seen: Evidence) -> Iterator[Finding]:
    for statement in seen.costliest():
        if statement.plan is None or any(outdated(table, seen) for table in relations(statement)):
            continue
        mean = duration_ns(statement, seen)
        scan = next(iter(_multiplied(statement, seen)), None)
        once = once_ns(relations(statement), seen)
        if scan is None or once is None or not mean:
            continue
        node, columns = scan
        if not _more_rows(statement, node) and (slower_than_planned(statement, seen) or 0.0) < SLOWER:
            continue
        bill = seen.bill_of({statement.number: max(0.0, 1 - once / mean)})
        if worth(bill):
            yield _finding(statement, node, columns, seen)


def _multiplied(one: Statement, seen: Evidence) -> Iterator[tuple[PlanNode, tuple[str, ...]]]:
    """Yield scans of large tables whose estimate is the product of several columns' selectivities.

    Only joins count: a plan of one table is the same for any number of rows.
    """
    if one.shape is None or one.plan is None:
        return
    nodes = [node for node in one.plan.root.walk() if node.relation]
    if len(nodes) < 2:
        return
    for node in nodes:
        rows = seen.rows(node.relation)
        columns = tuple(
            dict.fromkeys(
                each.column
                for each in one.shape.predicates
                if each.table == node.relation
                and each.alias in {"", node.alias}
                and each.column
                and each.operator == "="
                and each.value in {"parameter", "constant"}
                and not each.alternative
            )
        )
        each_rows = [rows / distinct for name in columns if (distinct := seen.distinct(node.relation, name))]
        if rows < LARGE_ROWS or len(columns) < 2 or len(each_rows) < len(columns):
            continue
        product = rows * prod(each / rows for each in each_rows)
        if node.rows * _FEWER <= min(each_rows) and product * _FEWER <= min(each_rows):
            yield node, columns


def _more_rows(one: Statement, node: PlanNode) -> bool:
    if node.actual_rows is not None and node.loops:
        return node.actual_rows / node.loops >= _WRONG * max(1.0, node.rows)
    return False


def _finding(one: Statement, node: PlanNode, columns: Sequence[str], seen: Evidence) -> Finding:
    table = node.relation
    once = once_ns(relations(one), seen) or 0.0
    bare = table.rpartition(".")[2]
    schema = table.rpartition(".")[0]
    name = sql_name((f"{schema}." if schema else "") + f"{'_'.join((bare, *columns))[:58]}_stat")
    keys = ", ".join(map(quoted, columns))
    most = min(seen.rows(table) / (seen.distinct(table, column) or 1.0) for column in columns)
    mean = duration_ns(one, seen) or 1.0
    return Finding(
        RULE.name,
        f"The planner takes columns {' and '.join(columns[:3])} of {table} for independent",
        objects=(table, *columns),
        bill=seen.bill_of({one.number: max(0.0, 1 - once / mean)}),
        templates=(one.number,),
        statement=one.text,
        evidence=(
            f"It expects {format_count(node.rows)} rows of {table}; the most selective condition alone "
            "leaves "
            f"about {format_count(round(most))}.",
            f"The estimated cost is {one.plan.root.cost:.0f}, but a call takes {format_duration(mean)}."
            if one.plan is not None
            else "",
        ),
        candidates=(
            Candidate(
                "ddl",
                f"Create statistics over the columns together, and analyse {table}.",
                sql=f"CREATE STATISTICS {name} (ndistinct, dependencies, mcv) ON {keys} "
                f"FROM {sql_name(table)}; ANALYZE {sql_name(table)};",
                undo=f"DROP STATISTICS {name};",
                against=("ANALYZE and planning take a little longer.",),
            ),
        ),
        proof="Compare the statement with and without the statistics with uncork run.",
    )


RULE: Final = Rule("correlated-columns", _find)
