"""Results of the data checks: a table, and a sentence for each variant that differs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from uncork.model.results.experiment import DataCheckFacts, Levels
from uncork.model.units import format_count
from uncork.report.blocks import Section, Table, Value
from uncork.report.cells import header, number, table_of
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
    checks = list(dict.fromkeys((title, cell) for title, cell, _ in found))

    def result_of(title: str, cell: Levels, name: str) -> Value:
        if (title, cell, name) not in found:
            return Value("", tone="muted")
        value = found[title, cell, name]
        return Value(
            _text(value), tone="plain" if value == found.get((title, cell, view.baseline)) else "unsure"
        )

    return table_of(
        "Run once on the data of each variant",
        checks,
        header("check", lambda check: check[0]),
        header("cell", lambda check: cell_words(check[1], view.factors)),
        *(number(name, [result_of(*check, name) for check in checks]) for name in view.variants),
    )


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
