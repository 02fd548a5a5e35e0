"""Show the history of a metric over many runs: `uncork history`."""

from __future__ import annotations

import typer

from uncork.analysis.runs.history import stored_history
from uncork.cli import console
from uncork.cli.pages import check_page, chosen_form
from uncork.report.runs.history import build_history_document, render_history_terminal
from uncork.report.runs.history_answer import answer_history
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.requests.stored_options import HistoryOptions
from uncork.store.layout import write_atomically

__all__ = ["history"]


def history(options: HistoryOptions) -> None:
    """Show the history of a metric."""
    check_page(options.html)
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    found = answer_history(
        stored_history(
            options.runs,
            options.metric,
            subject=options.subject,
            like=options.like,
            any_machine=options.any_machine,
            everything=options.everything,
        )
    )
    if form == "terminal":
        render_history_terminal(found, console.output)
    else:
        text = json_text(found) if form == "json" else markdown_text(build_history_document(found))
        typer.echo(text, nl=False)
    if options.html is not None:
        write_atomically(options.html, html_page(build_history_document(found)))
        if form == "terminal":
            console.output.print(f"\nreport: {options.html.resolve()}", soft_wrap=True)
