"""A load as a page, as Markdown and as JSON: the writers of experiments, on the document of a load."""

from __future__ import annotations

from typing import Any

from uncork.model.results.load import LOAD_RESULT_VERSION, LoadResult
from uncork.report.load.document import build_load_document
from uncork.report.write.html import page
from uncork.report.write.json_document import json_text, schema_of
from uncork.report.write.markdown import markdown_text

__all__ = ["load_schema", "render_load_html", "render_load_json", "render_load_markdown"]


def render_load_html(result: LoadResult) -> str:
    """Return the report on a load as one self-contained page."""
    return page(build_load_document(result))


def render_load_markdown(result: LoadResult) -> str:
    """Return the report on a load as GitHub-flavoured Markdown, without its charts."""
    return markdown_text(build_load_document(result))


def render_load_json(result: LoadResult) -> str:
    """Return the result of a load as a JSON object that `load_schema` describes, ending with a newline."""
    return json_text(result)


def load_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON document of a load."""
    return schema_of(LoadResult, f"uncork load, version {LOAD_RESULT_VERSION}")
