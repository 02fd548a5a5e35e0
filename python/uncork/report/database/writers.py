"""A watched server as a page, as Markdown and as JSON: the writers of experiments, on its document."""

from __future__ import annotations

from typing import Any

from uncork.model.results.database import DATABASE_RESULT_VERSION, DatabaseResult
from uncork.report.database.document import build_database_document
from uncork.report.write.html import page
from uncork.report.write.json_document import json_text, schema_of
from uncork.report.write.markdown import markdown_text

__all__ = ["database_schema", "render_database_html", "render_database_json", "render_database_markdown"]


def render_database_html(result: DatabaseResult) -> str:
    """Return the report on a watched server as one self-contained page."""
    return page(build_database_document(result))


def render_database_markdown(result: DatabaseResult) -> str:
    """Return the report on a watched server as GitHub-flavoured Markdown, without its charts."""
    return markdown_text(build_database_document(result))


def render_database_json(result: DatabaseResult) -> str:
    """Return what watching tells as a JSON object that `database_schema` describes, ending with a newline."""
    return json_text(result)


def database_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON document of a watched server."""
    return schema_of(DatabaseResult, f"uncork database, version {DATABASE_RESULT_VERSION}")
