"""Loads from Python: load_sql and load_http, and their sweeps over levels."""

from __future__ import annotations

import secrets
import time as clock
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import getpid
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, cast

from uncork.api.runs import LoadRun, Run, SweepRun, open_folder
from uncork.api.words import (
    Place,
    Progress,
    Quantity,
    call_text,
    calling,
    duration_text,
    runs_folder,
    seconds_text,
    teller,
)
from uncork.errors import ConnectError, RunError, UsageError
from uncork.model.load import LoadOutcome, LoadProgress
from uncork.requests.http import HttpOptions, read_http, read_pids, sweep_of_http
from uncork.requests.jobs import HttpJob, LoadJob
from uncork.requests.sql import SqlOptions, read_request, sweep_of_sql
from uncork.requests.sweep import SweepOptions, sweep_wanted
from uncork.workbench.event_words import progress_line, visit_line
from uncork.workbench.load.http import HttpSession, new_http_load
from uncork.workbench.load.sql import LoadSession, new_load
from uncork.workbench.load.sweeps import new_sweep

__all__ = ["HttpWords", "SqlWords", "load_http", "load_sql", "sweep_http", "sweep_sql"]


class SqlWords(TypedDict, total=False):
    """The words of `load_sql` that say what is sent, how and for how long; the same as pgbench's options."""

    dsn: str | None
    embedded: bool
    pg_bin: Place | None
    script: Place | Sequence[Place] | None
    builtin: str | Sequence[str] | None
    define: Mapping[str, object] | None
    scale: int | None
    clients: int | None
    jobs: int | None
    protocol: Literal["simple", "extended", "prepared"] | None
    pipeline: int | None
    connect_each: bool
    max_tries: int | None
    no_vacuum: bool
    random_seed: int | None
    transactions: int | None
    time: Quantity | None
    rate: float | None
    arrivals: str | None
    max_clients: int | None
    latency_limit: Quantity | None


class HttpWords(TypedDict, total=False):
    """The words of `load_http` that say what is sent, how and for how long; the same as h2load's options."""

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
    service_pid: Sequence[int]
    postgres: str | None


def load_sql(
    database: str | None = None,
    *,
    dsn: str | None = None,
    embedded: bool = False,
    pg_bin: Place | None = None,
    script: Place | Sequence[Place] | None = None,
    builtin: str | Sequence[str] | None = None,
    define: Mapping[str, object] | None = None,
    scale: int | None = None,
    clients: int | None = None,
    jobs: int | None = None,
    protocol: Literal["simple", "extended", "prepared"] | None = None,
    pipeline: int | None = None,
    connect_each: bool = False,
    max_tries: int | None = None,
    no_vacuum: bool = False,
    random_seed: int | None = None,
    transactions: int | None = None,
    time: Quantity | None = None,
    rate: float | None = None,
    arrivals: str | None = None,
    max_clients: int | None = None,
    latency_limit: Quantity | None = None,
    progress: Progress = None,
    runs: Place | None = None,
) -> LoadRun:
    """Load-test a PostgreSQL server, and return the run.

    The words are those of `uncork load sql`, which are pgbench's; times have a unit.

    Args:
        database: a database, or a connection string.
        dsn: a connection string (URI or key=value; PG*, service files and .pgpass work).
        embedded: start a server of our own, and fill pgbench's tables if a built-in script needs them.
        pg_bin: the binaries of that server.
        script: a script file, the text of one (what has several lines or a semicolon), or several.
        builtin: a built-in script such as ``"select-only"``, or several; ``tpcb-like`` if nothing is named.
        define: variables of scripts.
        scale: of pgbench's tables.
        clients: how many; 1 if absent.
        jobs: threads.
        protocol: how statements are sent.
        pipeline: transactions under way on each connection, sent without waiting.
        connect_each: open a connection for each transaction.
        max_tries: tries of a transaction that fails by serialization or deadlock; 0 is without bound.
        no_vacuum: do not vacuum before a built-in script.
        random_seed: of everything random.
        transactions: of each client; 10 if neither this nor `time` is given.
        time: how long to load, such as ``"30s"``.
        rate: open loop: so many transactions arrive a second, whatever the server does.
        arrivals: how they arrive: poisson, constant, bursts:SIZE or trace:FILE.
        max_clients: to how many connections an open loop may grow.
        latency_limit: count transactions over it as late, such as ``"20ms"``.
        progress: a function that takes a line a second, or True for standard error.
        runs: where runs are stored.

    Raises:
        UsageError, SetupError: if what is asked for is wrong, or tables are missing.
        ConnectError: if the server cannot be reached, or refuses us.
        RunError: if the load broke off; what was measured is kept.
        KeyboardInterrupt: on Ctrl-C; what was measured is kept.
    """
    words = dict(locals())
    del words["progress"], words["runs"], words["database"]
    return _load_sql(database, words, progress, runs)


