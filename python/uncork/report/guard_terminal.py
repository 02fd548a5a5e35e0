"""A guard in the terminal: the answer, the gates, what may explain them, what to do next."""

from __future__ import annotations

from typing import Final

from rich.console import Console

from uncork.model.guard import GuardResult
from uncork.report.guard_answer import guard_steps
from uncork.report.guard_document import explanations, gates_table
from uncork.report.guard_why import settings_lines
from uncork.report.terminal_text import (
    draw_table,
    write_items,
    write_paragraph,
    write_steps,
    write_title,
)

__all__ = ["render_guard_terminal"]

_MOST: Final = 6
"""Gates that are explained one by one."""


def render_guard_terminal(result: GuardResult, console: Console) -> None:
    """Print the report on a guard. Colour and width are the console's; words carry every outcome."""
    write_paragraph(console, result.question, "italic")
    write_paragraph(console, result.answer, "bold")
    write_items(console, result.reasons)
    if result.checks:
        console.print(draw_table(gates_table(result.checks, narrow=True), console))
        console.print()
    found = explanations(result)
    for title, lines in found[:_MOST]:
        write_title(console, title)
        write_items(console, lines)
    if len(found) > _MOST:
        write_paragraph(console, f"{len(found) - _MOST} more gates are explained in the page of the report.")
    others = settings_lines(result)
    if others:
        write_title(console, "What else differs between the sides")
        write_items(console, others)
    unused = [
        f"{one.gate}{f' on {one.workload}' if one.workload else ''}: {one.reason}" for one in result.unused
    ]
    if unused:
        write_title(console, "Acknowledgements that nothing needed; remove them")
        write_items(console, unused)
    if result.warnings:
        write_title(console, "Doubts")
        write_items(console, result.warnings)
    write_steps(console, tuple(guard_steps(result)))
