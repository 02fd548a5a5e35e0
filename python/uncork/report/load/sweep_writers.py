"""A sweep in the terminal, as a page, as Markdown and as JSON."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from uncork.model.results.sweep import SWEEP_RESULT_VERSION, SweepResult
from uncork.report.load.sweep_document import build_sweep_document, levels_table
from uncork.report.write.html import page
from uncork.report.write.json_document import json_text, schema_of
from uncork.report.write.markdown import markdown_text
from uncork.report.write.terminal_text import draw_table, write_items, write_paragraph, write_steps

__all__ = [
    "render_sweep_html",
    "render_sweep_json",
    "render_sweep_markdown",
    "render_sweep_terminal",
    "sweep_schema",
]


def render_sweep_terminal(result: SweepResult, console: Console) -> None:
    """Print the report on a sweep: the answer, its doubts, the levels, what to do next."""
    document = build_sweep_document(result)
    write_paragraph(console, document.answer, "bold")
    if document.reasons:
        write_items(console, document.reasons)
    console.print(draw_table(levels_table(result, brief=True), console))
    console.print()
    write_steps(console, document.steps)


def render_sweep_html(result: SweepResult) -> str:
    """Return the report on a sweep as one self-contained page."""
    return page(build_sweep_document(result))


def render_sweep_markdown(result: SweepResult) -> str:
    """Return the report on a sweep as GitHub-flavoured Markdown, without its charts."""
    return markdown_text(build_sweep_document(result))


def render_sweep_json(result: SweepResult) -> str:
    """Return the result of a sweep as a JSON object that `sweep_schema` describes, ending with a newline."""
    return json_text(result)


def sweep_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON document of a sweep."""
    return schema_of(SweepResult, f"uncork sweep, version {SWEEP_RESULT_VERSION}")
