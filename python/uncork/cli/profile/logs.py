"""Profile a database: `uncork profile logs`, and from their own files `uncork profile db` and `cpu`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import Form, check_page, chosen_form, report, write_forms, write_pages
from uncork.cli.profile import cpu as profile_cpu
from uncork.cli.profile import database as profile_database
from uncork.cli.profile.following import Following
from uncork.cli.stored_command import redacted_command
from uncork.errors import UsageError

if TYPE_CHECKING:
    from uncork.profile.logs import LogRequest
    from uncork.workbench.profile.logs import LogRun

__all__ = ["compare_log_runs", "register"]

_app = typer.Typer(no_args_is_help=True, help="Find where the time goes: evidence from a database.")
_EVERY_S = 1.0
"""How often progress is told where standard error is no terminal."""


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    _app.command("db", epilog=examples_of("profile db"))(profile_database.db)
    # Words behind the command are its own, whatever they look like.
    _app.command(
        "cpu", epilog=examples_of("profile cpu"), context_settings={"allow_interspersed_args": False}
    )(profile_cpu.cpu)
    app.add_typer(_app, name="profile")


@_app.command("logs", epilog=examples_of("profile logs"))
def logs(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILES...",
            help="Logs, in the order they were written: files, globs, folders, - for standard input; also "
            "compressed and in archives.",
        ),
    ],
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", "-p", metavar="TEXT", help="The log_line_prefix, if it is not found out."),
    ] = None,
    begin: Annotated[
        str | None,
        typer.Option("--begin", "-b", metavar="TIME", help="Only entries from here on, in UTC."),
    ] = None,
    end: Annotated[
        str | None,
        typer.Option("--end", "-e", metavar="TIME", help="Only entries before there, in UTC."),
    ] = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            metavar="OTHER",
            help="Compare with this earlier log: a file, glob or folder; may be given again.",
        ),
    ] = None,
    against_begin: Annotated[
        str | None,
        typer.Option(
            "--against-begin", metavar="TIME", help="The same for the earlier log, or period of FILES."
        ),
    ] = None,
    against_end: Annotated[str | None, typer.Option("--against-end", metavar="TIME", help="Its end.")] = None,
    top: options.Templates = 10,
    full: options.Full = False,
    rejected: Annotated[
        bool, typer.Option("--rejected", help="Show lines that were not understood.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Threads; 0 for one a processor.")] = 0,
    events: Annotated[
        Path | None,
        typer.Option(
            "--events",
            metavar="DIR",
            help="Write every entry as Parquet there, for `uncork sql` or any tool.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Go on while files grow and are rotated, until Ctrl-C."),
    ] = False,
    lasting: Annotated[
        str | None,
        typer.Option("--for", metavar="TIME", help='End following after this time, such as "10min".'),
    ] = None,
    every: Annotated[
        str, typer.Option("--every", metavar="TIME", help="How often following shows the figures.")
    ] = "5s",
    anonymize: Annotated[
        bool,
        typer.Option(
            "--anonymize", help="Keep no literals, parameters or details; pseudonyms for users and hosts."
        ),
    ] = False,
    as_json: options.AsJson = False,
    markdown: options.Markdown = False,
    html: options.Html = None,
    quiet: options.Quiet = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Say where the time went, from PostgreSQL's logs: templates, applications, errors, locks, files.

    Reads stderr logs with any log_line_prefix, csvlog and jsonlog. The run is stored; `uncork report` shows
    it again.
    """
    from uncork.workbench.profile.log_files import expand, log_request  # noqa: PLC0415 -- keeps `uncork --help` fast

    check_page(html)
    form = chosen_form(as_json=as_json, markdown=markdown)
    command = redacted_command(sys.argv[1:])
    if follow and (against or against_begin or against_end):
        raise UsageError("--follow reads on, and --against compares what is there: use one of them")
    if lasting is not None and not follow:
        raise UsageError("--for says how long --follow goes on: give both")
    following = None
    if follow:
        length = None if lasting is None else options.seconds(lasting, "--for")
        following = Following(files, options.seconds(every, "--every"), length, top)
    request = log_request(files if follow else expand(files), prefix, (begin, end), jobs)
    request = replace(request, events=events, anonymous=anonymize)
    compares = bool(against) or against_begin is not None or against_end is not None
    before = None
    if compares:
        period = (against_begin, against_end)
        earlier = log_request(
            expand(against or files), prefix, period, jobs, ("--against-begin", "--against-end")
        )
        earlier = replace(earlier, anonymous=anonymize)
        before = _read(earlier, command, runs, quiet=quiet)
    run = _read(request, command, runs, quiet=quiet, following=following)
    if before is not None:
        compare_log_runs(before, run, form, html, top)
    else:
        from uncork.report.log.terminal import render_log_terminal  # noqa: PLC0415
        from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415

        terminal = partial(render_log_terminal, top=top, full=full, rejected=rejected)
        report(kind_named("log"), run.folder, run.result, form, html, terminal=terminal)
    read = [one for one in (before, run) if one is not None]
    if any(one.result.run.status == "interrupted" for one in read):
        console.note("interrupted; what was read until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if any(file.trouble for one in read for file in one.result.files):
        raise typer.Exit(ExitStatus.RUN_ERROR)


def _read(
    request: LogRequest, command: str, runs: Path, *, quiet: bool, following: Following | None = None
) -> LogRun:
    """Read logs, and tell how far that has come."""
    from uncork.profile.logs import read_logs  # noqa: PLC0415
    from uncork.workbench.profile.logs import profile_logs  # noqa: PLC0415

    if following is not None:
        return profile_logs(runs, request, command=command, read=partial(following.read, quiet=quiet))
    paths = request.paths
    size = sum(path.stat().st_size for path in paths if path.is_file())
    progress = None if quiet else _progress(size if "-" not in map(str, paths) else None)
    try:
        read = partial(read_logs, progress=progress)
        return profile_logs(runs, request, command=command, read=read)
    finally:
        if console.talk.is_terminal and not quiet:
            console.talk.file.write("\r\033[K")


def compare_log_runs(before: LogRun, after: LogRun, form: Form, html: Path | None, top: int = 10) -> None:
    """Show what changed between two logs, and write it beside the later one."""
    from uncork.analysis.log.comparison import compare_logs  # noqa: PLC0415
    from uncork.report.log.comparison import (  # noqa: PLC0415
        answer_log_comparison,
        build_log_comparison_document,
        render_comparison_terminal,
    )
    from uncork.report.write.html import html_page  # noqa: PLC0415
    from uncork.report.write.json_document import json_text  # noqa: PLC0415
    from uncork.report.write.markdown import markdown_text  # noqa: PLC0415
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415

    comparison = answer_log_comparison(compare_logs(before.result, after.result))
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


def _progress(size: int | None) -> Callable[[int, int], None]:
    """Return what tells how far reading has come: a live line in a terminal, else now and then a line."""
    from uncork.workbench.event_words import reading_line  # noqa: PLC0415

    begun = told = time.monotonic()
    live = console.talk.is_terminal

    def tell(done: int, entries: int) -> None:
        nonlocal told
        now = time.monotonic()
        if not done or (not live and now - told < _EVERY_S):
            return
        told = now
        line = reading_line(done, entries, size, now - begun)
        if live:
            console.talk.file.write(f"\r\033[K{line}")
            console.talk.file.flush()
        else:
            console.note(line)

    return tell
