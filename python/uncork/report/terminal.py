"""The terminal writer: the answer, the verdicts, what they cost, what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from uncork.model.result import Comparison, RunResult
from uncork.report.blocks import Column, Table, Tone, Value
from uncork.report.document import build_document
from uncork.report.effects import verdict_tables
from uncork.report.explanation import cost_highlights
from uncork.report.view import TONES, View
from uncork.report.words import (
    SYMBOLS,
    effect_text,
    hold_together,
    interval_text,
    level_text,
    published_text,
    verdict_text,
)

__all__ = ["render_terminal"]

_STYLES: Final[dict[Tone, str]] = {
    "plain": "",
    "faster": "bold green",
    "slower": "bold red",
    "same": "",
    "unsure": "yellow",
    "refused": "bold magenta",
    "skipped": "dim",
    "muted": "dim",
}
_NOTE_WIDTH: Final = 26
"""The longest verdict with its sign fits; longer reasons are broken, so that they widen no table."""
_ASCII: Final = str.maketrans(
    {"✓": "+", "✗": "x", "–": "-", "−": "-", "×": "x", "÷": "/", "→": "->", "µ": "u", "±": "+-", "∞": "inf"}
    | {"•": "*", "·": "-"}
)


def render_terminal(result: RunResult, console: Console) -> None:
    """Print the report on a run. Colour and width are the console's; signs and words carry every verdict."""
    document = build_document(result)
    view = View(result)
    _paragraph(console, document.question, "italic")
    _paragraph(console, document.answer, "bold")
    _items(console, document.reasons)
    for table, drawn in _verdicts(view, console):
        _lines(console, _wrapped(table.caption, console.width), "bold")
        console.print()
        console.print(drawn)
        console.print()
    if document.tally:
        counts = (f"{SYMBOLS[verdict]} {verdict.value} {count}" for verdict, count in document.tally)
        _paragraph(console, "   ".join(text.replace(" ", "\N{NO-BREAK SPACE}") for text in counts))
    floor = result.noise.floor
    if floor is not None:
        _paragraph(
            console, f"Noise floor: ±{floor * 100:.1f} % ({view.baseline} against itself, in every block)."
        )
    costs = cost_highlights(view)
    if costs:
        _title(console, "Top costs an operation, baseline → variant")
        _items(console, costs)
    if result.doubts:
        _title(console, "Doubts")
        _items(console, result.doubts)
    if document.steps:
        _title(console, "What to do next")
        for step in document.steps:
            _item(console, step.text)
            if step.command:
                console.print(_text(console, f"      {step.command}", "bold cyan"), soft_wrap=True)


def _verdicts(view: View, console: Console) -> Iterable[tuple[Table, RichTable]]:
    """Return a table a workload, variants side by side if all of them fit, else one comparison a line."""
    unbounded = console.options.update(width=10_000)
    wide = [(table, _rich(table, console)) for table in verdict_tables(view)]
    if all(Measurement.get(console, unbounded, drawn).maximum <= console.width for _, drawn in wide):
        return wide
    return [(table, _rich(table, console)) for table in _lists(view)]


def _lists(view: View) -> Iterable[Table]:
    for table, workload in zip(verdict_tables(view), view.workloads, strict=True):
        factors = view.table_factors
        published = any(
            c.published_ratio is not None for c in view.result.comparisons if c.workload == workload
        )
        columns = [Column(factor.name, header=True, number=factor.numeric) for factor in factors]
        columns += [Column("variant", header=True), Column("effect"), Column("verdict")]
        columns += [Column("pub-\nlished", number=True)] if published else []
        rows, shown = [], None
        for place in view.places:
            for name in view.others if place[1] == workload else ():
                found = view.comparisons.get((*place, name))
                if found is None:
                    continue
                levels = dict(place[0]) if place != shown else {}
                tone = TONES[found.verdict]
                row = [Value(level_text(levels.get(f.name, ""), f.numeric)) for f in factors]
                row += [Value(name), Value(_figures(found), tone=tone), Value(verdict_text(found), tone=tone)]
                row += [Value(published_text(found), tone="muted")] if published else []
                rows.append(tuple(row))
                shown = place
        yield Table(table.caption, tuple(columns), tuple(rows))


def _figures(comparison: Comparison) -> str:
    """Show an effect and its interval, the effects of a column one below the other."""
    if comparison.ratio is None:
        return ""
    return f"{effect_text(comparison.ratio):>6} {interval_text(comparison.low, comparison.high)}"


def _rich(table: Table, console: Console) -> RichTable:
    found = RichTable(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for column in table.columns:
        found.add_column(
            _text(console, column.title), justify="right" if column.number else "left", no_wrap=False
        )
    for row in table.rows:
        found.add_row(*(_value(console, value) for value in row))
    return found


def _value(console: Console, value: Value) -> Text:
    text = _text(console, value.text, _STYLES[value.tone])
    notes = [*textwrap.wrap(value.note, _NOTE_WIDTH), value.more]
    for line in filter(None, notes):
        text.append("\n")
        text.append_text(_text(console, line, "dim" if value.tone in ("same", "muted") else ""))
    return text


def _title(console: Console, text: str) -> None:
    console.print(_text(console, text, "bold"))


def _paragraph(console: Console, text: str, style: str = "") -> None:
    if text:
        _lines(console, _wrapped(text, console.width), style)
        console.print()


def _items(console: Console, items: Iterable[str]) -> None:
    for item in items:
        _item(console, item)
    console.print()


def _item(console: Console, item: str) -> None:
    first, *rest = _wrapped(item, console.width - 4)
    _lines(console, [f"  • {first}", *(f"    {line}" for line in rest)])


def _lines(console: Console, lines: Iterable[str], style: str = "") -> None:
    for line in lines:
        console.print(_text(console, line, style))


def _wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines, never within a figure, its unit or an interval."""
    lines = textwrap.wrap(hold_together(text), max(width, 20), break_on_hyphens=False, break_long_words=False)
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [""]


def _text(console: Console, text: str, style: str = "") -> Text:
    """Return a text as it is: names never act as markup; signs become ASCII where the console needs it."""
    return Text(text if console.encoding.lower().startswith("utf") else text.translate(_ASCII), style=style)
