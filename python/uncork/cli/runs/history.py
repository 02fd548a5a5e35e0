"""Show the history of a metric over many runs: `uncork history`."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from uncork.analysis.runs.history import RunSelection, stored_history
from uncork.cli import console
from uncork.cli.pages import check_page, chosen_form
from uncork.errors import UsageError
from uncork.model.results.history import history_status
from uncork.report.runs.history import (
    answer_history,
    build_history_document,
    history_junit,
    render_history_terminal,
)
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.requests.moments import since_of
from uncork.requests.stored_options import HistoryOptions
from uncork.store.layout import write_atomically


def history(options: HistoryOptions) -> None:
    """Show the history of a metric; raise typer.Exit with 3 or 4 if the newest run is worse or undecided."""
    for file in (options.html, options.junit):
        check_page(file)
    if options.junit is not None and options.window is None:
        raise UsageError(
            "--junit needs --window N, the number of runs to judge the newest against, such as --window 20"
        )
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    found = answer_history(
        stored_history(
            options.runs,
            options.metric,
            subject=options.subject,
            like=options.like,
            any_machine=options.any_machine,
            everything=options.everything,
            selection=RunSelection(
                since_of(options.since, "--since", datetime.now(UTC)), options.branch or ""
            ),
            window=options.window,
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
    if options.junit is not None and found.newest is not None:
        write_atomically(options.junit, history_junit(found, found.newest))
    if history_status(found):
        raise typer.Exit(history_status(found))
