"""Profile PostgreSQL's logs: `uncork profile logs`."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.places import redacted_command
from uncork.cli.profile.hidden import load_arrow_alone
from uncork.errors import UsageError
from uncork.profile.logs import LogRequest
from uncork.requests.profile_options import LogOptions
from uncork.workbench.profile.log_files import (
    bytes_of,
    local_paths,
    log_filter,
    log_request,
    log_servers,
    reading_line,
)
from uncork.workbench.profile.logs import LogRun
from uncork.workbench.profile.logs import profile_logs as read_and_store
from uncork.workbench.profile.portions.reading import reader_of

if TYPE_CHECKING:
    from uncork.cli.profile.following import Following
    from uncork.store.event_files import EventFiles

_EVERY_S = 1.0
"""Seconds between progress lines where standard error is no terminal."""


def profile_logs(options: LogOptions) -> None:
    """Profile logs, compare them with earlier ones if asked, and show the result."""
    load_arrow_alone()
    check_page(options.html)
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    compares = bool(options.against) or not (options.against_begin is options.against_end is None)
    if options.follow and compares:
        raise UsageError("--follow and --against cannot be combined: use one of them")
    if options.lasting is not None and not options.follow:
        raise UsageError("--for requires --follow")
    following = None
    if options.follow:
        from uncork.cli.profile.following import Following  # noqa: PLC0415 -- only with --follow

        length = None if options.lasting is None else options.lasting / 1e9
        files = local_paths(options.files, "--follow")
        servers = log_servers(options)
        following = Following(files, options.every / 1e9, length, options.top, servers)
    shared = replace(
        _requested(options, follow=options.follow), anonymous=options.anonymize, filter=log_filter(options)
    )
    request = replace(shared, events=_event_files(options.events))
    before = None
    if compares:
        period = (options.against_begin, options.against_end)
        earlier = log_request(
            options.against or options.files,
            options.prefix,
            period,
            options.jobs,
            ("--against-begin", "--against-end"),
            servers=log_servers(options),
            earlier=True,
        )
        earlier = replace(earlier, anonymous=shared.anonymous, filter=shared.filter)
        before = _read(earlier, options, earlier=True)
    run = _read(request, options, following)
    if before is not None:
        from uncork.cli.compare import compare_log_runs  # noqa: PLC0415 -- only with --against

        compare_log_runs(before, run, form, options.html, options.top)
    else:
        from uncork.report.log.document import render_log_terminal  # noqa: PLC0415 -- logs are read while it loads
        from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415 -- also

        terminal = partial(render_log_terminal, top=options.top, full=options.full, rejected=options.rejected)
        report(kind_named("log"), run.folder, run.result, form, options.html, terminal=terminal)
    read = [log_run for log_run in (before, run) if log_run is not None]
    if any(run.result.run.status == "interrupted" for run in read):
        console.note("interrupted; what was read until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if any(file.trouble for run in read for file in run.result.files):
        raise typer.Exit(ExitStatus.RUN_ERROR)


def _event_files(folder: Path | None) -> EventFiles | None:
    if folder is None:
        return None
    from uncork.store.event_files import EventFiles  # noqa: PLC0415 -- loads Arrow

    return EventFiles(folder)


def _read(
    request: LogRequest, options: LogOptions, following: Following | None = None, *, earlier: bool = False
) -> LogRun:
    """Read logs and report progress; `earlier` ones are compared with."""
    command, quiet = redacted_command(sys.argv[1:]), options.quiet
    own = replace(options, add_to=None, extendable=False) if earlier else options
    carry_out = None
    if options.nodes is not None or options.cluster is not None:
        from uncork.cluster.log_tasks import nodes_of  # noqa: PLC0415 -- only with --nodes

        carry_out = nodes_of(options, console.note)
    if following is not None:
        reader_of(own, options.runs)  # refuses what no reader can do while it follows
        return read_and_store(
            options.runs, request, command=command, read=partial(following.read, quiet=quiet)
        )
    with reading_progress(bytes_of(request), quiet=quiet) as progress:
        notify = (lambda _: None) if quiet else console.note
        read = reader_of(own, options.runs, progress, carry_out, notify)
        return read_and_store(options.runs, request, command=command, read=read)


@contextmanager
def reading_progress(size: int | None, *, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that reports how much of `size` bytes was read; None if nothing is reported."""
    try:
        yield None if quiet else _progress(size)
    finally:
        if console.talk.is_terminal and not quiet:
            console.talk.file.write("\r\033[K")


def read_log_run(options: LogOptions) -> Path:
    """Read logs with progress on standard error, store them, and return the folder of the run."""
    return _read(replace(_requested(options), filter=log_filter(options)), options).folder


def _requested(options: LogOptions, *, follow: bool = False) -> LogRequest:
    """Return the logs that options name; say how many objects the time range leaves out."""
    period = (options.begin, options.end)
    servers = log_servers(options)
    request = log_request(options.files, options.prefix, period, options.jobs, follow=follow, servers=servers)
    if request.outside and not options.quiet:
        many = len(request.paths) + request.outside
        console.note(f"{request.outside} of {many} objects are outside the time range, and are not read")
    return request


def _progress(size: int | None) -> Callable[[int, int], None]:
    """Return a function that reports progress: a live line in a terminal, otherwise a line now and then."""
    begun = time.monotonic()
    live = console.talk.is_terminal

    def show(done: int, entries: int) -> None:
        passed = time.monotonic() - begun
        if not done or (not live and passed < _EVERY_S):
            return
        line = reading_line(done, entries, size, passed)
        if live:
            console.talk.file.write(f"\r\033[K{line}")
            console.talk.file.flush()
        else:
            console.progress(line)

    return show