def sweep_sql(
    database: str | None = None,
    *,
    sweep: Literal["clients", "rate"] = "clients",
    to: float | None = None,
    objective: str | None = None,
    budget: Quantity | None = None,
    progress: Progress = None,
    runs: Place | None = None,
    **words: Unpack[SqlWords],
) -> SweepRun:
    """Raise a load of a server by itself; return where it bends, what holds it up there, and where it breaks.

    `sweep` is what is raised, from `clients` or `rate` on, `to` the highest level; `objective` asks for the
    highest load that holds it, such as ``"p99<20ms, errors<0.1%"``; `budget` is how long it takes at most,
    and `time` how long a visit lasts. The other words, and what it raises, are those of `load_sql`.
    """
    asked = _raised(sweep, to, objective, budget)
    with calling():
        job = _sql_job(database, dict(words), asked, "sweep_sql", progress=False)
        wanted = sweep_of_sql(_asked_sql(database, dict(words), asked)[0], job.spec)
        if sweep == "clients":  # an embedded server has room for the highest level
            found = sweep_wanted(wanted)
            job = job if found is None else replace(job, spec=replace(job.spec, clients=int(found.spec.end)))
        return _swept(job, wanted, progress, runs)


def load_http(
    *urls: str,
    method: str | None = None,
    header: Mapping[str, str] | None = None,
    body: str | bytes | None = None,
    var: Mapping[str, str] | None = None,
    expect_status: str | int | None = None,
    expect_header: Mapping[str, str] | None = None,
    expect_size: int | None = None,
    expect_sha256: str | None = None,
    expect_json: Mapping[str, object] | None = None,
    clients: int | None = None,
    streams: int | None = None,
    threads: int | None = None,
    h1: bool = False,
    h2: bool = False,
    connect_each: bool = False,
    on_close: Literal["reconnect", "stop"] | None = None,
    timeout: Quantity | None = None,
    connect_timeout: Quantity | None = None,
    cacert: Place | None = None,
    insecure: bool = False,
    random_seed: int | None = None,
    requests: int | None = None,
    duration: Quantity | None = None,
    warm_up: Quantity | None = None,
    rate: float | None = None,
    arrivals: str | None = None,
    max_clients: int | None = None,
    latency_limit: Quantity | None = None,
    service_pid: Sequence[int] = (),
    postgres: str | None = None,
    progress: Progress = None,
    runs: Place | None = None,
) -> LoadRun:
    """Load-test a service by HTTP/1.1 or HTTP/2, and return the run.

    The words are those of `uncork load http`, which are h2load's; times have a unit.

    Args:
        urls: where to send requests; ``{name}`` stands for a variable, and ``@3`` behind it is a weight.
        method: GET, or with a body POST.
        header: headers to send.
        body: the body to send.
        var: what ``{name}`` stands for: ``{"id": "1..1000"}``, ``"a,b,c"`` or ``"@FILE"``.
        expect_status: such as 200 or ``"200,304"``; else 200 to 399.
        expect_header: headers that are there, with these values; an empty one stands for any.
        expect_size: bytes of the body.
        expect_sha256: digest of the body.
        expect_json: values in the body by JSON pointer: ``{"/items/0/id": 1}``.
        clients: connections; 1 if absent.
        streams: requests under way at once on a connection.
        threads: threads.
        h1: HTTP/1.1, also where TLS would agree on HTTP/2.
        h2: HTTP/2, without TLS with prior knowledge.
        connect_each: a connection for each request.
        on_close: what to do when the service closes a connection.
        timeout: of a request.
        connect_timeout: of opening a connection.
        cacert: authorities to trust (PEM).
        insecure: trust whatever certificate the service has.
        random_seed: of everything random.
        requests: of all clients together; 1 if neither this nor `duration` is given.
        duration: how long to load, such as ``"30s"``.
        warm_up: load so long before anything is counted.
        rate: open loop: so many requests arrive a second, whatever the service does.
        arrivals: how they arrive: poisson, constant, bursts:SIZE or trace:FILE.
        max_clients: to how many connections an open loop may grow.
        latency_limit: count requests over it as late.
        service_pid: processes of the service; else those that listen on its port here.
        postgres: how to reach the PostgreSQL behind the service.
        progress: a function that takes a line a second, or True for standard error.
        runs: where runs are stored.

    Raises:
        UncorkError, KeyboardInterrupt: as `load_sql`.
    """
    words = dict(locals())
    del words["progress"], words["runs"], words["urls"]
    with calling():
        job, _ = _http_job(urls, words, {}, "load_http", progress=progress)
        return _loaded(new_http_load(runs_folder(runs), job), progress, open_loop=rate is not None)


