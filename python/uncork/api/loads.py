"""Loads from Python: load_sql and load_http, both together, their sweeps, and merging the parts of a load."""

from __future__ import annotations

import os
import secrets
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, cast

from uncork.api.runs import LoadRun, Run, SweepRun, TogetherRun, open_folder
from uncork.api.signature import documented
from uncork.api.words import Place, Progress, Quantity, call_text, calling, end_early, runs_folder, teller
from uncork.errors import ConnectError, RunError, UsageError
from uncork.model.load import ClusterRequest, LoadOutcome, LoadProgress
from uncork.requests.http import cluster_of_http, read_http, sweep_of_http
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import AnyLoad, HttpJob, LoadJob, SweepRequest
from uncork.requests.option import from_values
from uncork.requests.sql import cluster_of_sql, read_request, sweep_of_sql
from uncork.requests.sql_options import SqlOptions
from uncork.requests.sweep import SweepOptions, sweep_request
from uncork.requests.together_options import check_together, named_loads, together_job
from uncork.workbench.event_words import load_step_line, progress_line
from uncork.workbench.load.sessions import LoadSession, new_load, sql_files
from uncork.workbench.load.sweeps import new_sweep
from uncork.workbench.load.together import new_together
from uncork.workbench.merged import merge_stored

if TYPE_CHECKING:
    from uncork.cluster.loads import ClusterLoad


class SqlKeywords(TypedDict, total=False):
    """Keywords of `load_sql` and `sweep_sql`: pgbench's options, declared in `SqlOptions`."""

    dsn: str | None
    embedded: bool
    pg_bin: Place | None
    script: Place | Sequence[Place] | None
    replay: str | None
    speed: float | None
    short_transactions: bool
    builtin: str | Sequence[str] | None
    define: Mapping[str, object] | None
    scale: int | None
    clients: int | None
    jobs: int | None
    protocol: Literal["simple", "extended", "prepared"] | None
    pipeline: int | None
    connect_each: bool
    exit_on_abort: bool
    max_tries: int | None
    no_vacuum: bool
    random_seed: int | None
    transactions: int | None
    time: Quantity | None
    warm_up: Quantity | None
    rate: float | None
    arrivals: str | None
    max_clients: int | None
    latency_limit: Quantity | None
    shard: str | tuple[int, int] | None
    start_at: str | datetime | None
    end_after: Quantity | None
    lease: Place | None
    nodes: int | None
    cluster: str | None
    on_lost: Literal["stop", "continue"] | None
    uncapped: bool


class HttpKeywords(TypedDict, total=False):
    """Keywords of `load_http` and `sweep_http`: h2load's options, declared in `HttpOptions`."""

    requests_file: Place | None
    method: str | None
    header: Mapping[str, str] | None
    body: str | bytes | None
    var: Mapping[str, str] | None
    expect_status: str | int | None
    expect_header: Mapping[str, str] | None
    expect_size: int | None
    expect_sha256: str | None
    expect_json: Mapping[str, object] | None
    clients: int | None
    streams: int | None
    threads: int | None
    h1: bool
    h2: bool
    h3: bool
    connect_each: bool
    on_close: Literal["reconnect", "stop"] | None
    timeout: Quantity | None
    connect_timeout: Quantity | None
    cacert: Place | None
    insecure: bool
    random_seed: int | None
    requests: int | None
    duration: Quantity | None
    warm_up: Quantity | None
    rate: float | None
    arrivals: str | None
    max_clients: int | None
    latency_limit: Quantity | None
    shard: str | tuple[int, int] | None
    start_at: str | datetime | None
    end_after: Quantity | None
    lease: Place | None
    nodes: int | None
    cluster: str | None
    on_lost: Literal["stop", "continue"] | None
    uncapped: bool
    service_pid: Sequence[int] | None
    postgres: str | None


class SqlLoad(SqlKeywords, total=False):
    """A load by SQL of `load_together`: the keywords of `load_sql`, and its `database`."""

    database: str | None


class HttpLoad(HttpKeywords, total=False):
    """A load by HTTP of `load_together`: the keywords of `load_http`, and its `urls`."""

    urls: Sequence[str]


