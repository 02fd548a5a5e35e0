"""The plan of a watched statement, in the section of its template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.database import DatabaseResult, PlanFacts, TemplateActivity
from uncork.report.blocks import Block, Code, Paragraph

_GENERIC: Final = (
    "These are generic plans: the server planned the statements without the values of their parameters, and "
    "did not execute them. With some values it may choose another plan. Costs and rows are estimates, and "
    "whether a sort or a hash needs temporary files is unknown."
)

_WITH_VALUES: Final = {
    "seen": "The server planned the statement with the values of a session, and did not execute it. Costs "
    "and rows are estimates, and whether a sort or a hash needs temporary files is unknown.",
    "drawn": "The server planned the statement with values from the statistics of its columns, and did not "
    "execute it. With other values it may choose another plan. Costs and rows are estimates, and whether a "
    "sort or a hash needs temporary files is unknown.",
}
_TITLES: Final = {"seen": "Plan with the values of a session", "drawn": "Plan with values from statistics"}


def _no_plan(plan: PlanFacts, result: DatabaseResult) -> str:
    if any(
        unplanned.why == "no values" and plan.template in unplanned.templates
        for unplanned in result.unplanned
    ):
        return (
            "There is no plan: the server stores the statement without its values, in a form that cannot be "
            "planned. Run EXPLAIN with the values of a call."
        )
    return f'There is no plan: the server reports "{plan.reason}".'


def plan_blocks(one: TemplateActivity, result: DatabaseResult) -> Iterator[Block]:
    """Yield the plan of a template."""
    for plan in result.plans:
        if plan.template != one.number:
            continue
        if plan.text:
            yield Code(plan.text, "text", _TITLES.get(plan.source, "Generic plan"))
            yield Paragraph(_WITH_VALUES.get(plan.source, _GENERIC))
        else:
            yield Paragraph(_no_plan(plan, result))
