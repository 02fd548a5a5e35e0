"""The terminal writer of a load: the answer in one sentence, its warnings, then the numbers."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from uncork.model.results.load import LoadResult
from uncork.report.blocks import Table
from uncork.report.load.document import build_load_document
from uncork.report.load.tables import (
    answers_table,
    connections_table,
    counts_table,
    errors_table,
    latency_table,
    scripts_table,
    statements_table,
    use_table,
)
from uncork.report.write.terminal_text import (
    draw_table,
    wrapped,
    write_items,
    write_lines,
    write_paragraph,
    write_steps,
)

__all__ = ["render_load_terminal"]


def render_load_terminal(result: LoadResult, console: Console, *, statements: bool = False) -> None:
    """Print the report on a load; `statements` adds a table of statements."""
    document = build_load_document(result)
    write_paragraph(console, document.answer, "bold")
    if document.reasons:
        write_items(console, document.reasons)
    write_paragraph(console, document.question, "italic")
    for table in _tables(result, statements):
        write_lines(console, wrapped(table.caption, console.width), "bold")
        console.print(draw_table(table, console))
        console.print()
    write_steps(console, document.steps)


def _tables(result: LoadResult, statements: bool) -> Iterator[Table]:
    wanted: list[Table | None] = []
    if result.operation.count:
        wanted += [latency_table(result), scripts_table(result)]
        wanted += [statements_table(result) if statements else None]
    wanted += [answers_table(result) if result.http and len(result.http.statuses) > 1 else None]
    wanted += [errors_table(result)]
    if result.counts.started or result.counts.arrivals:
        wanted += [counts_table(result), connections_table(result), use_table(result)]
    yield from (table for table in wanted if table is not None)
