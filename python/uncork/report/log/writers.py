"""A log as a page, as Markdown and as JSON: the writers of experiments, on the document of a log."""

from __future__ import annotations

from typing import Any, Final

from uncork.model.results.log import LOG_RESULT_VERSION, LogResult
from uncork.report.log.document import build_log_document
from uncork.report.write.html import page
from uncork.report.write.json_document import json_text, schema_of
from uncork.report.write.markdown import markdown_text

__all__ = ["log_schema", "render_log_html", "render_log_json", "render_log_markdown"]

_PARTS_OF_MARKDOWN: Final = 200
"""Templates with a part of their own in Markdown, which is read from its beginning to its end."""


def render_log_html(result: LogResult) -> str:
    """Return the report on a log as one self-contained page."""
    return page(build_log_document(result, parts=len(result.templates)))


def render_log_markdown(result: LogResult) -> str:
    """Return the report on a log as GitHub-flavoured Markdown, without its charts."""
    return markdown_text(build_log_document(result, parts=_PARTS_OF_MARKDOWN))


def render_log_json(result: LogResult) -> str:
    """Return what a log tells as a JSON object that `log_schema` describes, ending with a newline."""
    return json_text(result)


def log_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON document of a log."""
    return schema_of(LogResult, f"uncork log, version {LOG_RESULT_VERSION}")
