"""Profiles from Python: of logs, of a running server, of stacks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from uncork.api.runs import CpuRun, DatabaseRun, LogRun, open_folder
from uncork.api.words import (
    Place,
    Progress,
    Quantity,
    call_text,
    calling,
    runs_folder,
    seconds_text,
    teller,
)
from uncork.errors import RunError, UsageError

if TYPE_CHECKING:
    from uncork.workbench.profile.database_watch import Glance

__all__ = ["profile_cpu", "profile_db", "profile_logs"]


def profile_logs(
    *files: Place,
    prefix: str | None = None,
    begin: str | None = None,
    end: str | None = None,
    jobs: int = 0,
    events: Place | None = None,
    anonymize: bool = False,
    progress: Progress = None,
    runs: Place | None = None,
) -> LogRun:
    """Say where the time went, from PostgreSQL's logs. `compare` sets two logs side by side.

    Args:
        files: logs in the order they were written: files, globs, folders; also compressed and in archives.
        prefix: the log_line_prefix, if it is not found out.
        begin: only entries from here on, in UTC: ``"2026-05-31 08:30"``.
        end: only entries before there.
        jobs: threads; 0 for one a processor.
        events: a new folder, where every entry is written as Parquet.
        anonymize: keep no literals, and pseudonyms for users and hosts.
        progress: a function that takes a line now and then, or True for standard error.
        runs: where runs are stored.

    Raises:
        UsageError, SetupError: if something is wrong with the words, or nothing is understood of the files.
        RunError: if a file could not be read to its end; what was read is kept.
        KeyboardInterrupt: on Ctrl-C; what was read is kept.
    """
    from uncork.profile.logs import read_logs  # noqa: PLC0415 -- each verb loads what it needs
    from uncork.workbench.event_words import reading_line  # noqa: PLC0415
    from uncork.workbench.profile import logs  # noqa: PLC0415
    from uncork.workbench.profile.log_files import expand, log_request  # noqa: PLC0415

    words = {"prefix": prefix, "begin": begin, "end": end, "jobs": jobs or None, "anonymize": anonymize}
    tell, begun = teller(progress), time.monotonic()

    def show(done: int, entries: int) -> None:
        if done:
            tell(reading_line(done, entries, size, time.monotonic() - begun))

    with calling():
        if not files:
            raise UsageError("name a log to read: a file, a glob or a folder")
        paths = expand([Path(file) for file in files])
        size = sum(path.stat().st_size for path in paths if path.is_file())
        request = log_request(paths, prefix, (begin, end), jobs, ("begin", "end"))
        folder = None if events is None else Path(events)
        request = replace(request, events=folder, anonymous=anonymize)
        read = partial(read_logs, progress=None if progress is False else show)
        command = call_text("profile_logs", {**words, "events": events}, files)
        done = logs.profile_logs(runs_folder(runs), request, command=command, read=read)
    _check(
        done.folder,
        done.result.run.status,
        "; ".join(one.trouble for one in done.result.files if one.trouble),
    )
    return cast("LogRun", open_folder(done.folder))


def profile_db(
    database: str | None = None,
    *,
    lasting: Quantity = "60s",
    rate: float = 20,
    progress: Progress = None,
    runs: Place | None = None,
) -> DatabaseRun:
    """Say where the time of a running server goes: on CPU, waiting for what, held up by whom, by template.

    Args:
        database: a database, or a connection string (URI or key=value; PG*, service files and .pgpass work).
        lasting: how long to watch.
        rate: samples a second, 0.1 to 200.
        progress: a function that takes a line now and then, or True for standard error.
        runs: where runs are stored.

    Raises:
        UsageError, ConnectError: if a word is wrong, or the server cannot be reached or is too old.
        RunError: if the server goes away; what was seen is kept.
        KeyboardInterrupt: on Ctrl-C; what was seen is kept.
    """
    from uncork.report.database.words import glance_line  # noqa: PLC0415 -- as above
    from uncork.requests.jobs import ServerOptions  # noqa: PLC0415
    from uncork.workbench.profile.databases import check_rate, profile_database  # noqa: PLC0415

    tell = teller(progress)

    def show(glance: Glance) -> None:
        tell(glance_line(glance.sessions, glance.classes, max(0.0, seconds - glance.elapsed_ns / 1e9)))

    with calling():
        seconds = _seconds(lasting)
        check_rate(rate)
        done = profile_database(
            runs_folder(runs),
            ServerOptions(database=database).address(),
            seconds=seconds,
            rate_hz=rate,
            command=call_text("profile_db", {"lasting": str(lasting), "rate": rate}, (database or "",)),
            show=show,
        )
    _check(done.folder, done.result.run.status, done.trouble)
    return cast("DatabaseRun", open_folder(done.folder))


def profile_cpu(
    *command: str,
    pids: Sequence[int] = (),
    postgres: str | None = None,
    imports: Sequence[Place] = (),
    lasting: Quantity = "10s",
    rate: int = 99,
    call_graph: Literal["dwarf", "fp"] | None = None,
    progress: Progress = None,
    runs: Place | None = None,
) -> CpuRun:
    """Say where processor time goes: of processes, of a server, of a command, or of another tool's profile.

    Args:
        command: a command with its arguments, to be run and profiled to its end.
        pids: processes to profile, with those they start.
        postgres: a server whose processes are profiled, by session.
        imports: profiles of other tools: pprof, perf script, folded, speedscope, Pyroscope.
        lasting: how long to record.
        rate: samples a second of each running process, 1 to 1000.
        call_graph: how stacks are found; tried out if absent.
        progress: a function that takes a line now and then, or True for standard error.
        runs: where runs are stored.

    Raises:
        UsageError, ConnectError: if a word is wrong, or the server refuses us.
        RunError: if it breaks off; what was seen is kept.
        KeyboardInterrupt: on Ctrl-C; what was seen is kept.
    """
    from uncork.requests.jobs import ServerOptions  # noqa: PLC0415 -- as above
    from uncork.workbench.profile.stacks import StackRequest, check_stacks, profile_stacks  # noqa: PLC0415

    tell = teller(progress)
    words = {"pids": list(pids), "postgres": postgres, "imports": list(map(str, imports))}
    with calling():
        request = StackRequest(
            pids=tuple(dict.fromkeys(pids)),
            postgres=None if postgres is None else ServerOptions(database=postgres).address(),
            command=command,
            imports=tuple(str(one) for one in imports),
            format=None,
            seconds=_seconds(lasting),
            rate_hz=rate,
            call_graph=call_graph,
            syscalls=False,
            told=tell,
        )
        check_stacks(request)
        repeats = call_text("profile_cpu", {**words, "lasting": str(lasting), "rate": rate}, command)
        done = profile_stacks(runs_folder(runs), request, command=repeats)
    _check(done.folder, done.result.run.status, done.trouble)
    return cast("CpuRun", open_folder(done.folder))


def _seconds(lasting: Quantity) -> float:
    seconds = float(seconds_text(lasting, "lasting") or 0)
    if not seconds:
        raise UsageError("lasting must be above zero")
    return seconds


def _check(folder: Path, status: str, trouble: str) -> None:
    """Raise what keeps a profile from being an answer, if something does."""
    kept = f"what was seen until then is kept: uncork.open({folder.name!r})"
    if status == "interrupted":
        error = KeyboardInterrupt()
        error.add_note(kept)
        raise error
    if trouble:
        raise RunError(f"{trouble}; {kept}")
