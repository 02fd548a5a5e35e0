"""A guard in the terminal: the answer, the gates, what may explain them, and the next steps."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from uncork.model.results.guard import GuardResult, PlanDifference
from uncork.report.guard.answer import guard_steps
from uncork.report.guard.document import explanations, gates_table
from uncork.report.guard.why import settings_lines
from uncork.report.write.terminal_text import (
    as_text,
    write_answer,
    write_items,
    write_lines,
    write_paragraph,
    write_rows,
    write_steps,
    write_title,
)

_MOST: Final = 6
"""Gates that are explained individually."""
_MOST_PLANS: Final = 3
_MOST_LINES: Final = 24
"""Lines shown of a changed plan; the HTML report has all of them."""
_DIFFERENCE: Final = {"-": "red", "+": "green"}


def render_guard_terminal(result: GuardResult, console: Console) -> None:
    """Print the report on a guard, the verdict first.

    The console sets colour and width; every outcome is also stated in words.
    """
    write_answer(console, result.answer)
    asked = (f"Question: {result.question}",) if result.question else ()
    write_items(console, (*result.reasons, *asked))
    if result.checks:
        write_rows(console, gates_table(result.checks, narrow=True))
        console.print()
    found = explanations(result)
    for explanation in found[:_MOST]:
        write_title(console, explanation.title)
        write_items(console, explanation.lines)
        for plan in explanation.plans[:_MOST_PLANS]:
            _write_difference(plan, console)
    if len(found) > _MOST:
        write_paragraph(console, f"{len(found) - _MOST} more gates are explained in the HTML report.")
    others = settings_lines(result)
    if others:
        write_title(console, "What else differs between the sides")
        write_items(console, others)
    unused = [
        f"{known.gate}{f' on {known.workload}' if known.workload else ''}: {known.reason}"
        for known in result.unused
    ]
    if unused:
        write_title(console, "Unused acknowledgements: remove them")
        write_items(console, unused)
    if result.warnings:
        write_title(console, "Warnings")
        write_items(console, result.warnings)
    write_steps(console, tuple(guard_steps(result, within=True)))


def _write_difference(plan: PlanDifference, console: Console) -> None:
    """Print the removed and added lines of a changed plan."""
    of = f", {plan.statement}" if plan.statement != plan.workload else ""
    write_lines(console, [f"    plan of {plan.workload}{of}: - baseline, + candidate"])
    lines = [line for line in plan.text.splitlines() if not line.startswith(("---", "+++", "@@"))]
    for line in lines[:_MOST_LINES]:
        console.print(
            as_text(console, f"    {line}", _DIFFERENCE.get(line[:1], "")), overflow="ellipsis", no_wrap=True
        )
    if len(lines) > _MOST_LINES:
        write_lines(console, [f"    {len(lines) - _MOST_LINES} more lines"])
    console.print()
