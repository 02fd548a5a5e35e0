"""The terminal writer of a watched server: the answer in one sentence, the findings, then the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final

from rich.console import Console

from uncork.model.results.database import DatabaseResult
from uncork.report.advice.document import write_findings
from uncork.report.database.answer import uneven
from uncork.report.database.document import build_database_document
from uncork.report.database.tables import (
    background_table,
    blockers_table,
    clocks_table,
    counters_table,
    foreign_keys_table,
    indexes_table,
    islands_table,
    kernel_table,
    referring_table,
    route_templates_table,
    routes_table,
    settings_table,
    statements_table,
    steps_table,
    tables_table,
    templates_table,
    tree_table,
    usage_tables,
    watch_table,
)
from uncork.report.database.words import sessions_text
from uncork.report.draw.spark import spark_text
from uncork.report.quantity_words import step_text
from uncork.report.write.terminal_text import (
    TerminalPart,
    entry_width,
    wrapped,
    write_entry,
    write_lines,
    write_report,
    write_title,
)

_TREE: Final = 20
"""Characters of a line of the tree that its numbers take."""
_ROOTS: Final = 3
_WAITERS: Final = 3
"""Root blockers, and sessions that each of them blocks, shown without --full."""
_FIGURES: Final = 90
"""Characters that the numbers of a statement take."""
_KERNEL_FIGURES: Final = 66
"""Characters that the numbers of its processor time take."""
_LEAST_TEXT: Final = 20
_INDENT: Final = 4
_COARSE: Final = 0.02
"""Parts of the tree with a smaller share are grouped in the terminal."""


def render_database_terminal(
    result: DatabaseResult, console: Console, *, top: int = 10, full: bool = False
) -> None:
    """Print the report on a watched server: the `top` templates and tables; `full` prints all tables."""
    parts = _parts(result, console.width, top, full=full)
    write_report(console, build_database_document(result), parts, facts=True)


def _parts(result: DatabaseResult, width: int, top: int, *, full: bool) -> Iterator[TerminalPart]:
    if full and result.findings:
        yield partial(write_findings, result.findings)
    if uneven(result):
        yield partial(_write_shape, result)
    if result.tree.sessions:
        yield tree_table(result, width=width - _TREE, least=0.0 if full else _COARSE)
        yield steps_table(result) if full or any(step.name == "plan" for step in result.steps) else None
    most, waiters = (None, None) if full else (_ROOTS, _WAITERS)
    yield blockers_table(result, width=width, most=most, waiters=waiters)
    yield partial(_write_templates, result, top)
    yield routes_table(result, top)
    if full:
        yield from (route_templates_table(route, width=width - _TREE) for route in result.routes[:top])
        yield statements_table(result, top, width=max(_LEAST_TEXT, width - _FIGURES))
        yield kernel_table(result, top, width=max(_LEAST_TEXT, width - _KERNEL_FIGURES))
        yield from usage_tables(result)
        yield from (background_table(result, width=width - _TREE), tables_table(result, top, brief=True))
    if full:
        yield from (indexes_table(result, top, doubtful=True), indexes_table(result, top))
        yield from (islands_table(result), foreign_keys_table(result), referring_table(result, top))
        yield from (settings_table(result), counters_table(result), watch_table(result), clocks_table(result))


def _write_shape(result: DatabaseResult, console: Console) -> None:
    """Print busy sessions over time as bars, because the average hides a burst."""
    history = result.history
    totals = [sum(values) for values in zip(*(layer.sessions for layer in history.layers), strict=True)]
    write_title(console, f"Busy sessions over time, in steps of {step_text(history.step_s)}")
    many = -(-len(totals) // max(_LEAST_TEXT, console.width - _INDENT))
    bars = [max(totals[place : place + many]) for place in range(0, len(totals), many)]
    write_lines(console, [f"{spark_text(bars)}  at most {sessions_text(max(totals))}"])
    console.print()


def _write_templates(result: DatabaseResult, top: int, console: Console) -> None:
    """Print the costliest templates: a line of numbers, and the template on its own line."""
    table = templates_table(result, top, width=entry_width(console, _INDENT))
    if table is None:
        return
    write_lines(console, wrapped(table.caption, console.width), "bold")
    console.print()
    for rank, sessions, share, mostly, *counted, template in table.rows:
        calls = [f"{counted[0].text} × {counted[1].text}"] if counted and counted[0].text else []
        note = f" ({mostly.note})" if mostly.note else ""
        line = f"{rank.text:>2}  {sessions.text:>5}  {share.text:>6}  {mostly.text}{note}"
        write_entry(console, (line, *calls), (template.text,), _INDENT)
    console.print()
