"""The report of an experiment in the terminal: the answer, the verdicts, their costs, and the next steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console

from uncork.model.results.experiment import Comparison, RunResult
from uncork.report.blocks import Table, Value
from uncork.report.cells import BoundColumn, column, header, number, table_of
from uncork.report.experiment.document import build_document
from uncork.report.experiment.effects import verdict_tables
from uncork.report.experiment.explanation import cost_highlights
from uncork.report.experiment.growth import growth_table, growth_words
from uncork.report.experiment.view import TONES, Place, View
from uncork.report.words import (
    SYMBOLS,
    figures_text,
    floor_text,
    level_text,
    published_text,
    verdict_text,
)
from uncork.report.write.terminal_text import (
    table_width,
    wrapped,
    write_answer,
    write_items,
    write_lines,
    write_paragraph,
    write_rows,
    write_steps,
    write_title,
)


def render_terminal(result: RunResult, console: Console) -> None:
    """Print the report on a run.

    The console sets colour and width; every verdict also has a sign and words.
    """
    document = build_document(result)
    view = View(result)
    write_paragraph(console, document.question, "italic")
    write_answer(console, document.answer)
    write_items(console, document.reasons)
    for table in _verdicts(view, console):
        write_lines(console, wrapped(table.caption, console.width), "bold")
        console.print()
        write_rows(console, table)
        console.print()
    if document.tally:
        counts = (f"{SYMBOLS[verdict]} {words} {count}" for verdict, words, count in document.tally)
        write_paragraph(console, "   ".join(text.replace(" ", "\N{NO-BREAK SPACE}") for text in counts))
    floor = result.noise.floor
    if floor is not None:
        write_paragraph(
            console, f"Noise floor: {floor_text(floor)} ({view.baseline} against itself, in every block)."
        )
    _write_growth(view, console)
    costs = cost_highlights(view)
    if costs:
        write_title(console, "Largest differences in cost per operation, baseline → variant")
        write_items(console, costs)
    if result.warnings:
        write_title(console, "Warnings")
        write_items(console, result.warnings)
    write_steps(console, document.steps)


def _write_growth(view: View, console: Console) -> None:
    growth = view.result.growth
    if growth is None:
        return
    write_title(console, f"How time grows with {growth.factor}")
    write_paragraph(console, growth_words(growth))
    if growth.lines:
        write_rows(console, growth_table(view, growth))
        console.print()


def _verdicts(view: View, console: Console) -> Iterable[Table]:
    """Return a table per workload: variants side by side if they fit, otherwise one comparison per line."""
    wide = verdict_tables(view)
    return wide if all(table_width(table) <= console.width for table in wide) else _lists(view)


def _lists(view: View) -> Iterable[Table]:
    for table, workload in zip(verdict_tables(view), view.workloads, strict=True):
        found = [
            (place, comparison)
            for place in view.places
            for name in (view.others if place[1] == workload else ())
            if (comparison := view.comparisons.get((*place, name))) is not None
        ]
        published = any(comparison.published_ratio is not None for _, comparison in found)
        yield table_of(
            table.caption,
            [comparison for _, comparison in found],
            *_first_levels(view, [place for place, _ in found]),
            header("variant", lambda comparison: comparison.variant),
            column("effect", _effect),
            column("verdict", _verdict),
            number("pub-\nlished", _published, when=published),
        )


def _first_levels(view: View, places: Sequence[Place]) -> Iterator[BoundColumn[Any]]:
    """Yield a column for each factor, with the level where a place is listed first."""
    levels = [
        {} if place == before else dict(place[0])
        for place, before in zip(places, (None, *places), strict=False)
    ]
    for factor in view.table_factors:
        yield header(
            factor.name,
            [level_text(of_place.get(factor.name, ""), factor.numeric) for of_place in levels],
            number=factor.numeric,
        )


def _effect(comparison: Comparison) -> Value:
    """Return an effect and its interval, with the effects of a column aligned."""
    effect, bracket, ends = figures_text(comparison).partition(" [")
    return Value(f"{effect:>6}{bracket}{ends}", tone=TONES[comparison.verdict])


def _verdict(comparison: Comparison) -> Value:
    return Value(verdict_text(comparison), tone=TONES[comparison.verdict])


def _published(comparison: Comparison) -> Value:
    return Value(published_text(comparison), tone="muted")
