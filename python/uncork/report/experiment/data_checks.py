"""Results of the data checks: a table, and a sentence for each variant that differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from uncork.model.results.experiment import DataCheckFacts
from uncork.model.units import format_count
from uncork.report.blocks import Column, Section, Table, Tone, Value
from uncork.report.experiment.view import View
from uncork.report.words import cell_words, series_words


def data_check_sections(view: View) -> Iterable[Section]:
    """Yield the section on data checks; none if the experiment has none."""
    if view.result.data_checks:
        yield Section("data-checks", "Data checks", (data_check_table(view),))


def data_check_table(view: View) -> Table:
    """Return a table with a row per check and cell and a column per variant; differences stand out."""
    found = {
        (data_check.title, data_check.cell, data_check.variant): data_check.value
        for data_check in view.result.data_checks
    }
    columns = [Column("check", header=True), Column("cell", header=True)]
    columns += [Column(name, number=True) for name in view.variants]
    rows = []
    for title, cell in dict.fromkeys(
        (data_check.title, data_check.cell) for data_check in view.result.data_checks
    ):
        base = found.get((title, cell, view.baseline))
        row = [Value(title), Value(cell_words(cell, view.factors))]
        for name in view.variants:
            value = found.get((title, cell, name))
            absent = (title, cell, name) not in found
            tone: Tone = "muted" if absent else "plain" if value == base else "unsure"
            row.append(Value("" if absent else _text(value), tone=tone))
        rows.append(tuple(row))
    return Table("Run once on the data of each variant", tuple(columns), tuple(rows))


def data_check_words(checks: Sequence[DataCheckFacts], baseline: str) -> tuple[str, ...]:
    """Return a sentence for each check whose result differs from the baseline's, for the last such cell."""
    sentences = []
    for title in dict.fromkeys(check.title for check in checks):
        sentence = ""
        for cell in dict.fromkeys(check.cell for check in checks if check.title == title):
            here = {
                check.variant: check.value for check in checks if (check.title, check.cell) == (title, cell)
            }
            others = {name: value for name, value in here.items() if value != here.get(baseline)}
            if baseline in here and others:
                parts = series_words(f"{_text(value)} with {name}" for name, value in others.items())
                place = f" at {', '.join(f'{factor} {level}' for factor, level in cell)}" if cell else ""
                sentence = f"{title}{place}: {_text(here[baseline])} with {baseline}, but {parts}"
        sentences.append(sentence)
    return tuple(filter(None, sentences))


def _text(value: str | None) -> str:
    if value is None:
        return "nothing"
    return format_count(int(value)) if value.isdecimal() else value
