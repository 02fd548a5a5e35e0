"""Name what is wrong with a database: `uncork advise`."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

import uncork
from uncork.analysis.advice.result import advice_of
from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import check_page, chosen_form, write_pages
from uncork.cli.profile.database import end_if_hidden, watch_server
from uncork.cli.profile.logs import read_log_run
from uncork.cli.stored_command import redacted_command
from uncork.model.results.advice import AdviceResult
from uncork.report.advice.document import answer_advice, build_advice_document, render_advice_terminal
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.markdown import markdown_text
from uncork.requests.connection import named, refuse_asking, watched_server
from uncork.requests.jobs import ServerOptions
from uncork.requests.option import from_values
from uncork.requests.profile_options import AdviseOptions, LogOptions
from uncork.workbench.advice.experiment import experiment_of
from uncork.workbench.advice.sources import tell_apart
from uncork.workbench.profile.databases import DatabaseRecord, check_rate, record_database


def advise(options: AdviseOptions) -> None:
    """Gather evidence, and show what is wrong."""
    check_page(options.html)
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    check_rate(options.rate)
    sources = tell_apart(options.runs, options.sources or [], connects=named(options))
    refuse_asking(options, connects=sources.server is not None)
    server: ServerOptions | None = None
    if sources.server is not None:
        server = watched_server(options, sources.server, console.asked_password)
    folders = list(sources.folders)
    watched: DatabaseRecord | None = None
    if sources.logs:
        asked = from_values(LogOptions, {"files": sources.logs, "runs": options.runs, "quiet": options.quiet})
        folders.append(read_log_run(asked))
    if server is not None and (options.experiment is None or not folders):
        watched = watch_server(
            record_database,
            options.runs,
            server.address(),
            options.lasting,
            options.rate,
            quiet=options.quiet,
        )
        folders.insert(0, watched.folder)
    found = advice_of(folders, redacted_command(sys.argv[1:]), uncork.__version__)
    result = answer_advice(found)
    if options.experiment is not None:
        known = server is not None and (sources.server or named(options))
        tables = server.address().conninfo() if server is not None and known else None
        typer.echo(experiment_of(result, options.experiment, folders[0], tables), nl=False)
        return
    _show(result, folders[0], form, options.html)
    if watched is not None and watched.trouble:
        console.note(f"{watched.trouble}; the findings rest on what was recorded until then")
        raise typer.Exit(ExitStatus.RUN_ERROR)
    if watched is not None and watched.status == "interrupted":
        console.note("interrupted; the findings rest on what was recorded until then")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    end_if_hidden(result.hidden)


def _show(result: AdviceResult, folder: Path, form: str, html: Path | None) -> None:
    document = build_advice_document(result)
    page, text, data = html_page(document), markdown_text(document), json_text(result)
    if form == "terminal":
        render_advice_terminal(result, console.output)
    else:
        typer.echo(data if form == "json" else text, nl=False)
    write_pages(
        folder,
        html,
        html=page,
        markdown=text,
        json=data,
        names=("advice", "advice"),
        tell=form == "terminal",
    )
