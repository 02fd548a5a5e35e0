"""Judge the statements of a log with the most time: found, fine, or not explained. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from uncork.analysis.log.evidence import executed_plans
from uncork.model.results.log import LogResult, TemplateFacts
from uncork.model.results.statuses import MOST_STATUSES, StatementStatus

if TYPE_CHECKING:
    from uncork.model.database.finding import Finding
    from uncork.model.database.plan import PlanNode, StatementPlan

__all__ = ["statuses_of_log"]

_WITH_PLAN: Final = frozenset(
    {
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "MERGE",
        "WITH",
        "VALUES",
        "TABLE",
        "EXECUTE",
        "DECLARE",
        "FETCH",
    }
)
"""Statements for which auto_explain logs a plan."""
_FEW_ROWS: Final = 10.0
"""Rows read for each row returned up to which a plan is fine: an index with a filter reads so many."""
_TYPICAL: Final = 0.5
"""A plan whose execution took less than this fraction of the mean time does not stand for the others,"""
_PLANNING_NS: Final = 1_000_000
"""unless parsing and planning, which the plan's time leaves out, may take the rest."""


def statuses_of_log(result: LogResult, findings: Sequence[Finding]) -> tuple[StatementStatus, ...]:
    """Return what is known of the costliest statements of a log, the costliest first."""
    costliest = [template for template in result.templates if template.number >= 0 and template.sum_ns]
    return tuple(_status(template, findings) for template in costliest[:MOST_STATUSES])


def _status(template: TemplateFacts, findings: Sequence[Finding]) -> StatementStatus:
    number, text, share = template.number, template.text, template.share
    for place, finding in enumerate(findings, 1):
        if number in finding.templates:
            return StatementStatus(number, text, share, "found", finding=place)
    if template.kind not in _WITH_PLAN:
        return StatementStatus(number, text, share, "no plan possible")
    plans = executed_plans(template)
    executed = next((plan for plan in plans if plan.root.loops), None)
    if executed is None:
        return StatementStatus(number, text, share, "plan not executed" if plans else "no plan")
    read, returned = _rows_read(executed.root), _rows_returned(executed)
    executed_ns = (executed.root.milliseconds or 0.0) * 1e6
    is_typical = executed_ns >= _TYPICAL * template.mean_ns or template.mean_ns - executed_ns <= _PLANNING_NS
    if is_typical and read <= _FEW_ROWS * max(1.0, returned):
        return StatementStatus(number, text, share, "fine", rows_read=read, rows_returned=returned)
    if not is_typical:
        return StatementStatus(number, text, share, "no plan")
    return StatementStatus(number, text, share, "no fault in plan", rows_read=read, rows_returned=returned)


def _rows_read(root: PlanNode) -> float:
    """Return the rows that scans of tables read, with those that filters removed."""
    scans = (node for node in root.walk() if node.relation and node.kind != "ModifyTable")
    return sum((node.actual_rows or 0.0) + (node.removed or 0.0) for node in scans)


def _rows_returned(plan: StatementPlan) -> float:
    root = plan.root
    if root.kind == "ModifyTable" and not root.output and root.children:
        return root.children[0].actual_rows or 0.0
    return root.actual_rows or 0.0