def sweep_http(
    *urls: str,
    sweep: Literal["clients", "rate", "streams"] = "clients",
    to: float | None = None,
    objective: str | None = None,
    budget: Quantity | None = None,
    progress: Progress = None,
    runs: Place | None = None,
    **words: Unpack[HttpWords],
) -> SweepRun:
    """Raise a load of a service by itself; return where it bends, what gives out there, and where it breaks.

    `duration` is how long a visit of a level lasts. The other words, and what it raises, are those of
    `sweep_sql` and `load_http`.
    """
    asked = _raised(sweep, to, objective, budget)
    with calling():
        job, read = _http_job(urls, dict(words), asked, "sweep_http", progress=False)
        return _swept(job, sweep_of_http(read, job.spec, hdr_log=False), progress, runs)


# ---- what is asked for ----


def _raised(sweep: str, to: float | None, objective: str | None, budget: Quantity | None) -> dict[str, Any]:
    length = duration_text(budget, "budget")
    return {"sweep": sweep, "to": _number(to), "objective": objective, "budget": length}


def _load_sql(database: str | None, words: dict[str, Any], progress: Progress, runs: Place | None) -> LoadRun:
    with calling():
        job = _sql_job(database, words, {}, "load_sql", progress=progress)
        open_loop = words["rate"] is not None or words["arrivals"] is not None
        return _loaded(new_load(runs_folder(runs), job), progress, open_loop=open_loop)


def _sql_job(
    database: str | None,
    words: dict[str, Any],
    sweep: dict[str, Any],
    verb: str,
    *,
    progress: Progress,
) -> LoadJob:
    asked, texts = _asked_sql(database, words, sweep)

    def read(name: str) -> str:
        return texts[name] if name in texts else _text_of(name)

    job = read_request(
        replace(asked, progress=_every_second(progress)),
        read=read,
        draw_seed=lambda: secrets.randbits(63),
        now_seed=clock.time_ns() // 1000,
        log_id=str(getpid()),
        command=call_text(verb, {**words, **sweep}, () if database is None else (database,)),
    )
    return cast("LoadJob", job)  # without -i it is none that only makes tables


def _asked_sql(
    database: str | None, words: dict[str, Any], sweep: dict[str, Any]
) -> tuple[SqlOptions, dict[str, str]]:
    """Return the words as the command line takes them, and the texts of scripts that are no files."""
    texts: dict[str, str] = {}
    files: list[str] = []
    for one in _many(words.get("script")):
        text = isinstance(one, str) and ("\n" in one or ";" in one)
        name = (f"script-{len(texts) + 1}" if texts else "script") if text else str(one)
        texts |= {name: one} if text else {}
        files.append(name)
    taken = ("embedded", "dsn", "protocol", "connect_each", "no_vacuum", "arrivals")
    numbers = (
        *("scale", "clients", "jobs", "pipeline", "max_tries", "random_seed", "transactions", "rate"),
        "max_clients",
    )
    binaries = words.get("pg_bin")
    texted: dict[str, Any] = {name: _number(words.get(name)) for name in numbers}
    asked = SqlOptions(
        database=database,
        pg_bin=None if binaries is None else Path(binaries),
        file=files or None,
        builtin=[str(one) for one in _many(words.get("builtin"))] or None,
        define=[f"{name}={value}" for name, value in (words.get("define") or {}).items()] or None,
        time=seconds_text(words.get("time"), "time"),
        latency_limit=seconds_text(words.get("latency_limit"), "latency_limit", 1000),
        **{name: words[name] for name in taken if name in words},
        **texted,
        **sweep,
    )
    return asked, texts


