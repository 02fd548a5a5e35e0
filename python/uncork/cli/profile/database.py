"""Profile a running PostgreSQL server: `uncork profile db`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import typer

from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.places import redacted_command
from uncork.engines.conninfo import Address
from uncork.errors import UsageError
from uncork.model.database.missing import HiddenWork
from uncork.model.units import format_duration
from uncork.report.database.words import snapshot_line
from uncork.report.findings import hidden_note
from uncork.requests.connection import watched_server
from uncork.requests.profile_options import AdviseOptions, CaptureOptions, CureOptions, DatabaseOptions
from uncork.store.layout import find_run, write_atomically
from uncork.workbench.profile.databases import profile_database

if TYPE_CHECKING:
    from uncork.model.results.database import DatabaseResult
    from uncork.workbench.profile.database_watch import ProgressSnapshot

R = TypeVar("R")


def profile_db(options: DatabaseOptions) -> None:
    """Profile a server, and show the result."""
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    for path in (options.html, options.graph):
        check_page(path)
    if options.graph is not None and options.graph.suffix != ".dot":
        raise UsageError(f"--graph {options.graph}: end the name with .dot")
    since = None if options.since is None else find_run(options.runs, options.since, files=False).name
    server = watched_server(options, options.database, console.asked_password)
    run = watch_server(profile_database, options, server.address(), anonymous=options.anonymize)
    # Imported after the watch, whose first sample comes sooner without.
    from uncork.report.database.document import render_database_terminal  # noqa: PLC0415
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415

    if since is not None and not run.trouble and run.result.run.status == "complete":
        _compare(options, since, run.folder)
        end_if_hidden(run.result.hidden)
        return
    if options.graph is not None:
        _write_graph(options.graph, run.result)
    terminal = partial(render_database_terminal, top=options.top, full=options.full)
    report(kind_named("database"), run.folder, run.result, form, options.html, terminal=terminal)
    console.end_early(run.status, run.trouble, "what was recorded until then is kept")
    end_if_hidden(run.result.hidden)


def _compare(options: DatabaseOptions, since: str, folder: Path) -> None:
    from uncork.cli.compare import compare  # noqa: PLC0415 -- seldom needed
    from uncork.requests.stored_options import CompareOptions  # noqa: PLC0415

    compared = CompareOptions(
        compared=[folder.name],
        against=since,
        as_json=options.as_json,
        markdown=options.markdown,
        html=options.html,
        runs=options.runs,
    )
    compare(compared)


def end_if_hidden(hidden: HiddenWork | None) -> None:
    """Raise typer.Exit with status 1 if most of the work was hidden from the role that watched."""
    if hidden is not None and hidden.most:
        console.note(hidden_note(hidden))
        raise typer.Exit(ExitStatus.USAGE)


def watch_server(
    work: Callable[..., R],
    options: DatabaseOptions | AdviseOptions | CaptureOptions | CureOptions,
    address: Address,
    *,
    anonymous: bool = False,
) -> R:
    """Watch a server with progress on standard error, unless it is to be quiet, and store what was observed.

    `work` is `profile_database`, or `record_database` for callers that analyze what was stored.
    """
    seconds, quiet = options.lasting / 1e9, options.quiet

    def begun() -> None:
        if not quiet:
            what = f"watching {address.place} for {format_duration(options.lasting)}"
            console.note(f"{what}; Ctrl-C stops early and writes the report")

    try:
        return work(
            options.runs,
            address,
            seconds=seconds,
            rate_hz=options.rate,
            command=redacted_command(sys.argv[1:]),
            anonymous=anonymous,
            begun=begun,
            show=None if quiet else _progress(seconds),
        )
    finally:
        if not quiet:
            console.end_live()


def _write_graph(path: Path, result: DatabaseResult) -> None:
    from uncork.report.database.graph import foreign_key_dot  # noqa: PLC0415 -- seldom needed

    write_atomically(path, foreign_key_dot(result))


def _progress(seconds: float) -> Callable[[ProgressSnapshot], None]:
    def show(snapshot: ProgressSnapshot) -> None:
        left = max(0.0, seconds - snapshot.elapsed_ns / 1e9)
        line = snapshot_line(snapshot.sessions, snapshot.classes, left)
        console.show_live(line, snapshot.elapsed_ns)

    return show
