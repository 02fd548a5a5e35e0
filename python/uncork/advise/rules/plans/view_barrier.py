"""A filter on a view or subquery that cannot enter it, so that all of its rows are computed first. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement
from uncork.advise.rules.plans.costs import LARGE_ROWS
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.names import sql_name
from uncork.model.units import format_count

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode

_NEEDED: Final = 0.1
"""Fraction of the computed rows that pass the filter. Above it, an index would hardly help."""
_COMPUTED: Final = {
    "WindowAgg": "a window function",
    "Unique": "DISTINCT",
    "Limit": "LIMIT",
    "Aggregate": "GROUP BY",
    "GroupAggregate": "GROUP BY",
    "HashAggregate": "GROUP BY",
    "SetOp": "EXCEPT or INTERSECT",
}
"""Nodes that a filter passes only if it is on their partition or group columns."""
_TEXT: Final = re.compile(r"'(?:[^']|'')*'|::[\w \"\[\]]+?(?=[)\s]|$)")
_SIDES: Final = re.compile(r"\(?([\w\".]+)(?:\)::[\w ]+)?\s+=\s+")


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    found = None if statement.plan is None else barrier(statement.plan.root, evidence)
    if statement.plan is None or found is None:
        return None
    scan, node, column = found
    views = {view.name.rpartition(".")[2] for view in evidence.catalogue.views}
    used = set() if statement.shape is None else {use.name for use in statement.shape.tables}
    view = next((name for name in used if name.rpartition(".")[2] in views), "")
    table = next(each.relation for each in node.walk() if each.relation)
    what = f"view {view}" if view else f"the subquery on {table}"
    computed = _COMPUTED[node.kind]
    return Finding(
        RULE.name,
        f"The filter on {column} cannot enter {what} because of {computed}",
        objects=tuple(name for name in (view, table, column) if name),
        bill=evidence.bill_of({statement.number: _saved(statement.plan.root, scan, node)}),
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"The plan computes {format_count(max(node.rows, scan.children[0].rows))} rows, of which "
            f"{format_count(scan.rows)} pass the filter {scan.condition('Filter')}.",
        ),
        candidates=tuple(_candidates(what, table, column, computed)),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


def barrier(root: PlanNode, evidence: Evidence) -> tuple[PlanNode, PlanNode, str] | None:
    """Return a subquery's scan that filters most rows, the node that the filter could not pass, and a column.

    A filter on the result of a window function or an aggregate belongs there, and is no fault.
    """
    for scan in root.walk():
        if scan.kind != "Subquery Scan" or not scan.condition("Filter"):
            continue
        node = next((each for each in scan.walk() if each.kind in _COMPUTED), None)
        column = _filtered_column(scan, evidence)
        if node is None or column is None or node.rows < 1:
            continue
        read = max((evidence.rows(each.relation) for each in node.walk() if each.relation), default=0.0)
        if read >= LARGE_ROWS and scan.rows <= _NEEDED * max(scan.children[0].rows, node.rows):
            return scan, node, column
    return None


def _filtered_column(scan: PlanNode, evidence: Evidence) -> str | None:
    """Return a column of a table below that the filter of a subquery compares for equality."""
    tables = {node.relation for node in scan.walk() if node.relation}
    names = {column.name for table in tables for column in evidence.catalogue.columns.get(table, ())}
    for found in _SIDES.findall(_TEXT.sub("", scan.condition("Filter"))):
        bare = str(found).rpartition(".")[2].strip('"()')
        if bare in names:
            return bare
    return None


def _saved(root: PlanNode, scan: PlanNode, node: PlanNode) -> float:
    """Return the fraction of the time spent on rows that the filter then discards."""
    part = min(1.0, scan.cost / max(1.0, root.cost))
    return part * (1 - scan.rows / max(1.0, node.rows, scan.children[0].rows))


def _candidates(what: str, table: str, column: str, computed: str) -> Iterator[Candidate]:
    yield Candidate(
        "statement",
        f"Write the condition on {column} inside: query {sql_name(table)} directly with WHERE {column} = "
        f"..., or make {what} a function with {column} as its parameter.",
        same_answers=False,
        against=(f"Rows may differ: {computed} then considers only rows with this {column}.",),
    )
    if computed == "a window function":
        yield Candidate(
            "ddl",
            f"Add {column} to PARTITION BY of each window, if rows of one partition always have one "
            f"{column}: a filter on a partition column enters.",
            same_answers=False,
        )
    if computed == "DISTINCT":
        yield Candidate(
            "ddl",
            f"Add {column} to DISTINCT ON, if rows with equal keys always have one {column}.",
            same_answers=False,
        )


RULE: Final = Rule("view-barrier", each_statement(_find), depth=2)