@documented(SqlOptions, SqlKeywords)
def load_sql(
    database: str | None = None,
    *,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[SqlKeywords],
) -> LoadRun:
    """Load-test a PostgreSQL server, and return the run.

    The keywords are the options of `uncork load sql`, which are pgbench's; times have a unit.

    Args:
        database: Database to connect to, or a connection string.
        options: see below.
        progress: Function that takes a line a second, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, SetupError: if an option is invalid, or tables are missing.
        ConnectError: if the server cannot be reached, or rejects the connection.
        RunError: if the load breaks off; what was measured is kept.
        KeyboardInterrupt: on Ctrl-C; what was measured is kept.
    """
    with calling():
        read, texts = _sql_options(database, options, progress)
        job = _sql_job(read, texts, "load_sql", options)
        open_loop = job.spec.arrivals is not None
        request, folder = cluster_of_sql(read, job.spec), runs_folder(runs)
        session = new_load(folder, job) if request is None else _from_nodes(folder, job, request)
        return _loaded(session, progress, open_loop=open_loop)


@documented(SqlOptions, SqlKeywords)
def sweep_sql(
    database: str | None = None,
    *,
    sweep: Literal["clients", "rate"] = "clients",
    to: float | None = None,
    objective: str | None = None,
    budget: Quantity | None = None,
    verify: bool = False,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[SqlKeywords],
) -> SweepRun:
    """Raise the load of a server step by step; return where it saturates and fails, and the bottleneck.

    `sweep` is the quantity to raise, starting from `clients` or `rate`, and `to` the highest level.
    `objective` finds the highest load that meets limits such as ``"p99<20ms, errors<0.1%"``. `budget` limits
    the duration of the sweep. `verify` sends 70 % of the knee's throughput afterwards. `time` is the length
    of a load step. The other keywords, and the errors raised, are those of `load_sql`.
    """
    steps = {"sweep": sweep, "to": to, "objective": objective, "budget": budget, "verify": verify}
    with calling():
        read, texts = _sql_options(database, options, False, steps)
        job = _sql_job(read, texts, "sweep_sql", {**options, **steps})
        wanted = _wanted(sweep_of_sql(read, job.spec))
        nodes = cluster_of_sql(read, job.spec, wanted)
        if sweep == "clients":  # an embedded server has room for the highest level
            job = replace(job, spec=replace(job.spec, clients=int(wanted.spec.end)))
        return _swept(job, wanted, nodes, progress, runs)


@documented(HttpOptions, HttpKeywords)
def load_http(
    *urls: str, progress: Progress = None, runs: Place | None = None, **options: Unpack[HttpKeywords]
) -> LoadRun:
    """Load-test a service over HTTP/1.1, HTTP/2 or HTTP/3, and return the run.

    The keywords are the options of `uncork load http`, which are h2load's; times have a unit.

    Args:
        urls: Where to send requests; ``{name}`` stands for a variable, and ``@3`` at the end is a weight.
        options: see below.
        progress: Function that takes a line a second, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UncorkError, KeyboardInterrupt: as `load_sql`.
    """
    with calling():
        read = _http_options(urls, options, progress)
        job = _http_job(read, call_text("load_http", options, urls))
        request, folder = cluster_of_http(read, job.spec), runs_folder(runs)
        session = new_load(folder, job) if request is None else _from_nodes(folder, job, request)
        return _loaded(session, progress, open_loop=read.rate is not None)


@documented(HttpOptions, HttpKeywords)
def sweep_http(
    *urls: str,
    sweep: Literal["clients", "rate", "streams"] = "clients",
    to: float | None = None,
    objective: str | None = None,
    budget: Quantity | None = None,
    verify: bool = False,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[HttpKeywords],
) -> SweepRun:
    """Raise the load of a service step by step; return where it saturates and fails, and the bottleneck.

    `duration` is the length of a load step. The other keywords, and the errors raised, are those of
    `sweep_sql` and `load_http`.
    """
    steps = {"sweep": sweep, "to": to, "objective": objective, "budget": budget, "verify": verify}
    with calling():
        read = _http_options(urls, options, False, steps)
        job = _http_job(read, call_text("sweep_http", {**options, **steps}, urls))
        wanted = _wanted(sweep_of_http(read, job.spec))
        return _swept(job, wanted, cluster_of_http(read, job.spec, wanted), progress, runs)


