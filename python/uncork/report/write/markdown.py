"""The Markdown writer, for pull requests, issues and notebooks. Long parts fold if HTML is supported."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from uncork.report.blocks import (
    Beside,
    Block,
    Bullets,
    Code,
    Document,
    Facts,
    Fold,
    ForestChart,
    Gallery,
    LineChart,
    Paragraph,
    Spark,
    Step,
    Table,
    Value,
)
from uncork.report.draw.spark import spark_text
from uncork.report.words import SYMBOLS

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>|~&]|#(?!\d))")
_MENTION: Final = re.compile(r"(?<![A-Za-z0-9])@(?=[A-Za-z0-9])")
"""Mentions, which notify a person or team on GitHub and GitLab; email addresses do not."""


def markdown_text(document: Document) -> str:
    """Return a document as GitHub-flavoured Markdown."""
    return "\n".join(_document(document)).rstrip() + "\n"


def _document(document: Document) -> Iterable[str]:
    yield f"# {escape(document.title)}"
    yield ""
    if document.question:
        yield f"_{escape(document.question)}_"
        yield ""
    yield f"**{escape(document.headline)}**{f' {escape(document.lead)}' if document.lead else ''}"
    yield ""
    yield from _bullets(document.reasons)
    if document.tally:
        yield " · ".join(f"{SYMBOLS[verdict]} {words}: {count}" for verdict, words, count in document.tally)
        yield ""
    yield from step_lines(document.steps, "## What to do next")
    for section in document.sections:
        body = [line for block in section.blocks for line in block_lines(block)]
        if body:
            yield f"## {escape(section.title)}"
            yield ""
            yield from body
    yield footer(document.facts, document.version)


def step_lines(steps: Sequence[Step], title: str) -> Iterable[str]:
    """Yield the next steps with their commands, under a title; nothing without steps."""
    if steps:
        yield title
        yield ""
        for step in steps:
            yield f"- {escape(step.text)}" + (f" {_code_text(step.command)}" if step.command else "")
        yield ""


def footer(facts: Sequence[tuple[str, str]], version: str) -> str:
    """Return the last line: facts about the run, and the version of uncork."""
    return f"<sub>{_line(Facts(tuple(facts)))} · uncork {escape(version)}</sub>"


def block_lines(block: Block) -> Iterable[str]:
    """Yield the lines of a block, the last one empty; none for blocks that Markdown cannot show."""
    match block:
        case Paragraph() | Facts() | Spark():
            yield _line(block)
            yield ""
        case Bullets(items):
            yield from _bullets(items)
        case Code(text, language, title):
            yield from _fenced(text, language, title)
        case Table():
            yield from _table(block)
        case LineChart(table=table) if table is not None:
            yield from _table(table)
        case Gallery(charts):
            lines = [chart for chart in charts if isinstance(chart, LineChart)]
            tables = [chart.table for chart in lines if chart.table is not None]
            if tables:
                yield from _folded(
                    f"Tables ({len(tables)})", [line for table in tables for line in _table(table)]
                )
        case Beside(blocks):
            for inner in blocks:
                yield from block_lines(inner)
        case Fold(summary, blocks):
            yield from _folded(summary, [line for inner in blocks for line in block_lines(inner)])
        case ForestChart() | _:
            return


def _line(block: Paragraph | Facts | Spark) -> str:
    match block:
        case Paragraph(text):
            return escape(text)
        case Facts(items):
            return " · ".join(f"{name} {escape(text)}" for name, text in items)
        case Spark(title, values, (first, last)):
            return f"{escape(title)}: {first} {spark_text(values)} {last}"


def _table(table: Table) -> Iterable[str]:
    used = [
        place
        for place, column in enumerate(table.columns)
        if column.header or any(row[place].text for row in table.rows) or not table.rows
    ]
    if table.caption:
        yield f"{escape(table.caption)}"
        yield ""
    yield "| " + " | ".join(escape(table.columns[place].title) for place in used) + " |"
    yield "|" + "|".join(" ---: " if table.columns[place].number else " --- " for place in used) + "|"
    for row in table.rows:
        yield "| " + " | ".join(_value(row[place]) for place in used) + " |"
    yield ""


def _value(value: Value) -> str:
    text = _code_text(value.text) if value.code and value.text else escape(value.text)
    notes = ", ".join(escape(line) for line in (value.note, value.more) if line)
    return f"{text}<br>{notes}" if notes else text


def _bullets(items: Iterable[str]) -> Iterable[str]:
    lines = [f"- {escape(item)}" for item in items]
    if lines:
        yield from lines
        yield ""


def _folded(summary: str, lines: list[str]) -> Iterable[str]:
    if lines:
        yield f"<details><summary>{escape(summary)}</summary>"
        yield ""
        yield from lines
        yield "</details>"
        yield ""


def _fenced(text: str, language: str, title: str) -> Iterable[str]:
    if title:
        yield escape(title)
        yield ""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    yield f"{fence}{language}"
    yield from text.rstrip("\n").splitlines()
    yield fence
    yield ""


def _code_text(text: str) -> str:
    """Return a text as inline code."""
    tick = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{tick}{space}{text}{space}{tick}".replace("|", "\\|").replace("\n", " ")


def escape(text: str) -> str:
    """Escape a text so that it is neither Markdown, HTML nor a mention; references such as ``#12`` stay."""
    flat = " ".join(text.split("\n"))
    escaped = _SPECIAL.sub(
        lambda match: {"<": "&lt;", ">": "&gt;", "&": "&amp;"}.get(match[1], f"\\{match[1]}"), flat
    )
    return _MENTION.sub("@\N{ZERO WIDTH SPACE}", escaped)
