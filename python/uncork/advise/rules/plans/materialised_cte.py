"""A common table that is computed completely, though the statement needs few of its rows. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from uncork.advise.evidence import Evidence, Statement
from uncork.advise.rule import Rule, each_statement, worth
from uncork.advise.rules.plans.costs import LARGE_ROWS
from uncork.advise.rules.plans.rewrite import not_materialized
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.units import format_count

if TYPE_CHECKING:
    from uncork.model.database.plan import PlanNode
    from uncork.model.database.statement import CommonTable

_NO_NAMES: Final = re.compile(
    r"'(?:[^']|'')*'|\$\d+|::[a-z]+(?: [a-z]+)*(?:\[\])?|(?:\w+|\"[^\"]+\")\.|\b(?:AND|OR|NOT|IS|NULL|ANY)\b"
)
"""What a condition of a plan has besides the names of columns and functions."""
_NAME: Final = re.compile(r"[A-Za-z_][\w$]*")
_NEEDED: Final = 0.1
"""Fraction of the common table's rows that pass the filters on it, up to which computing it pays off nowhere:
the planner uses an index up to about this fraction."""


def _find(statement: Statement, evidence: Evidence) -> Finding | None:
    for common, saved in stored_in_vain(statement, evidence):
        bill = evidence.bill_of({statement.number: saved})
        if statement.plan is not None and worth(bill):
            return _finding(statement, statement.plan.root, common, bill)
    return None


def stored_in_vain(statement: Statement, evidence: Evidence) -> Iterator[tuple[CommonTable, float]]:
    """Yield common tables that a statement stores for few rows, with the fraction of time wasted."""
    if statement.plan is None or statement.shape is None:
        return
    for common in statement.shape.common_tables:
        if common.recursive or common.changes or common.materialized is False:
            continue
        saved = _saved(statement.plan.root, common, evidence)
        if saved > 0:
            yield common, saved


def _saved(root: PlanNode, common: CommonTable, evidence: Evidence) -> float:
    """Return which fraction of the time is spent on rows that no scan of the common table needs."""
    source = next((node for node in root.walk() if node.subplan == f"CTE {common.name}"), None)
    scans = [node for node in root.walk() if node.kind == "CTE Scan" and node.common == common.name]
    if source is None or not scans or any(not node.condition("Filter") for node in scans):
        return 0.0
    if any(node.kind in {"WindowAgg", "Unique", "Limit"} for node in source.walk()):
        # Filters do not pass these nodes in general, so planning it together would change nothing.
        return 0.0
    grouped = [node.key("Group Key") for node in source.walk() if node.kind == "Aggregate"]
    if any(not _pass(node.condition("Filter"), keys) for node in scans for keys in grouped):
        return 0.0
    read = max((evidence.rows(node.relation) for node in source.walk() if node.relation), default=0.0)
    if max(read, source.rows) < LARGE_ROWS:
        return 0.0
    needed = sum(node.rows for node in scans) / max(1.0, source.rows)
    if needed > _NEEDED:
        return 0.0
    return min(1.0, max(node.cost for node in (source, *scans)) / max(1.0, root.cost)) * (1 - needed)


def _pass(condition: str, keys: Sequence[str]) -> bool:
    """Return whether a filter compares keys of a GROUP BY only: then it can be applied to the rows below."""
    compared = set(_NAME.findall(_NO_NAMES.sub(" ", condition)))
    return bool(compared) and compared <= {key.rpartition(".")[2].strip('"') for key in keys}


def _finding(statement: Statement, root: PlanNode, common: CommonTable, bill: Bill) -> Finding:
    source = next(node for node in root.walk() if node.subplan == f"CTE {common.name}")
    scan = next(node for node in root.walk() if node.kind == "CTE Scan" and node.common == common.name)
    why = (
        "It is declared MATERIALIZED."
        if common.materialized
        else f"It is used {common.references} times, so PostgreSQL computes it separately."
    )
    tables = tuple(dict.fromkeys(common.tables))
    return Finding(
        RULE.name,
        f"Common table {common.name} is computed completely before its rows are filtered",
        objects=(common.name, *tables),
        bill=bill,
        templates=(statement.number,),
        statement=statement.text,
        evidence=(
            f"The planner expects {format_count(source.rows)} rows in it, of which "
            f"{format_count(scan.rows)} pass the filter {scan.condition('Filter')}.",
            why,
        ),
        candidates=(
            Candidate(
                "statement",
                f"Declare {common.name} AS NOT MATERIALIZED, so that filters reach its tables and their "
                "indexes.",
                sql=not_materialized(statement.sql, common.name),
                against=("Its query is executed once for each use; volatile functions in it prevent this.",),
            ),
        ),
        proof="Compare both statements with uncork run, which checks that they return the same rows.",
    )


RULE: Final = Rule("materialised-cte", each_statement(_find), depth=2)
