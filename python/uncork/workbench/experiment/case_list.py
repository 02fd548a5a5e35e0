"""The published cases: their questions, sources and figures, and the commands that repeat them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uncork import cases


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A published figure: what it is about, and its values by variant or before and after."""

    of: str
    figures: tuple[tuple[str, str], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class CasePage:
    """One case. `commands` repeat it, each with a description; `text` is its README in Markdown."""

    name: str
    question: str
    source: str
    published: tuple[PublishedRow, ...]
    commands: tuple[tuple[str, str], ...]
    text: str


def all_cases() -> tuple[CasePage, ...]:
    """Return every case, in alphabetical order."""
    return tuple(case_page(name) for name in cases.names())


def case_page(name: str) -> CasePage:
    """Return a case; raises KeyError if there is none of that name."""
    folder = cases.path(name)
    experiment = tomllib.loads((folder / "case.toml").read_text())["experiment"]
    expected = folder / "expected.toml"
    figures = tomllib.loads(expected.read_text()) if expected.is_file() else {}
    commands = [(f"uncork case run {name}", "a quick version, in minutes")]
    commands += (
        [(f"uncork case run {name} --full", "the whole case")] if "full" in figures.get("run", {}) else []
    )
    return CasePage(
        name=name,
        question=experiment["question"],
        source=figures.get("source") or experiment.get("source", ""),
        published=tuple(
            [_matrix_row(row) for row in figures.get("published", ())]
            + [_figure_row(row) for row in figures.get("figures", ())]
        ),
        commands=tuple(commands),
        text=(folder / "README.md").read_text(),
    )


def _matrix_row(row: Mapping[str, Any]) -> PublishedRow:
    cell = ", ".join(f"{factor} {level}" for factor, level in row.get("cell", {}).items())
    figures = tuple((variant, _number(value)) for variant, value in row.get("values", {}).items())
    return PublishedRow(
        ", ".join(filter(None, (row.get("workload", ""), cell))), figures, row.get("note", "")
    )


def _figure_row(row: Mapping[str, Any]) -> PublishedRow:
    figures = tuple((name, str(row[name])) for name in ("before", "after") if row.get(name))
    return PublishedRow(row["name"], figures, row.get("note", ""))


def _number(value: float) -> str:
    return f"{value:,}".replace(",", "\N{NARROW NO-BREAK SPACE}")
