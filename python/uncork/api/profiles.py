"""Profiles from Python, of logs, a running server, a service and stacks; advice, and cures."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, cast

from uncork.api.display import Shown
from uncork.api.runs import CpuRun, CureRun, DatabaseRun, LogRun, Run, ServiceRun, open_folder
from uncork.api.signature import documented
from uncork.api.words import Place, Progress, Quantity, call_text, calling, end_early, runs_folder, teller
from uncork.errors import UsageError
from uncork.model.records import build_from
from uncork.requests.option import from_values
from uncork.requests.profile_options import (
    AdviseOptions,
    CpuOptions,
    CureOptions,
    DatabaseOptions,
    LogOptions,
)
from uncork.requests.service_options import ServiceOptions
from uncork.store.event_files import EventFiles
from uncork.store.layout import find_run

if TYPE_CHECKING:
    from uncork.model.database.finding import Finding
    from uncork.model.results.advice import AdviceResult
    from uncork.report.blocks import Document
    from uncork.workbench.profile.database_watch import ProgressSnapshot


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


# ---- cures ----


class CureKeywords(TypedDict, total=False):
    """Keywords of `cure`, declared in `CureOptions`."""

    lasting: Quantity
    rate: float
    budget: Quantity
    disk: int | str
    max_read: int | str
    copy: str | None
    pg_bin: Place | None
    only: Sequence[str] | None
    finding: int | None
    dry_run: bool


@documented(CureOptions, CureKeywords)
def cure(
    database: str,
    *,
    watched: str | Run | None = None,
    logs: str | Run | None = None,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[CureKeywords],
) -> CureRun:
    """Try the changes of a database's findings on a copy; return the run with what was proven.

    The database is only read, and nothing is applied: `chosen.sql` of the run is what to execute.

    Args:
        database: Connection string of the database: a URI or key=value pairs.
        watched: Stored watch of it (a run of `profile_db` or `profile_service`). Default: watch it now.
        logs: Stored run of its logs (`profile_logs`), from which values of parameters are taken.
        options: see below.
        progress: Function that takes a line at a time, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, ConnectError: if an option is invalid, or the server cannot be reached or is too old.
        RunError: if the copy cannot be made, or a server goes away; what was found is kept.
        KeyboardInterrupt: on Ctrl-C; what was found is kept.
    """
    from uncork.requests.jobs import CureJob, ServerOptions  # noqa: PLC0415 -- not before a cure is wanted
    from uncork.workbench.cure.curing import cure as work  # noqa: PLC0415
    from uncork.workbench.profile.databases import record_database  # noqa: PLC0415

    with calling():
        read = from_values(CureOptions, options)
        root, server = runs_folder(runs), ServerOptions(database=database).address()
        command = call_text("cure", options, (database,))
        if watched is None:
            seen = record_database(
                root, server, seconds=read.lasting / 1e9, rate_hz=read.rate, command=command
            )
            if seen.trouble:
                raise UsageError(f"the watch ended early: {seen.trouble}; nothing was tried")
            folder = seen.folder
        else:
            folder = watched.folder if isinstance(watched, Run) else find_run(root, watched)
        log = logs if logs is None or isinstance(logs, Run) else open_folder(find_run(root, logs))
        job = build_from(
            CureJob,
            read,
            watched=folder,
            source=server.conninfo(),
            command=command,
            budget_s=read.budget / 1e9,
            log=None if log is None else log.folder,
            binaries=read.pg_bin,
            only=tuple(read.only or ()),
        )
        done, result, trouble = work(root, job, teller(progress))
    end_early(result.status, trouble, f"what was found until then is kept: uncork.open({done.name!r})")
    return cast("CureRun", open_folder(done))


# ---- advice ----


class AdviseKeywords(TypedDict, total=False):
    """Keywords of `advise`, declared in `AdviseOptions`."""

    lasting: Quantity
    rate: float


class Advice(Shown):
    """What is wrong with a database; `result` holds the findings, and how much evidence they rest on.

    `folder` is the folder of the first run that it rests on: the watch, if a server was watched.
    """

    result: AdviceResult

    def __init__(self, result: AdviceResult, folder: Path, database: str | None = None) -> None:
        self.result = result
        self.folder, self._database = folder, database

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings, the costliest first: cause, cost, evidence, and the changes to try."""
        return self.result.findings

    def experiment(self, number: int, database: str | None = None) -> str:
        """Return the text of the experiment file that would prove the changes of finding `number`, from 1.

        `database` is the connection string of a database whose tables the experiment copies the
        definitions of. Default: the database that was watched, if this call watched one.

        Raises:
            UsageError: if there is no such finding, or its change is no SQL that a copy can try.
        """
        from uncork.workbench.advice.sources import experiment_of  # noqa: PLC0415 -- only here

        with calling():
            return experiment_of(self.result, number, self.folder, database or self._database)

    def _document(self) -> Document:
        from uncork.report.advice.document import build_advice_document  # noqa: PLC0415 -- only here

        return build_advice_document(self.result)

    def __repr__(self) -> str:
        return f"<advice: {self.answer}>"


@documented(AdviseOptions, AdviseKeywords)
def advise(
    *sources: str | Place | Run,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[AdviseKeywords],
) -> Advice:
    """Name what is wrong with a database: each fault with its cost and the changes to try.

    It only reads. What it reads is stored as runs of `profile_db` and `profile_logs`.

    Args:
        sources: A connection string to watch, log files, and stored runs, in any combination.
            Default: watch the server of the PG* variables.
        options: see below.
        progress: Function that takes a line now and then, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, ConnectError: if an option is invalid, or the server cannot be reached or is too old.
        RunError: if the server goes away, or a log cannot be read to its end; what was recorded is kept.
        KeyboardInterrupt: on Ctrl-C; what was recorded is kept.
    """
    from uncork import __version__  # noqa: PLC0415 -- each function loads what it needs
    from uncork.analysis.advice.result import advice_of  # noqa: PLC0415
    from uncork.report.advice.document import answer_advice  # noqa: PLC0415
    from uncork.workbench.advice.sources import AdviceSources, tell_apart  # noqa: PLC0415

    with calling():
        from_values(AdviseOptions, options)  # refuses wrong values before anything is read
        opened = [source.folder for source in sources if isinstance(source, Run)]
        words = [str(source) for source in sources if not isinstance(source, Run)]
        named = tell_apart(runs_folder(runs), words) if words or not opened else AdviceSources((), (), None)
        folders = [*opened, *named.folders]
        if named.logs:
            folders.append(profile_logs(*named.logs, progress=progress, runs=runs).folder)
        if named.server is not None:
            watched = profile_db(named.server or None, progress=progress, runs=runs, **options)
            folders.insert(0, watched.folder)
        command = call_text(
            "advise", options, [source.id if isinstance(source, Run) else source for source in sources]
        )
        found = answer_advice(advice_of(folders, command, __version__))
    return Advice(found, folders[0], named.server or None)
