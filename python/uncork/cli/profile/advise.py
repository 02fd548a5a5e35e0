"""Name what is wrong with a database: `uncork advise`."""

from __future__ import annotations

import sys

import typer

import uncork
from uncork.analysis.advice.result import advice_of
from uncork.cli import console
from uncork.cli.pages import check_page, chosen_form, report_document
from uncork.cli.places import redacted_command
from uncork.cli.profile.database import end_if_hidden, watch_server
from uncork.cli.profile.logs import read_log_run
from uncork.report.advice.document import answer_advice, build_advice_document, render_advice_terminal
from uncork.requests.connection import named, refuse_asking, watched_server
from uncork.requests.jobs import ServerOptions
from uncork.requests.option import from_values
from uncork.requests.profile_options import AdviseOptions, LogOptions
from uncork.workbench.advice.sources import experiment_of, tell_apart
from uncork.workbench.profile.databases import DatabaseRecord, record_database


def advise(options: AdviseOptions) -> None:
    """Gather evidence, and show what is wrong."""
    check_page(options.html)
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
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
        watched = watch_server(record_database, options, server.address())
        folders.insert(0, watched.folder)
    found = advice_of(folders, redacted_command(sys.argv[1:]), uncork.__version__)
    result = answer_advice(found)
    if options.experiment is not None:
        known = server is not None and (sources.server or named(options))
        tables = server.address().conninfo() if server is not None and known else None
        typer.echo(experiment_of(result, options.experiment, folders[0], tables), nl=False)
        return
    report_document(
        folders[0],
        result,
        build_advice_document(result),
        form,
        options.html,
        name="advice",
        terminal=render_advice_terminal,
    )
    if watched is not None:
        kept = "the findings rest on what was recorded until then"
        console.end_early(watched.status, watched.trouble, kept)
    end_if_hidden(result.hidden)
