"""What the words after `uncork load sql` ask for, or what is wrong with them, as pgbench says it. Pure.

Files are read through the function that is handed in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.load import builtin
from uncork.model.load import Arrivals, LoadLog, LoadScript, LoadSpec, Protocol
from uncork.requests.jobs import LoadJob, ServerOptions, TablesJob, TablesOptions, Vacuum
from uncork.requests.sweep import SweepOptions
from uncork.requests.words import MOST, read_arrivals, read_count, read_number, refuse

__all__ = ["SqlOptions", "read_request", "sweep_of_sql"]

ReadFile = Callable[[str], str]

_MOST_SCRIPTS: Final = 128
_MOST_CONNECTIONS: Final = 64
"""To how many connections an open loop grows by default."""
_STEPS: Final = "dtgGvpf"
_PROTOCOLS: Final[dict[str, Protocol]] = {
    "simple": "simple",
    "extended": "extended",
    "prepared": "prepared",
}
_LOADING: Final = {
    "builtin": "-b/--builtin",
    "file": "-f/--file",
    "skip_some_updates": "-N/--skip-some-updates",
    "select_only": "-S/--select-only",
    "define": "-D/--define",
    "clients": "-c/--client",
    "jobs": "-j/--jobs",
    "protocol": "-M/--protocol",
    "pipeline": "--pipeline",
    "connect_each": "-C/--connect",
    "max_tries": "--max-tries",
    "vacuum_all": "-v/--vacuum-all",
    "random_seed": "--random-seed",
    "transactions": "-t/--transactions",
    "time": "-T/--time",
    "rate": "-R/--rate",
    "arrivals": "--arrivals",
    "max_clients": "--max-clients",
    "latency_limit": "-L/--latency-limit",
    "sweep": "--sweep",
    "to": "--to",
    "objective": "--objective",
    "budget": "--budget",
    "progress": "-P/--progress",
    "progress_timestamp": "--progress-timestamp",
    "per_command": "-r/--report-per-command",
    "failures_detailed": "--failures-detailed",
    "as_json": "--json",
    "go_bench": "--go-bench",
    "html": "--html",
    "hdr_log": "--hdr-log",
    "log": "-l/--log",
    "log_prefix": "--log-prefix",
    "sampling_rate": "--sampling-rate",
    "aggregate_interval": "--aggregate-interval",
}
_INITIALISING: Final = {
    "init_steps": "-I/--init-steps",
    "fillfactor": "-F/--fillfactor",
    "foreign_keys": "--foreign-keys",
    "unlogged": "--unlogged-tables",
    "tablespace": "--tablespace",
    "index_tablespace": "--index-tablespace",
    "partitions": "--partitions",
    "partition_method": "--partition-method",
    "quiet": "-q/--quiet",
}
_ADDRESS: Final = {
    "host": "-h/--host",
    "port": "-p/--port",
    "user": "-U/--username",
    "database": "DBNAME",
    "database_name": "-d/--dbname",
}


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """What is wanted, unread: a field for each option of `uncork load sql` that bears on the load."""

    database: str | None = None
    host: str | None = None
    port: str | None = None
    user: str | None = None
    database_name: str | None = None
    dsn: str | None = None
    embedded: bool = False
    pg_bin: Path | None = None
    builtin: list[str] | None = None
    file: list[str] | None = None
    skip_some_updates: bool = False
    select_only: bool = False
    define: list[str] | None = None
    scale: str | None = None
    clients: str | None = None
    jobs: str | None = None
    protocol: str | None = None
    pipeline: str | None = None
    connect_each: bool = False
    max_tries: str | None = None
    no_vacuum: bool = False
    vacuum_all: bool = False
    random_seed: str | None = None
    transactions: str | None = None
    time: str | None = None
    rate: str | None = None
    arrivals: str | None = None
    max_clients: str | None = None
    latency_limit: str | None = None
    sweep: str | None = None
    to: str | None = None
    objective: str | None = None
    budget: str | None = None
    progress: str | None = None
    progress_timestamp: bool = False
    per_command: bool = False
    failures_detailed: bool = False
    as_json: bool = False
    go_bench: bool = False
    html: Path | None = None
    hdr_log: Path | None = None
    log: bool = False
    log_prefix: str | None = None
    sampling_rate: str | None = None
    aggregate_interval: str | None = None
    initialise: bool = False
    init_steps: str | None = None
    fillfactor: str | None = None
    foreign_keys: bool = False
    unlogged: bool = False
    tablespace: str | None = None
    index_tablespace: str | None = None
    partitions: str | None = None
    partition_method: str | None = None
    quiet: bool = False


def read_request(
    asked: SqlOptions,
    *,
    read: ReadFile,
    draw_seed: Callable[[], int],
    now_seed: int,
    log_id: str,
    command: str,
) -> LoadJob | TablesJob:
    """Return what was asked for.

    `draw_seed` draws a seed, `now_seed` is the one of ``--random-seed=time``, `log_id` tells this process's
    logs from others', `command` repeats the request and holds no secret.

    Raises:
        UsageError: if something cannot be understood, or contradicts something else.
    """
    server = _server(asked)
    tables = _tables(asked)
    if asked.initialise and not asked.embedded:
        wrong = _given(asked, _LOADING)
        if wrong:
            raise UsageError(
                f"{wrong[0]} cannot be used in initialization (-i) mode; make the tables first, then load"
            )
        return TablesJob(server, tables)
    wrong = [] if asked.embedded else _given(asked, _INITIALISING)
    if wrong:
        raise UsageError(f"{wrong[0]} cannot be used in benchmarking mode; it says how -i makes the tables")
    spec = _spec(asked, read, draw_seed, now_seed, log_id)
    refuse(_contradictions(asked, spec))
    needs_tables = any(script.builtin for script in spec.scripts)
    return LoadJob(
        spec=spec,
        server=server,
        tables=tables if asked.embedded and (needs_tables or asked.initialise) else None,
        needs_tables=needs_tables,
        scale=None if asked.scale is None else tables.scale,
        vacuum=_vacuum(asked, needs_tables),
        command=command,
    )


# ---- where ----


def _server(asked: SqlOptions) -> ServerOptions:
    address = _given(asked, _ADDRESS)
    if asked.embedded and (address or asked.dsn is not None):
        raise UsageError(
            f"--embedded starts a server of our own: leave out {address[0] if address else '--dsn'}"
        )
    if asked.dsn is not None and address:
        raise UsageError(f"--dsn says where to connect: put {address[0]} into it")
    if asked.pg_bin is not None and not asked.embedded:
        raise UsageError("--pg-bin names what --embedded starts: give both")
    if asked.pg_bin is not None and not asked.pg_bin.is_dir():
        raise UsageError(f"--pg-bin {asked.pg_bin}: there is no such folder")
    if asked.database is not None and asked.database_name not in (None, asked.database):
        raise UsageError(
            f'two databases are named: "{asked.database}" and -d "{asked.database_name}"; leave one out'
        )
    port = read_count(asked.port, "-p/--port", None, most=65535)
    return ServerOptions(
        dsn=asked.dsn,
        host=asked.host,
        port=port,
        user=asked.user,
        database=asked.database if asked.database is not None else asked.database_name,
        embedded=asked.embedded,
        binaries=asked.pg_bin,
    )


def _tables(asked: SqlOptions) -> TablesOptions:
    method = asked.partition_method
    if method not in (None, "range", "hash"):
        raise UsageError(f'invalid partition method, expecting "range" or "hash", but got: "{method}"')
    partitions = read_count(asked.partitions, "--partitions", 0, least=0)
    if method is not None and partitions == 0:
        raise UsageError("--partition-method requires greater than zero --partitions")
    fillfactor = read_count(asked.fillfactor, "-F/--fillfactor", 100, 10, 100)
    steps = "dtgvp" if asked.init_steps is None else asked.init_steps
    unknown = [letter for letter in steps if letter not in f"{_STEPS} "]
    if unknown or not steps.strip():
        raise UsageError(
            f'unrecognized initialization step "{unknown[0] if unknown else ""}" in -I/--init-steps. Allowed '
            f'step characters are: "{_STEPS}".'
        )
    return TablesOptions(
        scale=read_count(asked.scale, "-s/--scale", 1),
        steps=steps.replace("v", "") if asked.no_vacuum else steps,
        fillfactor=fillfactor,
        foreign_keys=asked.foreign_keys,
        unlogged=asked.unlogged,
        tablespace=asked.tablespace,
        index_tablespace=asked.index_tablespace,
        partitions=partitions,
        partition_method="hash" if method == "hash" else "range",
    )


def _vacuum(asked: SqlOptions, needs_tables: bool) -> Vacuum:
    if asked.no_vacuum or not needs_tables:
        return "all" if asked.vacuum_all else "none"
    return "all" if asked.vacuum_all else "usual"


# ---- what and how ----


def _spec(
    asked: SqlOptions, read: ReadFile, draw_seed: Callable[[], int], now_seed: int, log_id: str
) -> LoadSpec:
    clients = read_count(asked.clients, "-c/--client", 1)
    threads = read_count(asked.jobs, "-j/--jobs", 1)
    protocol = _PROTOCOLS.get(asked.protocol or "simple")
    if protocol is None:
        raise UsageError(
            f'invalid query mode (-M): "{asked.protocol}"; expecting "simple", "extended" or "prepared"'
        )
    arrivals = _arrivals(asked, read)
    most = None
    if arrivals is not None:
        most = read_count(asked.max_clients, "--max-clients", max(clients, _MOST_CONNECTIONS))
    duration = None if asked.time is None else read_number(asked.time, "-T/--time")
    if duration is not None and not 0 < duration <= MOST:
        raise UsageError(f"-T/--time must be above 0 seconds and at most {MOST}")
    each = read_count(asked.transactions, "-t/--transactions", None)
    if each is None and duration is None and (arrivals is None or arrivals.kind != "trace"):
        each = 10
    return LoadSpec(
        scripts=tuple(_scripts(asked, read)),
        clients=clients,
        max_clients=most,
        threads=min(threads, clients if most is None else most),
        protocol=protocol,
        pipeline_depth=read_count(asked.pipeline, "--pipeline", 1, most=10_000),
        variables=dict(_variables(asked.define or ())),
        seed=_seed(asked.random_seed, draw_seed, now_seed),
        arrivals=arrivals,
        latency_limit_ns=_latency_limit(asked.latency_limit),
        max_tries=_max_tries(asked.max_tries),
        connect_each=asked.connect_each,
        operations_each=each,
        duration_ns=None if duration is None else round(duration * 1e9),
        log=_log(asked, log_id),
        progress_s=read_count(asked.progress, "-P/--progress", None),
    )


def _scripts(asked: SqlOptions, read: ReadFile) -> Iterator[LoadScript]:
    """Yield the scripts; the same one twice gets a number behind its name."""
    scripts = [_builtin_script(text) for text in asked.builtin or ()]
    scripts += [_builtin_script("select-only")] if asked.select_only else []
    scripts += [_builtin_script("simple-update")] if asked.skip_some_updates else []
    scripts += [_file_script(text, read) for text in asked.file or ()]
    scripts = scripts or [_builtin_script("tpcb-like")]
    if len(scripts) > _MOST_SCRIPTS:
        raise UsageError(f"at most {_MOST_SCRIPTS} SQL scripts are allowed; found {len(scripts)}")
    if not any(script.weight for script in scripts):
        raise UsageError("total script weight must not be zero; give one script a weight above 0 (-f FILE@2)")
    seen: dict[str, int] = {}
    for script in scripts:
        seen[script.name] = number = seen.get(script.name, 0) + 1
        yield script if number == 1 else replace(script, name=f"{script.name}#{number}")


def _builtin_script(text: str) -> LoadScript:
    name, weight = builtin.split_weight(text)
    found = builtin.find(name)
    return LoadScript(found.name, weight, found.text, builtin=True)


def _file_script(text: str, read: ReadFile) -> LoadScript:
    name, weight = builtin.split_weight(text)
    return LoadScript(name, weight, read(name))


def _variables(definitions: list[str] | tuple[()]) -> Iterator[tuple[str, str]]:
    for text in definitions:
        name, equals, value = text.partition("=")
        if not equals or not re.fullmatch(r"[\w\u0080-\uffff]+", name) or not value:
            raise UsageError(f'invalid variable definition: "{text}"; write -D NAME=VALUE')
        yield name, value


def _seed(text: str | None, draw: Callable[[], int], now: int) -> int:
    if text is None or text == "rand":
        return draw()
    if text == "time":
        return now
    if not re.fullmatch(r"\d+", text) or int(text) >= 2**64:
        raise UsageError(
            f'unrecognized random seed option "{text}". Expecting an unsigned integer, "time" or "rand". '
            "error while setting random seed from --random-seed option"
        )
    return int(text)


def _latency_limit(text: str | None) -> int | None:
    if text is None:
        return None
    limit = read_number(text, "-L/--latency-limit")
    if not 0 < limit <= MOST:
        raise UsageError(f'invalid latency limit: "{text}"; give milliseconds above 0')
    return max(1, round(limit * 1e6))


def _max_tries(text: str | None) -> int:
    if text is None:
        return 1
    if not re.fullmatch(r"\d+", text) or int(text) >= 2**32:
        raise UsageError(f'invalid number of maximum tries: "{text}"; 0 is without bound')
    return int(text)


def _log(asked: SqlOptions, log_id: str) -> LoadLog | None:
    if not asked.log:
        for value, words in (
            (asked.sampling_rate, "log sampling (--sampling-rate)"),
            (asked.aggregate_interval, "log aggregation (--aggregate-interval)"),
            (asked.log_prefix, "log file prefix (--log-prefix)"),
        ):
            if value is not None:
                raise UsageError(f"{words} is allowed only when logging transactions (-l)")
        return None
    sample = 1.0 if asked.sampling_rate is None else read_number(asked.sampling_rate, "--sampling-rate")
    if not 0 < sample <= 1:
        raise UsageError(f'invalid sampling rate: "{asked.sampling_rate}"; give a part above 0, at most 1')
    interval = read_count(asked.aggregate_interval, "--aggregate-interval", None)
    if interval is not None and asked.sampling_rate is not None:
        raise UsageError(
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the "
            "same time"
        )
    return LoadLog(
        f"{asked.log_prefix or 'pgbench_log'}.{log_id}",
        sample,
        None if interval is None else interval * 10**9,
    )


# ---- when ----


def _arrivals(asked: SqlOptions, read: ReadFile) -> Arrivals | None:
    rate = None
    if asked.rate is not None:
        rate = read_number(asked.rate, "-R/--rate")
        if not 0 < rate <= 1e9:
            raise UsageError(f'invalid rate limit: "{asked.rate}"; give transactions a second above 0')
    return read_arrivals(
        asked.arrivals,
        rate,
        read,
        kinds=("poisson", "constant"),
        rates="-R/--rate",
        needed="-R/--rate, transactions a second",
    )


def _contradictions(asked: SqlOptions, spec: LoadSpec) -> Iterator[tuple[bool, str]]:
    seconds = None if spec.duration_ns is None else spec.duration_ns / 1e9
    interval = None if spec.log is None or spec.log.aggregate_ns is None else spec.log.aggregate_ns / 1e9
    yield (
        asked.transactions is not None and asked.time is not None,
        "specify either a number of transactions (-t) or a duration (-T), not both",
    )
    yield (
        asked.progress_timestamp and asked.progress is None,
        "--progress-timestamp is allowed only under --progress (-P)",
    )
    yield (
        spec.max_tries == 0 and spec.duration_ns is None and spec.latency_limit_ns is None,
        "an unlimited number of transaction tries can only be used with --latency-limit or a duration (-T)",
    )
    if interval is not None and seconds is not None:
        yield (
            interval > seconds,
            f"number of seconds for aggregation ({interval:g}) must not be higher than test duration "
            f"({seconds:g})",
        )
        yield (
            math.fmod(seconds, interval) != 0,
            f"duration ({seconds:g}) must be a multiple of aggregation interval ({interval:g})",
        )
    yield (
        asked.max_clients is not None and spec.arrivals is None,
        "--max-clients is for an open loop, whose connections grow: add -R/--rate, or raise -c",
    )
    yield (
        spec.most_clients < spec.clients,
        f"--max-clients {spec.most_clients} is below the {spec.clients} clients of -c: raise it, or lower -c",
    )
    if spec.pipeline_depth > 1:
        yield (
            spec.protocol == "simple",
            "--pipeline needs -M extended or -M prepared: the simple protocol waits for each answer",
        )
        yield spec.max_tries != 1, "--pipeline sends ahead and cannot try again: leave out --max-tries"
        yield spec.connect_each, "--pipeline keeps its connections: leave out -C/--connect"
    yield asked.as_json and asked.go_bench, "--json and --go-bench both print the result: choose one"


def sweep_of_sql(asked: SqlOptions, spec: LoadSpec) -> SweepOptions:
    """Return what was typed of a sweep: ``-c`` and ``-R`` begin it, ``-T`` is a visit's length."""
    rate = None if spec.arrivals is None else spec.arrivals.rate
    excluded = (
        ("-t/--transactions", asked.transactions is not None),
        ("-R/--rate", asked.sweep != "rate" and (asked.rate is not None or asked.arrivals is not None)),
        ("-l/--log", asked.log),
        ("--hdr-log", asked.hdr_log is not None),
        ("--go-bench", asked.go_bench),
        ("-P/--progress", asked.progress is not None),
        ("--arrivals trace", spec.arrivals is not None and spec.arrivals.kind == "trace"),
    )
    return SweepOptions(
        asked.sweep,
        asked.to,
        asked.objective,
        asked.budget,
        axes=("clients", "rate"),
        starts={"clients": float(spec.clients), "rate": rate},
        visit_ns=None if asked.time is None else spec.duration_ns,
        visit_option="-T",
        excluded=tuple(option for option, wrong in excluded if wrong),
        seed=spec.seed,
    )


def _given(asked: SqlOptions, flags: dict[str, str]) -> list[str]:
    return [flag for name, flag in flags.items() if getattr(asked, name) not in (None, False)]
