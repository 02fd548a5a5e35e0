"""A finished run for people and programs: terminal, Markdown, HTML, JSON.

`document` turns a `RunResult` into a neutral `Document`, `load_document` does so with a `LoadResult`; each
writer renders that and knows nothing of the others. JSON alone holds the result itself.
"""

from uncork.report.answer import compose_answer
from uncork.report.document import build_document
from uncork.report.html import render_html
from uncork.report.json_document import render_json, schema
from uncork.report.markdown import render_markdown
from uncork.report.terminal import render_terminal

__all__ = [
    "build_document",
    "compose_answer",
    "render_html",
    "render_json",
    "render_markdown",
    "render_terminal",
    "schema",
]
