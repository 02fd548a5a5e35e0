"""How a figure went over many runs: `uncork history`."""

from __future__ import annotations

from typing import Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.pages import check_page, chosen_form

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("history", epilog=examples_of("history"))(history)


def history(
    metric: Annotated[
        str,
        typer.Argument(
            metavar="METRIC", help="A figure, such as throughput, mean, p99, failed; as compare names it."
        ),
    ],
    subject: Annotated[
        str | None,
        typer.Option(
            "--of", metavar="WHAT", help="Of which statement, variant or command, where several have it."
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(
            "--like",
            metavar="RUN",
            help="Over runs that were asked the same as this one; else as the newest that has the figure.",
        ),
    ] = None,
    any_machine: Annotated[
        bool, typer.Option("--any-machine", help="Over runs of any machine, not of like ones only.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Over runs that a guard found broken, too.")
    ] = False,
    as_json: options.AsJson = False,
    markdown: options.Markdown = False,
    html: options.Html = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Show how a figure went over comparable stored runs, and where it changed.

    Each change tells how sure it is, since which run and commit, and what else differs there. Series of pure
    noise show a change in at most 5 %.
    """
    from uncork.analysis.runs.history import stored_history  # noqa: PLC0415
    from uncork.report.runs.history import build_history_document, render_history_terminal  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.report.runs.history_answer import answer_history  # noqa: PLC0415
    from uncork.report.write.html import html_page  # noqa: PLC0415
    from uncork.report.write.json_document import json_text  # noqa: PLC0415
    from uncork.report.write.markdown import markdown_text  # noqa: PLC0415
    from uncork.store.layout import write_atomically  # noqa: PLC0415

    check_page(html)
    form = chosen_form(as_json=as_json, markdown=markdown)
    found = answer_history(
        stored_history(
            runs, metric, subject=subject, like=like, any_machine=any_machine, everything=everything
        )
    )
    if form == "terminal":
        render_history_terminal(found, console.output)
    else:
        text = json_text(found) if form == "json" else markdown_text(build_history_document(found))
        typer.echo(text, nl=False)
    if html is not None:
        write_atomically(html, html_page(build_history_document(found)))
        if form == "terminal":
            console.output.print(f"\nreport: {html.resolve()}", soft_wrap=True)
