"""Capture the workload of a database as scripts: `uncork capture`."""

from __future__ import annotations

from pathlib import Path

import typer

from uncork.cli import console
from uncork.cli.profile.database import watch_server
from uncork.cli.profile.logs import read_log_run, reading_progress
from uncork.errors import UsageError
from uncork.report.database.captured import captured_answer
from uncork.requests.connection import named, refuse_asking, watched_server
from uncork.requests.option import from_values
from uncork.requests.profile_options import CaptureOptions, LogOptions
from uncork.store.layout import read_manifest
from uncork.workbench.advice.sources import AdviceSources, tell_apart
from uncork.workbench.cure.capture import captured_workload
from uncork.workbench.cure.files import check_folder, write_workload
from uncork.workbench.profile.databases import DatabaseRecord, record_database
from uncork.workbench.profile.log_files import bytes_of, log_request
from uncork.workbench.profile.recordings import record_sessions, write_recording


def capture(options: CaptureOptions) -> None:
    """Watch a server or read its stored run, and write its workload; or record the sessions of its logs."""
    if options.sessions:
        capture_sessions(options)
        return
    for option, given in (("-b", options.begin), ("-e", options.end), ("--prefix", options.log_prefix)):
        if given is not None:
            raise UsageError(f"{option} requires --sessions, which records the sessions of a log")
    check_folder(options.output)
    sources = tell_apart(options.runs, options.sources or [], connects=named(options))
    refuse_asking(options, connects=sources.server is not None)
    watched, log = _runs(sources)
    conninfo: str | None = None
    if sources.server is not None:
        address = watched_server(options, sources.server, console.asked_password).address()
        conninfo = address.conninfo()
    run: DatabaseRecord | None = None
    if watched is None:
        if conninfo is None:
            raise UsageError(
                "logs alone do not say which statements a server ran; add a connection string, or a run of "
                "`uncork profile db`"
            )
        run = watch_server(record_database, options, address)
        watched = run.folder
        if run.trouble:
            conninfo = None  # the server went away
    if sources.logs:
        asked = from_values(LogOptions, {"files": sources.logs, "runs": options.runs, "quiet": options.quiet})
        log = read_log_run(asked)
    workload = captured_workload(watched, conninfo, log)
    scripts = write_workload(workload, options.output)
    console.say(" ".join(captured_answer(workload)))
    rate = sum(statement.calls_per_hour for statement in workload.statements) / 3600
    console.note(
        f"wrote {len(scripts)} scripts to {options.output}; they contain values of the database: protect "
        "them as you protect the database"
    )
    console.note(f"send them to a copy with `uncork load sql -f {options.output} -R {rate:.4g} -T 60 DSN`")
    if conninfo is None:
        console.note("the statements were not checked: add a connection string to check them with EXPLAIN")
    if run is not None:
        console.end_early(run.status, run.trouble, "the workload rests on what was recorded until then")


def _runs(sources: AdviceSources) -> tuple[Path | None, Path | None]:
    """Return the stored watch, and the stored run of logs, among the runs that are named."""
    watched: Path | None = None
    log: Path | None = None
    for folder in sources.folders:
        if read_manifest(folder).kind == "log":
            if log is not None or sources.logs:
                raise UsageError(f"{folder.name} is a second run of logs; give one of them")
            log = folder
        else:
            if watched is not None:
                raise UsageError(f"{watched.name} and {folder.name} are both watches; give one of them")
            watched = folder
    return watched, log


def capture_sessions(options: CaptureOptions) -> None:
    """Read logs, and write the transactions of their sessions."""
    check_folder(options.output)
    if not options.sources:
        raise UsageError(
            "--sessions records the sessions of a log: name its files, such as /var/log/postgresql/"
        )
    request = log_request(options.sources, options.log_prefix, (options.begin, options.end), 0)
    with reading_progress(bytes_of(request), quiet=options.quiet) as progress:
        recording = record_sessions(request, options.database_name, progress)
    typer.echo(" ".join(write_recording(recording, options.output)))
    console.note(
        f"wrote {options.output}; it contains values of the database: protect it as you protect the database"
    )
    console.note(f"replay it on a copy with `uncork load sql --replay {options.output} DSN`")
