"""A subquery that is executed again for each row, where a join would read its table once. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.costs import once_ns, with_loops
from uncork.advise.rules.plans.rewrite import joined_aggregate
from uncork.model.database.finding import Candidate, Finding
from uncork.model.units import format_count, format_duration

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode

_LOOPS: Final = 200.0
"""Executions of a subplan in a call. With fewer rows, looking each up by an index is the best plan."""
_SHARE: Final = 0.3
"""Fraction of the plan's cost that the subplan must have to be the cause."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    worst, plan = _worst(statement, evidence), statement.plan
    if worst is None or plan is None:
        return None
    node, loops, saved = worst
    table = next(each.relation for each in node.walk() if each.relation)
    return Finding(
        RULE.name,
        f"A subquery on {table} is executed again for each of {format_count(round(loops))} rows",
        objects=(table,),
        bill=evidence.bill_of({statement.number: saved}),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"The plan executes {node.subplan} once per row, at a cost of {node.cost:.1f} each, of "
            f"{plan.root.cost:.0f} in total.",
            f"A call takes {format_duration(statement.mean_ns or 0.0)}.",
        ),
        candidates=(_joined(statement, node, table),),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def _worst(statement: Statement, evidence: Evidence) -> tuple[PlanNode, float, float] | None:
    """Return the costliest subplan that is executed for each row, how often, and the fraction it wastes."""
    if statement.plan is None or _not_in(statement):
        return None
    found = []
    for node, loops in with_loops(statement.plan.root, evidence):
        planned = loops if node.loops is None else node.loops
        times = planned * _more_rows(statement)
        if node.role != "SubPlan" or not node.subplan.startswith("SubPlan") or times < _LOOPS:
            continue
        tables = {each.relation for each in node.walk() if each.relation}
        once = once_ns(tables, evidence)
        if not tables or once is None or _scans_all(node):
            continue
        rest = max(0.0, statement.plan.root.cost - planned * node.cost)
        share = times * node.cost / max(1.0, rest + times * node.cost)
        spent = share * (statement.mean_ns or 0.0)
        saved = share * (1 - once / spent) if spent > once else 0.0
        if share >= _SHARE and saved > 0:
            found.append((node, times, saved))
    return max(found, key=lambda each: each[2], default=None)


def _more_rows(statement: Statement) -> float:
    """Return how many times more rows a call returns than its plan expects, at least 1.

    The values for which uncork asked for the plan may select fewer rows than those of the calls. Each row
    that is returned has its own execution of a subplan in the list of outputs.
    """
    found = statement.a_call(statement.rows)
    if found is None or statement.plan is None or statement.plan.source == "executed":
        return 1.0
    if statement.plan.root.kind.endswith("Aggregate") or statement.plan.root.kind in ("Limit", "ModifyTable"):
        return 1.0
    return max(1.0, found / max(1.0, statement.plan.root.rows))


def _not_in(statement: Statement) -> bool:
    """Return whether NOT IN is the cause, which has a rule of its own."""
    return statement.shape is not None and any(
        subquery.kind == "not in" and not subquery.correlated for subquery in statement.shape.subqueries
    )


def _scans_all(node: PlanNode) -> bool:
    """Return whether the subplan searches a whole table for a row: then an index is missing."""
    return any(each.kind == "Seq Scan" and each.condition("Filter") for each in node.walk())


def _joined(statement: Statement, node: PlanNode, table: str) -> Candidate:
    """Return the join that replaces a subquery; an aggregate keeps one row for each row of the statement."""
    if not any(each.kind == "Aggregate" for each in node.walk()):
        return Candidate(
            "statement",
            f"Join {table} instead (LEFT JOIN, or LEFT JOIN LATERAL if there are several matching rows).",
            against=("A join repeats rows if several rows match.",),
            same_answers=False,
        )
    sql = joined_aggregate(statement.sql)
    null = "A count or sum without matching rows is NULL in the join: use coalesce(..., 0)."
    return Candidate(
        "statement",
        f"Aggregate {table} once with GROUP BY in a subquery in FROM, and join the result with LEFT JOIN.",
        sql=sql,
        undo=statement.sql if sql else "",
        against=() if sql else (null,),
    )


RULE: Final = Rule("subplan-not-hashed", each_statement(_find), depth=2)
