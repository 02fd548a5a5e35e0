"""Profiles from Python: of logs, of a running server, of stacks."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, cast

from uncork.api.runs import CpuRun, DatabaseRun, LogRun, ServiceRun, open_folder
from uncork.api.signature import documented
from uncork.api.words import Place, Progress, Quantity, call_text, calling, end_early, runs_folder, teller
from uncork.errors import UsageError
from uncork.requests.option import from_values
from uncork.requests.profile_options import CpuOptions, DatabaseOptions, LogOptions
from uncork.requests.service_options import ServiceOptions
from uncork.store.event_files import EventFiles

if TYPE_CHECKING:
    from uncork.workbench.profile.database_watch import ProgressSnapshot

__all__ = ["profile_cpu", "profile_db", "profile_logs", "profile_service"]


class LogKeywords(TypedDict, total=False):
    """Keywords of `profile_logs`, declared in `LogOptions`."""

    prefix: str | None
    begin: str | None
    end: str | None
    server: Mapping[str, str] | None
    servers: Literal["by-folder"] | None
    only_server: Sequence[str] | None
    database: Sequence[str] | None
    user: Sequence[str] | None
    application: Sequence[str] | None
    host: Sequence[str] | None
    time_of_day: Sequence[str] | None
    jobs: int
    processes: int | None
    nodes: int | None
    cluster: str | None
    extendable: bool
    add_to: str | None
    events: Place | None
    anonymize: bool


class DatabaseKeywords(TypedDict, total=False):
    """Keywords of `profile_db`, declared in `DatabaseOptions`."""

    lasting: Quantity
    rate: float
    anonymize: bool


class ServiceKeywords(TypedDict, total=False):
    """Keywords of `profile_service`, declared in `ServiceOptions`."""

    postgres: str | None
    pids: Sequence[int] | None
    logs: Sequence[Place] | None
    pooler: str | None
    requests_file: Place | None
    no_code: bool
    watch_only: bool
    lasting: Quantity
    clients: int
    method: str | None
    header: Mapping[str, str] | None
    body: str | bytes | None
    var: Mapping[str, str] | None
    h2: bool
    h3: bool
    insecure: bool


class CpuKeywords(TypedDict, total=False):
    """Keywords of `profile_cpu`, declared in `CpuOptions`."""

    pids: Sequence[int] | None
    postgres: str | None
    imports: Sequence[Place] | None
    lasting: Quantity
    rate: int
    call_graph: Literal["dwarf", "fp"] | None


@documented(LogOptions, LogKeywords)
def profile_logs(
    *files: Place, progress: Progress = None, runs: Place | None = None, **options: Unpack[LogKeywords]
) -> LogRun:
    """Report where the time went, from PostgreSQL's logs. `compare` compares two logs.

    Args:
        files: Logs in the order they were written: files, globs, folders, ``s3://`` and other addresses.
        options: see below.
        progress: Function that takes a line now and then, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, SetupError: if an option is invalid, or no entry of the files can be parsed.
        RunError: if a file could not be read to its end; what was read is kept.
        KeyboardInterrupt: on Ctrl-C; what was read is kept.
    """
    from uncork.workbench.profile import logs  # noqa: PLC0415
    from uncork.workbench.profile.log_files import (  # noqa: PLC0415
        bytes_of,
        log_filter,
        log_request,
        log_servers,
        reading_line,
    )
    from uncork.workbench.profile.portions.reading import reader_of  # noqa: PLC0415

    tell, begun = teller(progress), time.monotonic()

    def show(done: int, entries: int) -> None:
        if done:
            tell(reading_line(done, entries, size, time.monotonic() - begun))

    with calling():
        if not files:
            raise UsageError("name a log to read: a file, a glob or a folder")
        read = from_values(LogOptions, {**options, "files": files})
        servers = log_servers(read, ("server", 'servers="by-folder"', "only_server"))
        period = (read.begin, read.end)
        request = log_request(read.files, read.prefix, period, read.jobs, ("begin", "end"), servers=servers)
        size = bytes_of(request)
        events = None if read.events is None else EventFiles(read.events)
        carry_out = None
        if read.nodes is not None or read.cluster is not None:
            from uncork.cluster.log_tasks import nodes_of  # noqa: PLC0415 -- only with nodes

            carry_out = nodes_of(read, tell)
        done = logs.profile_logs(
            runs_folder(runs),
            replace(request, events=events, anonymous=read.anonymize, filter=log_filter(read)),
            command=call_text("profile_logs", options, files),
            read=reader_of(read, runs_folder(runs), None if progress is False else show, carry_out, tell),
        )
    _check(
        done.folder,
        done.result.run.status,
        "; ".join(file.trouble for file in done.result.files if file.trouble),
    )
    return cast("LogRun", open_folder(done.folder))


@documented(DatabaseOptions, DatabaseKeywords)
def profile_db(
    database: str | None = None,
    *,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[DatabaseKeywords],
) -> DatabaseRun:
    """Profile a running PostgreSQL server: CPU time, waits, blocking sessions and query templates.

    Args:
        database: Database, or connection string: a URI or key=value pairs.
        options: see below.
        progress: Function that takes a line now and then, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, ConnectError: if an option is invalid, or the server cannot be reached or is too old.
        RunError: if the server goes away; what was recorded is kept.
        KeyboardInterrupt: on Ctrl-C; what was recorded is kept.
    """
    from uncork.report.database.words import snapshot_line  # noqa: PLC0415 -- as above
    from uncork.requests.jobs import ServerOptions  # noqa: PLC0415
    from uncork.workbench.profile.databases import record_database  # noqa: PLC0415

    tell = teller(progress)

    def show(snapshot: ProgressSnapshot) -> None:
        tell(
            snapshot_line(
                snapshot.sessions, snapshot.classes, max(0.0, (read.lasting - snapshot.elapsed_ns) / 1e9)
            )
        )

    with calling():
        read = from_values(DatabaseOptions, options)
        done = record_database(
            runs_folder(runs),
            ServerOptions(database=database).address(),
            seconds=read.lasting / 1e9,
            rate_hz=read.rate,
            command=call_text("profile_db", options, () if database is None else (database,)),
            anonymous=read.anonymize,
            show=show,
        )
    _check(done.folder, done.status, done.trouble)
    return cast("DatabaseRun", open_folder(done.folder))


@documented(CpuOptions, CpuKeywords)
def profile_cpu(
    *command: str, progress: Progress = None, runs: Place | None = None, **options: Unpack[CpuKeywords]
) -> CpuRun:
    """Profile CPU time by stack: of processes, a server, a command, or another tool's profile.

    Args:
        command: Command with its arguments, to run and profile until it exits.
        options: see below.
        progress: Function that takes a line now and then, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, ConnectError: if an option is invalid, or the server rejects the connection.
        RunError: if the recording breaks off; what was recorded is kept.
        KeyboardInterrupt: on Ctrl-C; what was recorded is kept.
    """
    from uncork.requests.jobs import ServerOptions  # noqa: PLC0415 -- as above
    from uncork.workbench.profile.stacks import StackRequest, check_stacks, profile_stacks  # noqa: PLC0415

    with calling():
        read = from_values(CpuOptions, options)
        request = StackRequest(
            pids=tuple(dict.fromkeys(read.pids or ())),
            postgres=None if read.postgres is None else ServerOptions(database=read.postgres).address(),
            command=command,
            imports=tuple(str(text) for text in read.imports or ()),
            format=None,
            seconds=read.lasting / 1e9,
            rate_hz=read.rate,
            call_graph=read.call_graph,
            syscalls=False,
            told=teller(progress),
        )
        check_stacks(request)
        done = profile_stacks(runs_folder(runs), request, command=call_text("profile_cpu", options, command))
    _check(done.folder, done.result.run.status, done.trouble)
    return cast("CpuRun", open_folder(done.folder))


@documented(ServiceOptions, ServiceKeywords)
def profile_service(
    *urls: str, progress: Progress = None, runs: Place | None = None, **options: Unpack[ServiceKeywords]
) -> ServiceRun:
    """Find the bottleneck of a service: send requests, and watch service, database and machine at once.

    Args:
        urls: Where to send requests; ``{name}`` stands for a variable, and ``@3`` at the end is a weight.
        options: see below.
        progress: Function that takes a line now and then, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, ConnectError: if an option is invalid, a request fails, or the database is out of reach.
        RunError: if the service or the database goes away; what was recorded is kept.
        KeyboardInterrupt: on Ctrl-C; what was recorded is kept.
    """
    from uncork.requests.service_options import service_job  # noqa: PLC0415 -- as above
    from uncork.workbench.profile.services import profile_service as profiled  # noqa: PLC0415

    with calling():
        read = from_values(ServiceOptions, {**options, "urls": urls or None})
        job = service_job(
            read,
            read=lambda name: Path(name).read_bytes(),
            environment=os.environ,
            seed=secrets.randbits(63),
            command=call_text("profile_service", options, urls),
        )
        folder, status, reason = profiled(runs_folder(runs), job, teller(progress))
    _check(folder, status, reason if status == "failed" else "")
    return cast("ServiceRun", open_folder(folder))


def _check(folder: Path, status: str, trouble: str) -> None:
    end_early(status, trouble, f"what was recorded until then is kept: uncork.open({folder.name!r})")