def load_together(
    *,
    sql: Sequence[SqlLoad] = (),
    http: Sequence[HttpLoad] = (),
    progress: Progress = None,
    runs: Place | None = None,
) -> TogetherRun:
    """Send several loads that start at the same instant, and return the run of all.

    Args:
        sql: Loads by SQL, such as ``{"database": "shop", "clients": 4, "time": "60s"}``: the keywords of
            `load_sql`, and ``database``.
        http: Loads by HTTP, such as ``{"urls": ["http://127.0.0.1/"], "rate": 200, "duration": "60s"}``: the
            keywords of `load_http`, and ``urls``.
        progress: Function that takes a line a second of each load, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError, SetupError: if an option is invalid, or there are fewer than two loads.
        ConnectError: if a server cannot be reached; the other loads are ended.
        RunError: if a load breaks off; what was measured is kept.
        KeyboardInterrupt: on Ctrl-C; what was measured is kept.
    """
    with calling():
        every = _every_second(progress)
        jobs: list[AnyLoad] = [together_job(_sql_of(statement), every) for statement in sql]
        jobs += [together_job(_http_of(request), every) for request in http]
        loads = named_loads(jobs)
        command = call_text("load_together", {"sql": list(map(dict, sql)), "http": list(map(dict, http))})
        session = new_together(runs_folder(runs), loads, command)
        tell = teller(progress)

        def show(name: str, current: LoadProgress) -> None:
            job = loads[name]
            open_loop = job.spec.arrivals is not None
            tell(f"{name}: {progress_line(current, open_loop=open_loop, http=isinstance(job, HttpJob))}")

        tell(f"run {session.folder.name}")
        status = session.run(show, lambda name, text: tell(f"{name}: {text}"))
        if not session.folder.is_dir():
            raise KeyboardInterrupt
        sent = cast("TogetherRun", open_folder(session.folder))
        _end(sent, status)
        if status != "complete":
            raise RunError(f"{sent.answer} What was measured is kept: uncork.open({sent.id!r})")
        return sent


def merge(*parts: Run | Place, runs: Place | None = None) -> Run:
    """Merge the runs of a load's parts (``shard="1/4"`` and so on), or of an experiment on several hosts.

    Args:
        parts: The runs: objects, ids, names, or paths of folders.
        runs: Where runs are stored.

    Raises:
        UsageError: if the runs do not belong together, or one is still running.
        SetupError, StoreError: if there is no such run, or a run is damaged.
    """
    with calling():
        names = [str(part.folder) if isinstance(part, Run) else str(part) for part in parts]
        if not names:
            raise UsageError("merge requires the runs of a load's parts")
        return open_folder(merge_stored(runs_folder(runs), names))


# ---- options and jobs ----


def _sql_options(
    database: str | None, given: SqlKeywords, progress: Progress, steps: Mapping[str, object] | None = None
) -> tuple[SqlOptions, dict[str, str]]:
    """Return the options, and the texts of scripts that are not files, by the names given to them."""
    texts: dict[str, str] = {}
    scripts: list[str] = []
    script = given.get("script")
    for text in [script] if isinstance(script, str) or not isinstance(script, Sequence) else script:
        if isinstance(text, str) and ("\n" in text or ";" in text):
            scripts.append(f"script-{len(texts) + 1}" if texts else "script")
            texts[scripts[-1]] = text
        elif text is not None:
            scripts.append(str(text))
    more = {"database": database, "script": scripts or None, "progress": _every_second(progress)}
    return from_values(SqlOptions, {**given, **more, **(steps or {})}), texts


def _sql_job(
    options: SqlOptions, texts: Mapping[str, str], verb: str, given: Mapping[str, object]
) -> LoadJob:
    job = read_request(
        options,
        read=lambda name: texts[name] if name in texts else _text_of(name),
        files=lambda name: None if name in texts else sql_files(name),
        draw_seed=lambda: secrets.randbits(63),
        now_seed=clock.time_ns() // 1000,
        log_id=str(os.getpid()),
        command=call_text(verb, given, () if options.database is None else (options.database,)),
    )
    return cast("LoadJob", job)  # only -i creates tables and nothing else


