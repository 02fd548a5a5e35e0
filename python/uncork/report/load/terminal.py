"""The terminal writer of a load: the answer in one sentence, its warnings, then the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from rich.console import Console

from uncork.model.results.load import LoadResult
from uncork.report.load.document import build_load_document
from uncork.report.load.parts import parts_table
from uncork.report.load.steps import step_gap_sentences, steps_table
from uncork.report.load.tables import (
    answers_table,
    connections_table,
    counts_table,
    errors_table,
    latency_table,
    logins_table,
    scripts_table,
    statements_table,
    use_table,
)
from uncork.report.write.terminal_text import TerminalPart, write_items, write_report


def render_load_terminal(result: LoadResult, console: Console, *, statements: bool = False) -> None:
    """Print the report on a load; `statements` adds a table of statements."""
    write_report(console, build_load_document(result), _tables(result, statements))


def _tables(result: LoadResult, statements: bool) -> Iterator[TerminalPart]:
    yield parts_table(result)
    if result.operation.count:
        yield from (latency_table(result), scripts_table(result))
        yield statements_table(result) if statements else None
        yield steps_table(result)
        gaps = step_gap_sentences(result)
        yield partial(write_items, items=gaps) if gaps else None
    yield logins_table(result)
    yield answers_table(result) if result.http and len(result.http.statuses) > 1 else None
    yield errors_table(result)
    if result.counts.started or result.counts.arrivals:
        yield from (counts_table(result), connections_table(result), use_table(result))
