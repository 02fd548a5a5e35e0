"""The terminal writer of a log: the answer in one sentence, the findings, then the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from rich.console import Console

from uncork.model.results.log import LogResult
from uncork.model.units import format_count, format_duration
from uncork.report.advice.document import write_findings
from uncork.report.log.activity import hours_table, one_line, overall_words, session_tables
from uncork.report.log.document import build_log_document
from uncork.report.log.pool import pool_tables
from uncork.report.log.routes import route_tables
from uncork.report.log.servers import servers_table
from uncork.report.log.tables import (
    activity_tables,
    contributions_tables,
    errors_table,
    files_table,
    histogram_table,
    lines_words,
    protocol_table,
    templates_table,
)
from uncork.report.quantity_words import instant_text
from uncork.report.write.terminal_text import (
    TerminalPart,
    as_text,
    entry_width,
    wrapped,
    write_answer,
    write_entry,
    write_items,
    write_lines,
    write_paragraph,
    write_report,
    write_title,
)

_INDENT: Final = 4
_PROTOCOL_FIGURES: Final = 42
"""Characters that the times of a template's steps take."""
_LEAST_TEXT: Final = 20


def render_log_terminal(
    result: LogResult, console: Console, *, top: int = 10, rejected: bool = False, full: bool = False
) -> None:
    """Print the report on a log with its `top` templates.

    `rejected` adds the lines that were not understood; `full` adds all tables.
    """
    parts = _parts(result, console.width, top, rejected=rejected, full=full)
    write_report(console, build_log_document(result, has_sections=False), parts)


def render_log_live(result: LogResult, console: Console, state: str, *, top: int) -> None:
    """Replace the screen with what the log shows so far, as much as fits."""
    with console.capture() as captured:
        write_paragraph(console, state, "italic")
        write_answer(console, result.answer)
        write_items(console, (*result.warnings, *result.reasons))
        if result.executions.count:
            _write_templates(result, console, top)
    lines = captured.get().splitlines()[: max(1, console.height - 1)]
    console.file.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in lines) + "\x1b[J")
    console.file.flush()


def _write_templates(result: LogResult, console: Console, top: int) -> None:
    """Print the costliest templates: a line of numbers, and the template on its own line."""
    table = templates_table(result, top, width=entry_width(console, _INDENT))
    write_lines(console, wrapped(table.caption, console.width), "bold")
    console.print()
    figures = [row[1:-1] for row in table.rows]
    widths = [max(len(value.text) for value in column) for column in zip(*figures, strict=True)]
    for row in table.rows:
        rank, *values, template = row
        time, share, count, mean, *quantiles = (
            value.text.rjust(width) for value, width in zip(values, widths, strict=True)
        )
        names = ("p50", "p95", "p99", "longest")
        shown = "  ".join(f"{name} {value}" for name, value in zip(names, quantiles, strict=True))
        numbers = f"{rank.text:>2}  {time}  {share}  {count} × {mean}"
        write_entry(console, (numbers, shown), filter(None, (template.text, template.note)), _INDENT)
    console.print()


def _write_slowest(result: LogResult, console: Console, top: int) -> None:
    """Print the slowest single statements: when and whose, and the statement on its own line."""
    shown = result.slowest[:top]
    if not shown:
        return
    write_title(console, "Slowest single statements")
    durations = [format_duration(statement.duration_ns) for statement in shown]
    width = max(map(len, durations))
    for statement, duration in zip(shown, durations, strict=True):
        names = (
            ("server", statement.server if result.servers else ""),
            ("database", statement.database),
            ("user", statement.user),
            ("", statement.application),
            ("from", statement.host),
        )
        whose = ", ".join(f"{name} {value}".strip() for name, value in names if value)
        line = f"{duration:>{width}}  {instant_text(statement.time_us)}  {whose}".rstrip()
        console.print(as_text(console, line, "bold"), soft_wrap=True)
        for text in filter(None, (statement.text, statement.parameters)):
            shortened = one_line(text, console.width - _INDENT)
            console.print(as_text(console, " " * _INDENT + shortened), soft_wrap=True)
    console.print()


def _write_rejected(result: LogResult, console: Console) -> None:
    """Print the first lines that belong to no entry."""
    write_title(console, f"Lines that belong to no entry: the first of {format_count(result.rejected)}")
    for line in result.rejected_lines:
        number = "" if line.line is None else f":{line.line}"
        console.print(as_text(console, f"{line.file}{number}: {line.text}"), soft_wrap=True)
    console.print()


def _parts(result: LogResult, width: int, top: int, *, rejected: bool, full: bool) -> Iterator[TerminalPart]:
    lines = lines_words(result)
    if lines and (full or result.rejected):
        yield partial(write_paragraph, text=f"Lines: {lines}.", style="italic")
    if result.findings:
        yield partial(write_findings, result.findings)
    servers = servers_table(result, len(result.servers) if full else top)
    if servers is not None:
        yield servers
    if result.executions.count:
        overall = overall_words(result)
        if overall:
            yield partial(write_paragraph, text=overall)
        yield partial(_write_templates, result, top=top)
        yield from route_tables(result, top, full=full)
        origins = [table for table in contributions_tables(result) if len(table.rows) > 1]
        yield from origins if full else origins[:1]
        yield histogram_table(result)
        if full:
            yield protocol_table(result, top, width=max(_LEAST_TEXT, width - _PROTOCOL_FIGURES))
            yield partial(_write_slowest, result, top=top)
            yield hours_table(result.hours, result.hour_s)
    if result.pool is not None:
        yield from pool_tables(result.pool, top)
    yield errors_table(result.errors, top)
    if full:
        if result.sessions is not None:
            yield from session_tables(result.sessions)
        yield from activity_tables(result)
    if full or any(file.trouble or file.dialect is None or file.rejected for file in result.files):
        yield files_table(result)
    if rejected and result.rejected_lines:
        yield partial(_write_rejected, result)
