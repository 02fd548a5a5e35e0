"""Compare two runs of logs: `uncork profile logs --against`, and `uncork compare` of two of them."""

from __future__ import annotations

from pathlib import Path

import typer

from uncork.cli import console
from uncork.cli.pages import Form, write_forms, write_pages
from uncork.report.log.comparison import (
    build_log_comparison_document,
    render_comparison_terminal,
)
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.documents.log_comparison import compare_stored_logs
from uncork.workbench.profile.logs import LogRun


def compare_log_runs(before: LogRun, after: LogRun, form: Form, html: Path | None, top: int = 10) -> None:
    """Show what changed between two logs, and write it beside the later one."""
    comparison = compare_stored_logs(before.folder, after.folder, (before.result, after.result))
    document = build_log_comparison_document(comparison)
    text, data = markdown_text(document), json_text(comparison)
    if form == "terminal":
        render_comparison_terminal(comparison, console.output, top=top)
    else:
        typer.echo(data if form == "json" else text, nl=False)
    for run in (before, after):
        write_forms(kind_named("log"), run.folder, run.result)
    write_pages(
        after.folder,
        html,
        html=html_page(document),
        markdown=text,
        json=data,
        names=("comparison", "comparison"),
        tell=form == "terminal",
    )
