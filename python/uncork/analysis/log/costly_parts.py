"""Judge the statements of a log with the most time: found, fine, or not explained. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from uncork.analysis.log.evidence import executed_plans
from uncork.model.database.finding import Finding
from uncork.model.database.plan import PlanNode, StatementPlan
from uncork.model.results.costly_parts import CostlyPart
from uncork.model.results.log import LogResult, TemplateFacts
from uncork.model.units import count_words

_MOST: Final = 3
"""Statements to account for."""
WITH_PLAN: Final = frozenset(
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


def costly_parts_of_log(result: LogResult, findings: Sequence[Finding]) -> tuple[CostlyPart, ...]:
    """Return what is known of the three costliest statements of a log, the costliest first."""
    costliest = [template for template in result.templates if template.number >= 0 and template.sum_ns]
    return tuple(_part(template, findings) for template in costliest[:_MOST])


def _part(template: TemplateFacts, findings: Sequence[Finding]) -> CostlyPart:
    for place, finding in enumerate(findings, 1):
        if template.number in finding.templates:
            return CostlyPart("statement", template.text, template.share, "found", place)
    fine, evidence = _judged(template)
    state: Literal["fine", "not explained"] = "fine" if fine else "not explained"
    return CostlyPart("statement", template.text, template.share, state, None, evidence)


def _judged(template: TemplateFacts) -> tuple[bool, str]:
    """Return whether the logged plan of a statement reads few rows, and the evidence."""
    if template.kind not in WITH_PLAN:
        return False, "it has no plan; a watch of the server shows what it waits for"
    plans = executed_plans(template)
    executed = next((plan for plan in plans if plan.root.loops), None)
    if plans and executed is None:
        return False, "its logged plan has no counted rows"
    executed_ns = 0.0 if executed is None else (executed.root.milliseconds or 0.0) * 1e6
    is_typical = executed_ns >= _TYPICAL * template.mean_ns or template.mean_ns - executed_ns <= _PLANNING_NS
    if executed is None or not is_typical:
        return False, "the log has no plan of a typical execution"
    read, returned = _rows_read(executed.root), _rows_returned(executed)
    rows = (
        f"its logged plan reads {count_words(round(read), 'row')} and returns or changes "
        f"{count_words(round(returned), 'row')}"
    )
    if read <= _FEW_ROWS * max(1.0, returned):
        return True, rows
    return False, f"{rows}; a watch of the server shows indexes and waits"


def _rows_read(root: PlanNode) -> float:
    """Return how many rows the scans of tables read, including rows that filters removed."""
    scans = (node for node in root.walk() if node.relation and node.kind != "ModifyTable")
    return sum((node.actual_rows or 0.0) + (node.removed or 0.0) for node in scans)


def _rows_returned(plan: StatementPlan) -> float:
    root = plan.root
    if root.kind == "ModifyTable" and not root.output and root.children:
        return root.children[0].actual_rows or 0.0
    return root.actual_rows or 0.0
