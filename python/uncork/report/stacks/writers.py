"""Stacks as a page, as Markdown and as JSON: the writers of experiments, on their document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uncork.model.results.stacks import STACK_RESULT_VERSION, StackResult
from uncork.report.blocks import Flame
from uncork.report.stacks.document import build_stack_document
from uncork.report.write.html import page
from uncork.report.write.json_document import json_text, schema_of
from uncork.report.write.markdown import markdown_text

__all__ = ["render_stack_html", "render_stack_json", "render_stack_markdown", "stack_schema"]


def render_stack_html(result: StackResult, flames: Sequence[Flame] = ()) -> str:
    """Return the report on stacks as one self-contained page, with its flame graphs."""
    return page(build_stack_document(result, flames))


def render_stack_markdown(result: StackResult) -> str:
    """Return the report on stacks as GitHub-flavoured Markdown, without its flame graphs."""
    return markdown_text(build_stack_document(result))


def render_stack_json(result: StackResult) -> str:
    """Return what stacks tell as a JSON object that `stack_schema` describes, ending with a newline."""
    return json_text(result)


def stack_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the JSON document of stacks."""
    return schema_of(StackResult, f"uncork stacks, version {STACK_RESULT_VERSION}")
