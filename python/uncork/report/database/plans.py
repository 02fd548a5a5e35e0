"""Plans of a watched server: what stands out, and each plan in the section of its template."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.database import DatabaseResult, PlanNote, TemplateActivity
from uncork.model.template_words import short_template
from uncork.model.units import format_count
from uncork.report.blocks import Block, Bullets, Code, Paragraph

__all__ = ["plan_blocks", "plan_items", "plans_note"]

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
_MIXED: Final = (
    "The section of each statement says how it was planned: without the values of its parameters (a generic "
    "plan), or with some. The server did not execute them. With other values it may choose another plan. "
    "Costs and rows are estimates, and whether a sort or a hash needs temporary files is unknown."
)
_TITLES: Final = {"seen": "Plan with the values of a session", "drawn": "Plan with values from statistics"}


def plan_items(result: DatabaseResult) -> Iterator[str]:
    """Yield what stands out in the plans, with their templates."""
    texts = {one.number: one.text for one in result.templates}
    for plan in result.plans:
        for note in plan.notes:
            yield f"{_note(note)}: {short_template(texts.get(plan.template, ''))}"


def plans_note(result: DatabaseResult) -> str:
    """Return what the plans cannot show."""
    return _GENERIC if all(plan.source == "generic" for plan in result.plans) else _MIXED


def plan_blocks(one: TemplateActivity, result: DatabaseResult) -> Iterator[Block]:
    """Yield the plan of a template, and what stands out in it."""
    for plan in result.plans:
        if plan.template != one.number:
            continue
        if plan.text:
            yield Code(plan.text, "text", _TITLES.get(plan.source, "Generic plan"))
            if plan.notes:
                yield Bullets(tuple(f"{_note(note)}." for note in plan.notes))
            yield Paragraph(_WITH_VALUES.get(plan.source, _GENERIC))
        else:
            yield Paragraph(f'There is no plan: the server reports "{plan.reason}".')


def _note(note: PlanNote) -> str:
    rows = format_count(round(note.rows))
    if note.kind == "sort":
        return f"The plan sorts an estimated {rows} rows"
    return f"A sequential scan of table {note.table} ({rows} rows) applies the filter {note.condition}"
