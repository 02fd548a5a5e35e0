"""Profile a database's server: `uncork profile db`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import console, options
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.load import sql_options as given
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.stored_command import redacted_command
from uncork.errors import UsageError
from uncork.model.units import format_duration

if TYPE_CHECKING:
    from uncork.model.results.database import DatabaseResult
    from uncork.workbench.profile.database_watch import Glance

__all__ = ["db"]

_EVERY_S = 10.0
"""How often progress is told where standard error is no terminal."""


def db(
    database: Annotated[
        str | None,
        typer.Argument(
            metavar="[DSN]",
            help="Database, or connection string (URI or key=value; PG*, service files and .pgpass work).",
            show_default=False,
        ),
    ] = None,
    host: given.Host = None,
    port: given.Port = None,
    user: given.User = None,
    lasting: Annotated[
        str, typer.Option("--for", metavar="TIME", help='How long to watch, such as "10min".')
    ] = "60s",
    rate: Annotated[float, typer.Option("--rate", metavar="HZ", help="Samples a second, 0.1 to 200.")] = 20,
    top: options.Templates = 10,
    full: options.Full = False,
    as_json: options.AsJson = False,
    markdown: options.Markdown = False,
    html: options.Html = None,
    graph: Annotated[
        Path | None,
        typer.Option(
            "--graph", metavar="FILE", help="Write the graph of foreign keys here: FILE.dot or FILE.svg."
        ),
    ] = None,
    quiet: options.Quiet = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Say where the time of a running server goes: on CPU, waiting for what, held up by whom, by template.

    Reads counters before and after, samples who works and who waits in between, changes nothing and resets
    nobody's counters. The run is stored; `uncork report` shows it again.
    """
    from uncork.report.database.terminal import render_database_terminal  # noqa: PLC0415
    from uncork.requests.jobs import ServerOptions  # noqa: PLC0415
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415
    from uncork.workbench.profile.databases import check_rate, profile_database  # noqa: PLC0415 -- keeps `uncork --help` fast

    check_page(html)
    form = chosen_form(as_json=as_json, markdown=markdown)
    check_page(graph)
    if graph is not None and graph.suffix not in (".dot", ".svg"):
        raise UsageError(f"--graph {graph}: end the name with .dot or .svg")
    seconds = options.seconds(lasting, "--for")
    check_rate(rate)
    address = ServerOptions(host=host, port=_port(port), user=user, database=database).address()
    show = None if quiet else _progress(seconds)

    def begun() -> None:
        if not quiet:
            console.note(f"watching for {format_duration(seconds * 1e9)}; Ctrl-C ends and writes the report")

    try:
        run = profile_database(
            runs,
            address,
            seconds=seconds,
            rate_hz=rate,
            command=redacted_command(sys.argv[1:]),
            begun=begun,
            show=show,
        )
    finally:
        if console.talk.is_terminal and not quiet:
            console.talk.file.write("\r\033[K")
    if graph is not None:
        _write_graph(graph, run.result)
    terminal = partial(render_database_terminal, top=top, full=full)
    report(kind_named("database"), run.folder, run.result, form, html, terminal=terminal)
    if run.result.run.status == "interrupted":
        console.note("interrupted; what was seen until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if run.trouble:
        console.note(f"{run.trouble}; what was seen until then is kept")
        raise typer.Exit(ExitStatus.RUN_ERROR)


def _write_graph(path: Path, result: DatabaseResult) -> None:
    from uncork.report.database.graph import foreign_key_dot, foreign_key_svg  # noqa: PLC0415
    from uncork.store.layout import write_atomically  # noqa: PLC0415

    write_atomically(path, foreign_key_dot(result) if path.suffix == ".dot" else foreign_key_svg(result))


def _port(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f'--port "{text}" is no number') from error


def _progress(seconds: float) -> Callable[[Glance], None]:
    """Return what tells how it goes: a live line in a terminal, else now and then a line."""
    told = time.monotonic()
    live = console.talk.is_terminal

    def tell(glance: Glance) -> None:
        from uncork.report.database.words import glance_line  # noqa: PLC0415

        nonlocal told
        now = time.monotonic()
        if not live and now - told < _EVERY_S:
            return
        told = now
        left = max(0.0, seconds - glance.elapsed_ns / 1e9)
        line = glance_line(glance.sessions, glance.classes, left)
        if live:
            console.talk.file.write(f"\r\033[K{line[: console.talk.width - 1]}")
            console.talk.file.flush()
        else:
            console.note(line)

    return tell
