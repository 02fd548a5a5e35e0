"""The terminal writer of a stack profile: the answer, the hottest frames, the next steps."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from uncork.model.results.stacks import StackResult
from uncork.report.blocks import Table
from uncork.report.stacks.answer import imported_measures, shown_measure
from uncork.report.stacks.document import build_stack_document
from uncork.report.stacks.tables import (
    changes_table,
    entries_table,
    frames_table,
    joined_routes_table,
    labels_table,
    processes_table,
    routes_table,
    syscalls_table,
)
from uncork.report.write.terminal_text import write_report


def render_stack_terminal(
    result: StackResult, console: Console, *, top: int = 10, full: bool = False
) -> None:
    """Print the report on stacks: the `top` frames; `full` prints all measures and tables."""
    write_report(console, build_stack_document(result), _tables(result, top, full=full), facts=True)


def _tables(result: StackResult, top: int, *, full: bool) -> Iterator[Table | None]:
    few = top if full else 3
    shown = (shown_measure(result), *imported_measures(result))
    for measure in result.measures:
        if not full and not any(measure is each for each in shown):
            continue
        yield from (changes_table(measure, result.against, top), frames_table(measure, top))
        if full or measure.kernel:
            yield entries_table(measure, few)
        if full:
            yield frames_table(measure, top, by="total")
        if full or measure.templates:
            yield labels_table(f"{measure.name} by template", "template", measure.templates, few)
        yield routes_table(measure, top)
    yield joined_routes_table(result, top)
    yield syscalls_table(result, top if full else 5)
    if full:
        yield processes_table(result, top)