def _http_job(
    urls: Sequence[str],
    words: dict[str, Any],
    sweep: dict[str, Any],
    verb: str,
    *,
    progress: Progress,
) -> tuple[HttpJob, HttpOptions]:
    times = ("timeout", "connect_timeout", "duration", "warm_up", "latency_limit")
    numbers = (
        *("expect_size", "clients", "streams", "threads", "requests", "rate", "max_clients"),
        "expect_status",
    )
    taken = (
        "method",
        "expect_sha256",
        "h1",
        "h2",
        "connect_each",
        "on_close",
        "insecure",
        "arrivals",
        "postgres",
    )
    body, cacert = words.get("body"), words.get("cacert")
    pids = [str(pid) for pid in words.get("service_pid", ())]
    texted: dict[str, Any] = {name: _number(words.get(name)) for name in numbers}
    texted |= {name: duration_text(words.get(name), name) for name in times}
    asked = HttpOptions(
        urls=list(urls),
        header=_lines(words.get("header")),
        data="body" if isinstance(body, bytes) else None,
        body=body if isinstance(body, str) else None,
        var=[f"{name}={values}" for name, values in (words.get("var") or {}).items()] or None,
        expect_header=_lines(words.get("expect_header")),
        expect_json=[f"{at}={_json(value)}" for at, value in (words.get("expect_json") or {}).items()]
        or None,
        cacert=None if cacert is None else Path(cacert),
        seed=_number(words.get("random_seed")),
        service_pid=pids or None,
        progress=_every_second(progress),
        **{name: words[name] for name in taken if name in words},
        **texted,
        **sweep,
    )

    def read(name: str) -> bytes:
        return body if isinstance(body, bytes) and name == "body" else _text_of(name).encode()

    spec = read_http(asked, read=read, seed=secrets.randbits(63))
    command = call_text(verb, {**words, **sweep}, urls)
    return HttpJob(spec, command, read_pids(asked.service_pid), asked.postgres), asked


def _many(value: object) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str) or not isinstance(value, Sequence) else list(value)


def _number(value: object) -> str | None:
    return None if value is None else str(value)


def _lines(headers: Mapping[str, str] | None) -> list[str] | None:
    return [f"{name}: {value}" if value else name for name, value in (headers or {}).items()] or None


def _json(value: object) -> str:
    import json  # noqa: PLC0415 -- only here

    return json.dumps(value)


def _every_second(progress: Progress) -> str | None:
    return None if progress is False else "1"


def _text_of(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f'could not open file "{name}": {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error


# ---- carrying it out ----


def _loaded(session: LoadSession | HttpSession, progress: Progress, *, open_loop: bool) -> LoadRun:
    """Load, and return what came of it; raise what keeps it from being an answer."""
    tell = teller(progress)
    http = isinstance(session, HttpSession)

    def show(going: LoadProgress) -> None:
        tell(progress_line(going, open_loop=open_loop, http=http))

    tell(f"run {session.folder.name}")
    outcome = session.run(show, tell)
    loaded = cast("LoadRun", open_folder(session.folder))
    if outcome is LoadOutcome.INTERRUPTED:
        raise _interrupted(loaded)
    if outcome is LoadOutcome.REFUSED:
        raise ConnectError(loaded.answer)
    if outcome is not LoadOutcome.COMPLETE or loaded.status == "failed":
        raise RunError(f"{loaded.answer} What was measured is kept: uncork.open({loaded.id!r})")
    return loaded


def _swept(job: LoadJob | HttpJob, asked: SweepOptions, progress: Progress, runs: Place | None) -> SweepRun:
    wanted = sweep_wanted(asked)
    if wanted is None:
        raise UsageError("sweep=None raises nothing; use load_sql or load_http for a single level")
    tell = teller(progress)
    session = new_sweep(runs_folder(runs), job, wanted)
    tell(f"run {session.folder.name}")
    status = session.sweep(lambda visit: tell(visit_line(visit, wanted.spec, session.unit)), tell)
    if not (session.folder / "sweep_visits").is_dir():
        raise KeyboardInterrupt
    swept = cast("SweepRun", open_folder(session.folder))
    if status == "interrupted":
        raise _interrupted(swept)
    return swept


def _interrupted(kept: Run) -> KeyboardInterrupt:
    error = KeyboardInterrupt()
    error.add_note(f"what was measured until then is kept: uncork.open({kept.id!r})")
    return error
