"""The terminal writer of a sweep."""

from __future__ import annotations

from rich.console import Console

from uncork.model.results.sweep import SweepResult
from uncork.report.load.sweep_document import build_sweep_document, levels_table
from uncork.report.write.terminal_text import (
    write_answer,
    write_items,
    write_rows,
    write_steps,
)


def render_sweep_terminal(result: SweepResult, console: Console) -> None:
    """Print the report on a sweep: the answer, its warnings, the levels, the next steps."""
    document = build_sweep_document(result)
    write_answer(console, document.answer)
    if document.reasons:
        write_items(console, document.reasons)
    write_rows(console, levels_table(result, brief=True))
    console.print()
    write_steps(console, document.steps)
