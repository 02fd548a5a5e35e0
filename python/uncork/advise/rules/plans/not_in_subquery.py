"""NOT IN (SELECT ...), which PostgreSQL cannot execute as an anti-join. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.costs import believed_ns, duration_ns, once_ns, relations, setting_for
from uncork.advise.rules.plans.rewrite import not_exists
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode
    from uncork.model.database.statement import Subquery

_FASTEST: Final = 0.1
"""Fraction of the time that a cost stands for at most, in which PostgreSQL executes a plan at least."""
_LOOK_UP: Final = 20.0
"""How many rows of the subquery PostgreSQL hashes in the time in which it looks up one by an index."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    if statement.text.count("select") < 2 or statement.shape is None:
        return None
    parts = [
        subquery for subquery in statement.shape.subqueries if subquery.kind == "not in" and subquery.tables
    ]
    return _finding(statement, parts[0], evidence) if parts else None


def _saved(statement: Statement, part: Subquery, evidence: Evidence) -> float:
    """Return which fraction of the time an anti-join would save.

    A subplan that is not hashed compares each row with all rows of the subquery. A hashed one is as fast as
    an anti-join, unless the hash table is built for few rows, which an index would look up.
    """
    mean = duration_ns(statement, evidence) or 0.0
    once = once_ns(relations(statement), evidence)
    read_once = 0.0 if once is None or not mean else max(0.0, 1 - once / mean)
    if statement.plan is None:
        return read_once
    found = next(iter(_subplans(statement.plan.root)), None)
    if found is None:
        return 0.0
    above, subplan, hashed = found
    if mean < believed_ns(subplan.cost) * _FASTEST:
        return 0.0  # The plan is for other values: the calls read fewer rows.
    tested = _rows_tested(above, evidence)
    served = part.returns is not None and evidence.indexed(part.returns.table, part.returns.column)
    if served and tested * _LOOK_UP <= subplan.rows:
        # The hash table is built before the first row.
        building = max(subplan.cost, above.startup_cost) / max(1.0, statement.plan.root.cost)
        return min(1.0, building) * (1 - tested * _LOOK_UP / subplan.rows)
    return 0.0 if hashed else read_once


def _rows_tested(node: PlanNode, evidence: Evidence) -> float:
    """Return how many rows reach NOT IN: the planner expects that it removes half of them."""
    below = [child.rows for child in node.children if child.role != "SubPlan"]
    return max([1.0, 2 * node.rows, *below])


def _subplans(root: PlanNode) -> Iterator[tuple[PlanNode, PlanNode, bool]]:
    """Yield the nodes that test NOT IN with their subplans, and whether these are hashed."""
    for node in root.walk():
        condition = node.condition("Filter") or node.condition("Join Filter")
        for child in node.children:
            if child.role == "SubPlan" and "NOT" in condition and f"{child.subplan})" in condition:
                yield node, child, f"hashed {child.subplan})" in condition


def _finding(statement: Statement, part: Subquery, evidence: Evidence) -> Finding:
    table = part.tables[0]
    compared = part.compared.column if part.compared is not None else "a column"
    nullable = [
        f"{name.table}.{name.column}"
        for name in (part.compared, part.returns)
        if name is not None
        and ((column := evidence.column(name.table, name.column)) is None or not column.not_null)
    ]
    same = not nullable and part.compared is not None and part.returns is not None
    against = (
        ()
        if same
        else (
            f"{' and '.join(nullable) or 'A compared column'} can be NULL: NOT IN then returns no row, "
            "NOT EXISTS does.",
        )
    )
    outer = "" if part.compared is None else sql_name(part.compared.table)
    memory, undo = setting_for(statement, evidence, "work_mem", "64MB")
    return Finding(
        RULE.name,
        f"NOT IN compares {compared} with rows of {table} instead of an anti-join",
        objects=(table, compared),
        bill=evidence.bill_of({statement.number: _saved(statement, part, evidence)}),
        templates=(statement.number,),
        statement=statement.text,
        evidence=tuple(_evidence(statement, table, evidence)),
        candidates=(
            Candidate(
                "statement",
                "Use NOT EXISTS, which PostgreSQL executes as an anti-join.",
                sql=not_exists(statement.sql, outer),
                same_answers=same,
                against=against,
            ),
            Candidate(
                "setting",
                "Raise work_mem, so that the subquery fits into a hash table.",
                sql=memory,
                undo=undo,
                against=("The statement becomes slow again once the table has grown.",),
            ),
        ),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _evidence(statement: Statement, table: str, evidence: Evidence) -> Iterator[str]:
    if statement.plan is not None:
        for above, subplan, hashed in _subplans(statement.plan.root):
            if not hashed:
                inner = format_count(round(subplan.rows))
                yield (
                    f"The plan tests {above.relation or 'each row'} against a subplan that is not hashed, "
                    f"with {inner} rows: its hash table would not fit into work_mem."
                )
    rows = evidence.rows(table)
    if rows:
        yield f"Table {table} has {format_count(round(rows))} rows."
    if statement.mean_ns:
        yield f"A call takes {format_duration(statement.mean_ns)}."


RULE: Final = Rule("not-in-subquery", each_statement(_find))
