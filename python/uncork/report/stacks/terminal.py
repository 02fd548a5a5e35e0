"""The terminal writer of a stack profile: the answer, the hottest frames, the next steps."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from uncork.model.results.stacks import StackResult
from uncork.report.blocks import Table
from uncork.report.stacks.answer import shown_measure
from uncork.report.stacks.document import build_stack_document
from uncork.report.stacks.tables import (
    changes_table,
    entries_table,
    frames_table,
    labels_table,
    processes_table,
    syscalls_table,
)
from uncork.report.write.terminal_text import (
    draw_table,
    wrapped,
    write_items,
    write_lines,
    write_paragraph,
    write_steps,
)

__all__ = ["render_stack_terminal"]


def render_stack_terminal(
    result: StackResult, console: Console, *, top: int = 10, full: bool = False
) -> None:
    """Print the report on stacks: the `top` frames; `full` prints all measures and tables."""
    document = build_stack_document(result)
    write_paragraph(console, document.answer, "bold")
    if document.reasons:
        write_items(console, document.reasons)
    write_paragraph(console, document.question, "italic")
    shown = shown_measure(result)
    for measure in result.measures:
        if measure is not shown and not full:
            continue
        _write(console, [changes_table(measure, result.against, top), frames_table(measure, top)])
        if full or measure.kernel:
            _write(console, [entries_table(measure, top if full else 3)])
        if full:
            _write(console, [frames_table(measure, top, by="total")])
        if full or measure.templates:
            _write(
                console,
                [
                    labels_table(
                        f"{measure.name} by template", "template", measure.templates, top if full else 3
                    )
                ],
            )
    _write(console, [syscalls_table(result, top if full else 5)])
    if full:
        _write(console, [processes_table(result, top)])
    write_paragraph(console, "; ".join(f"{name} {text}" for name, text in document.facts))
    write_steps(console, document.steps)


def _write(console: Console, tables: Iterable[Table | None]) -> None:
    for table in tables:
        if table is not None:
            write_lines(console, wrapped(table.caption, console.width), "bold")
            console.print(draw_table(table, console))
            console.print()
