"""The report of an experiment in the terminal: the answer, the verdicts, their costs, and the next steps."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from uncork.model.results.experiment import Comparison, RunResult
from uncork.report.blocks import Column, Table, Value
from uncork.report.experiment.document import build_document
from uncork.report.experiment.effects import verdict_tables
from uncork.report.experiment.explanation import cost_highlights
from uncork.report.experiment.growth import growth_table, growth_words
from uncork.report.experiment.view import TONES, View
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
    """Format an effect and its interval, with the effects of a column aligned."""
    effect, bracket, ends = figures_text(comparison).partition(" [")
    return f"{effect:>6}{bracket}{ends}"