def _sql_of(given: SqlLoad) -> LoadJob:
    """Return the job of one of several loads by SQL.

    Raises:
        UsageError: if a keyword is wrong, or cannot be used for loads that start together.
    """
    database = given.get("database")
    words = cast("SqlKeywords", {name: value for name, value in given.items() if name != "database"})
    read, texts = _sql_options(database, words, False)
    check_together(read, "sql")
    return _sql_job(read, texts, "load_sql", words)


def _http_of(given: HttpLoad) -> HttpJob:
    """Return the job of one of several loads by HTTP; see `_sql_of`."""
    urls = given.get("urls", ())
    words = cast("HttpKeywords", {name: value for name, value in given.items() if name != "urls"})
    read = _http_options(urls, words, False)
    check_together(read, "http")
    return _http_job(read, call_text("load_http", words, urls))


def _http_options(
    urls: Sequence[str], given: HttpKeywords, progress: Progress, steps: Mapping[str, object] | None = None
) -> HttpOptions:
    more: dict[str, Any] = {"urls": list(urls), "progress": _every_second(progress)}
    return from_values(HttpOptions, {**given, **more, **(steps or {})})


def _http_job(options: HttpOptions, command: str) -> HttpJob:
    spec = read_http(
        options,
        read=lambda name: _text_of(name).encode(),
        seed=secrets.randbits(63),
        environment=os.environ,
    )
    pids = tuple(dict.fromkeys(options.service_pid or ()))
    return HttpJob(spec, command, pids, options.postgres, options.advise)


def _every_second(progress: Progress) -> int | None:
    return None if progress is False else 1


def _text_of(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f'could not open file "{name}": {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error


# ---- running ----


def _from_nodes(root: Path, job: AnyLoad, request: ClusterRequest) -> ClusterLoad:
    """Return a load from the nodes of a cluster. The call itself confirms it."""
    from uncork.cluster.loads import new_cluster_load, planned_load  # noqa: PLC0415 -- only with nodes

    return new_cluster_load(root, planned_load(job, request))


def _loaded(session: LoadSession | ClusterLoad, progress: Progress, *, open_loop: bool) -> LoadRun:
    tell = teller(progress)
    http = isinstance(session.job, HttpJob)

    def show(current: LoadProgress) -> None:
        tell(progress_line(current, open_loop=open_loop, http=http))

    tell(f"run {session.folder.name}")
    outcome = session.run(show, tell)
    loaded = cast("LoadRun", open_folder(session.folder))
    _end(loaded, outcome)
    if outcome is LoadOutcome.REFUSED:
        raise ConnectError(loaded.answer)
    if outcome is not LoadOutcome.COMPLETE or loaded.status == "failed":
        raise RunError(f"{loaded.answer} What was measured is kept: uncork.open({loaded.id!r})")
    return loaded


def _wanted(options: SweepOptions) -> SweepRequest:
    request = sweep_request(options)
    if request is None:
        raise UsageError("sweep=None is not a sweep; use load_sql or load_http for a single level")
    return request


def _swept(
    job: AnyLoad,
    request: SweepRequest,
    nodes: ClusterRequest | None,
    progress: Progress,
    runs: Place | None,
) -> SweepRun:
    tell, root = teller(progress), runs_folder(runs)
    if nodes is None:
        session = new_sweep(root, job, request)
    else:
        from uncork.cluster.loads import new_cluster_sweep  # noqa: PLC0415 -- only with nodes

        session = new_cluster_sweep(root, job, request, nodes)
    tell(f"run {session.folder.name}")
    status = session.sweep(lambda step: tell(load_step_line(step, request.spec, session.unit)), tell)
    if not (session.folder / "sweep_visits").is_dir():
        raise KeyboardInterrupt
    swept = cast("SweepRun", open_folder(session.folder))
    _end(swept, status)
    return swept


def _end(run: Run, status: str) -> None:
    end_early(status, "", f"what was measured until then is kept: uncork.open({run.id!r})")
