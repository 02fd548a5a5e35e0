"""Turn the options of `uncork load sql` into a job, or refuse them in pgbench's words. Pure.

Files are read through a function that the caller passes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Final

from uncork.errors import UsageError
from uncork.load import builtin
from uncork.load.recording import mixed, parse_transactions, replayed
from uncork.model.database.recording import TRANSACTIONS
from uncork.model.load import Arrivals, ClusterRequest, LoadLog, LoadScript, LoadSpec
from uncork.model.records import build_from
from uncork.requests.connection import database_of, refuse_asking
from uncork.requests.jobs import LoadJob, ServerOptions, SweepRequest, TablesJob, TablesOptions, Vacuum
from uncork.requests.load_options import HOW, INITIALIZE, OUTPUT, SWEEP, WATCH, WHAT, WHEN
from uncork.requests.option import names_given
from uncork.requests.part import (
    PART,
    advise_contradictions,
    local_logs,
    part_given,
    read_arrivals,
    read_cluster,
    read_part,
    refuse,
    source_contradictions,
    warm_up_contradictions,
)
from uncork.requests.shared_options import CONNECT
from uncork.requests.sql_options import SqlOptions
from uncork.requests.sweep import SweepOptions, most_clients

ReadFile = Callable[[str], str]
ListFolder = Callable[[str], Sequence[str] | None]
"""Return the paths of a folder's .sql files in the order of their names, and of a recording's
transactions; None if it is no folder."""

_MOST_SCRIPTS: Final = 128
_MOST_CONNECTIONS: Final = 64
"""Default connection limit of an open loop."""
_STEPS: Final = "dtgGvpf"
_WEIGHT: Final = re.compile(r"--\s*weight:\s*(\d+)\s*$")
_BOTH_MODES: Final = ("scale", "show_script", "no_vacuum", "runs")
"""Options for loading that -i accepts too."""


def read_request(
    options: SqlOptions,
    *,
    read: ReadFile,
    files: ListFolder = lambda _: None,
    draw_seed: Callable[[], int],
    now_seed: int,
    log_id: str,
    command: str,
) -> LoadJob | TablesJob:
    """Return the job that the options describe.

    `files` lists the scripts of a folder. `draw_seed` draws a random seed, and `now_seed` is the
    seed of ``--random-seed=time``. `log_id` makes the log's name unique to this process. `command`
    repeats the request and contains no secret. Raises UsageError if an option is invalid or
    contradicts another.
    """
    server = _server(options)
    tables = _tables(options)
    if options.initialise and not options.embedded:
        for name in names_given(options, (WHAT, HOW, WHEN, WATCH, PART, SWEEP, OUTPUT), _BOTH_MODES):
            raise UsageError(
                f"{name} cannot be used in initialization (-i) mode; create the tables first, then load"
            )
        return TablesJob(server, tables)
    for name in () if options.embedded else names_given(options, (INITIALIZE,)):
        raise UsageError(f"{name} cannot be used in benchmarking mode; it requires -i")
    recording = recording_file(options, files)
    spec = _spec(options, read, files, draw_seed, now_seed, log_id)
    refuse(_contradictions(options, spec))
    if recording is not None:
        spec = with_recording(spec, spec.scripts, recording, read(recording), options)
    refuse(recording_contradictions(options, spec))
    needs_tables = any(script.builtin for script in spec.scripts)
    return build_from(
        LoadJob,
        options,
        spec=spec,
        server=server,
        tables=tables if options.embedded and (needs_tables or options.initialise) else None,
        needs_tables=needs_tables,
        scale=None if options.scale is None else tables.scale,
        vacuum=_vacuum(options, needs_tables),
        command=command,
        logs=local_logs(options.logs or [], "load"),
    )


# ---- where ----


def _server(options: SqlOptions) -> ServerOptions:
    address = list(names_given(options, (CONNECT,), ("dsn", "embedded", "pg_bin", "password", "no_password")))
    address += [] if options.database is None else ["DBNAME"]
    if options.embedded and (address or options.dsn is not None):
        raise UsageError(
            f"--embedded starts a temporary server: leave out {address[0] if address else '--dsn'}"
        )
    refuse_asking(options, connects=not options.embedded)
    if options.dsn is not None and address:
        raise UsageError(f"--dsn already gives the connection: put {address[0]} into it")
    if options.embedded and options.shard is not None:
        raise UsageError(
            "--embedded starts a server for this part alone: name the server of all parts instead"
        )
    if options.pg_bin is not None and not options.embedded:
        raise UsageError("--pg-bin requires --embedded")
    if options.pg_bin is not None and not options.pg_bin.is_dir():
        raise UsageError(f"--pg-bin {options.pg_bin}: no such directory")
    return ServerOptions(
        dsn=options.dsn,
        host=options.host,
        port=options.port,
        user=options.user,
        database=database_of(options.database, options.database_name),
        embedded=options.embedded,
        binaries=options.pg_bin,
    )


def _tables(options: SqlOptions) -> TablesOptions:
    if options.partition_method is not None and not options.partitions:
        raise UsageError("--partition-method requires greater than zero --partitions")
    steps = "dtgvp" if options.init_steps is None else options.init_steps
    unknown = [letter for letter in steps if letter not in f"{_STEPS} "]
    if unknown or not steps.strip():
        raise UsageError(
            f'unrecognized initialization step "{unknown[0] if unknown else ""}" in -I/--init-steps. Allowed '
            f'step characters are: "{_STEPS}".'
        )
    return build_from(
        TablesOptions,
        options,
        scale=options.scale or 1,
        steps=steps.replace("v", "") if options.no_vacuum else steps,
        fillfactor=options.fillfactor or 100,
        partitions=options.partitions or 0,
        partition_method=options.partition_method or "range",
    )


def _vacuum(options: SqlOptions, needs_tables: bool) -> Vacuum:
    if options.shard is not None and options.shard[0] > 1:
        return "none"  # the first part vacuums for all
    if options.no_vacuum or not needs_tables:
        return "all" if options.vacuum_all else "none"
    return "all" if options.vacuum_all else "usual"


# ---- what and how ----


def _spec(
    options: SqlOptions,
    read: ReadFile,
    files: ListFolder,
    draw_seed: Callable[[], int],
    now_seed: int,
    log_id: str,
) -> LoadSpec:
    clients = options.clients or 1
    arrivals = _arrivals(options, read)
    most = None
    if arrivals is not None:
        most = options.max_clients or max(clients, _MOST_CONNECTIONS)
    each = options.transactions
    if each is None and options.time is None and (arrivals is None or arrivals.kind != "trace"):
        each = 10
    seed = options.random_seed
    return LoadSpec(
        scripts=tuple(_scripts(options, read, files)),
        clients=clients,
        max_clients=most,
        threads=min(options.jobs or 1, clients if most is None else most),
        protocol=options.protocol or "simple",
        pipeline_depth=options.pipeline or 1,
        variables=dict(options.define or ()),
        seed=seed if isinstance(seed, int) else now_seed if seed == "time" else draw_seed(),
        arrivals=arrivals,
        latency_limit_ns=options.latency_limit,
        max_tries=1 if options.max_tries is None else options.max_tries,
        connect_each=options.connect_each,
        operations_each=each,
        duration_ns=options.time,
        warmup_ns=options.warm_up or 0,
        log=_log(options, log_id),
        progress_s=options.progress,
        exit_on_abort=options.exit_on_abort,
        verbosity="steps" if options.debug else "errors" if options.verbose_errors else "quiet",
        part=read_part(
            options,
            clients=clients,
            arrivals=arrivals,
            operations=None,
            read_files=options.script or (),
        ),
    )


def _scripts(options: SqlOptions, read: ReadFile, files: ListFolder) -> Iterator[LoadScript]:
    """Yield the scripts; the same one twice gets a number behind its name."""
    scripts = [_builtin_script(text) for text in options.builtin or ()]
    scripts += [_builtin_script("select-only")] if options.select_only else []
    scripts += [_builtin_script("simple-update")] if options.skip_some_updates else []
    for text in (*(options.script or ()), *(() if options.replay is None else (options.replay,))):
        scripts += _file_scripts(text, read, files)
    scripts = scripts or [_builtin_script("tpcb-like")]
    if len(scripts) > _MOST_SCRIPTS and recording_file(options, files) is None:
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


def _file_scripts(text: str, read: ReadFile, files: ListFolder) -> list[LoadScript]:
    """Return the script of a file, or those of a folder, whose weights are in their first lines."""
    found = files(text)
    found = None if found is None else [path for path in found if PurePath(path).name != TRANSACTIONS]
    if found is None:
        name, weight = builtin.split_weight(text)
        if files(name) is not None:
            raise UsageError(
                f'-f {text}: a folder has no weight of its own; write "-- weight: {weight}" in the first '
                "line of its scripts"
            )
        return [LoadScript(name, weight, read(name))]
    if not found:
        raise UsageError(f"-f {text}: the folder has no .sql files; name a script, or a folder of scripts")
    return [_weighted(name, read(name)) for name in found]


def _weighted(name: str, text: str) -> LoadScript:
    written = _WEIGHT.match(text.partition("\n")[0].strip())
    weight = 1 if written is None else int(written[1])
    if weight > builtin.LARGEST_WEIGHT:
        raise UsageError(f"{name}:1: weight {weight} is above the largest, {builtin.LARGEST_WEIGHT}")
    return LoadScript(PurePath(name).name, weight, text)


def _log(options: SqlOptions, log_id: str) -> LoadLog | None:
    if not options.log:
        for value, words in (
            (options.sampling_rate, "log sampling (--sampling-rate)"),
            (options.aggregate_interval, "log aggregation (--aggregate-interval)"),
            (options.log_prefix, "log file prefix (--log-prefix)"),
        ):
            if value is not None:
                raise UsageError(f"{words} is allowed only when logging transactions (-l)")
        return None
    interval = options.aggregate_interval
    if interval is not None and options.sampling_rate is not None:
        raise UsageError(
            "log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the "
            "same time"
        )
    return LoadLog(
        f"{options.log_prefix or 'pgbench_log'}.{log_id}",
        1.0 if options.sampling_rate is None else options.sampling_rate,
        None if interval is None else interval * 10**9,
    )


# ---- when ----


def _arrivals(options: SqlOptions, read: ReadFile) -> Arrivals | None:
    return read_arrivals(
        options.arrivals,
        options.rate,
        read,
        kinds=("poisson", "constant"),
        rates="-R/--rate",
        needed="-R/--rate, transactions a second",
    )


def _contradictions(options: SqlOptions, spec: LoadSpec) -> Iterator[str]:
    seconds = None if spec.duration_ns is None else spec.duration_ns / 1e9
    interval = None if spec.log is None or spec.log.aggregate_ns is None else spec.log.aggregate_ns / 1e9
    if options.transactions is not None and options.time is not None:
        yield "specify either a number of transactions (-t) or a duration (-T), not both"
    if options.progress_timestamp and options.progress is None:
        yield "--progress-timestamp is allowed only under --progress (-P)"
    if spec.max_tries == 0 and spec.duration_ns is None and spec.latency_limit_ns is None:
        yield (
            "an unlimited number of transaction tries can only be used with --latency-limit or a duration "
            "(-T)"
        )
    if interval is not None and seconds is not None:
        if interval > seconds:
            yield (
                f"number of seconds for aggregation ({interval:g}) must not be higher than test duration "
                f"({seconds:g})"
            )
        if math.fmod(seconds, interval) != 0:
            yield f"duration ({seconds:g}) must be a multiple of aggregation interval ({interval:g})"
    if options.max_clients is not None and spec.arrivals is None:
        yield "--max-clients requires an open loop: add -R/--rate, or raise -c"
    if spec.most_clients < spec.clients:
        below = f"below the {spec.clients} clients of -c"
        yield f"--max-clients {spec.most_clients} is {below}: raise it, or lower -c"
    if spec.pipeline_depth > 1:
        yield from _pipeline_contradictions(spec)
    if options.as_json and options.go_bench:
        yield "--json and --go-bench both print the result: choose one"
    yield from advise_contradictions(options, spec)
    yield from source_contradictions(options)
    yield from warm_up_contradictions(spec)


def _pipeline_contradictions(spec: LoadSpec) -> Iterator[str]:
    if spec.protocol == "simple":
        yield "--pipeline requires -M extended or -M prepared: the simple protocol waits for each answer"
    if spec.max_tries != 1:
        yield "--pipeline cannot retry transactions: leave out --max-tries"
    if spec.connect_each:
        yield "--pipeline keeps its connections open: leave out -C/--connect"


def sweep_of_sql(options: SqlOptions, spec: LoadSpec) -> SweepOptions:
    """Return the sweep's options: ``-c`` and ``-R`` start it, ``-T`` is the length of a load step."""
    rate = None if spec.arrivals is None else spec.arrivals.rate
    excluded = (
        ("-t/--transactions", options.transactions is not None),
        ("-R/--rate", options.sweep != "rate" and (options.rate is not None or options.arrivals is not None)),
        ("-l/--log", options.log),
        ("--hdr-log", options.hdr_log is not None),
        ("--go-bench", options.go_bench),
        ("-P/--progress", options.progress is not None),
        ("--exit-on-abort", options.exit_on_abort),
        ("--verbose-errors", options.verbose_errors),
        ("--debug", options.debug),
        *((name, True) for name in part_given(options)),
        ("--on-lost", options.on_lost is not None),
        ("--arrivals trace", spec.arrivals is not None and spec.arrivals.kind == "trace"),
    )
    return SweepOptions(
        options.sweep,
        options.to,
        options.objective,
        options.budget,
        axes=("clients", "rate"),
        starts={"clients": float(spec.clients), "rate": rate},
        step_ns=None if options.time is None else spec.duration_ns,
        step_option="-T",
        excluded=tuple(option for option, wrong in excluded if wrong),
        seed=spec.seed,
        verify=options.verify,
    )


def cluster_of_sql(
    options: SqlOptions, spec: LoadSpec, sweep: SweepRequest | None = None
) -> ClusterRequest | None:
    """Return the nodes that send the load, or the steps of a sweep; None if this machine sends it.

    Raises UsageError if a load from nodes cannot be as the options ask.
    """
    return read_cluster(
        options,
        clients=spec.clients if sweep is None else most_clients(sweep, spec.clients),
        arrivals=spec.arrivals,
        operations=None,
        excluded=(
            f"{option}: {remedy}"
            for option, given, remedy in (
                ("--embedded", options.embedded, "name a server that all nodes can reach"),
                ("-l/--log", options.log, "the nodes would each write their own log"),
                ("--exit-on-abort", options.exit_on_abort, "the other nodes would continue"),
                ("--verbose-errors", options.verbose_errors, "the report has the errors by statement"),
                ("--debug", options.debug, "send the load from this machine to see what it sends"),
            )
            if given
        ),
    )


# ---- a recording as a load: a replay of its sessions, or a mix of its transactions ----


def recording_file(options: SqlOptions, files: ListFolder) -> str | None:
    """Return the file with the transactions of the recording that is to be sent; None if there is none.

    Raises UsageError if a recording is sent together with something else, or a replay has none.
    """
    given = [] if options.replay is None else [options.replay]
    found = [
        file
        for folder in (*given, *(options.script or ()))
        for file in files(folder) or ()
        if PurePath(file).name == TRANSACTIONS
    ]
    if options.replay is not None and not found:
        raise UsageError(
            f"--replay {options.replay}: no folder with a recording; `uncork capture --sessions` makes one"
        )
    if not found:
        return None
    others = len(options.script or ()) + len(given) > 1
    if others or options.builtin or options.select_only or options.skip_some_updates:
        raise UsageError(f"{PurePath(found[0]).parent} is a recording, which is sent without other scripts")
    return found[0]


def with_recording(
    spec: LoadSpec, scripts: Sequence[LoadScript], file: str, text: str, options: SqlOptions
) -> LoadSpec:
    """Return the load that sends a recording, whose transactions are the `text` of `file`.

    Raises UsageError if the recording is invalid, or needs another protocol.
    """
    transactions = parse_transactions(text, file)
    # A weight of 0 means that a script is never sent; the recording decides how often.
    scripts = [replace(script, weight=max(1, script.weight)) for script in scripts]
    if options.short_transactions:
        scripts = [replace(script, text=_pausing_before(script.text)) for script in scripts]
    if options.replay is None:
        recorded = mixed(transactions, scripts, spec.protocol, spec.seed)
        return replace(spec, scripts=tuple(scripts), recorded=recorded)
    recorded, arrivals, clients = replayed(transactions, scripts, spec.protocol, options.speed or 1.0)
    return replace(
        spec,
        scripts=tuple(scripts),
        recorded=recorded,
        arrivals=arrivals,
        clients=clients,
        max_clients=None,
        threads=min(options.jobs or 1, clients),
        operations_each=None,
    )


def _pausing_before(script: str) -> str:
    """Return a script of a recording with all pauses before its first statement."""
    lines = script.splitlines(keepends=True)
    comments = [line for line in lines if line.startswith("--")]
    pauses = [line for line in lines if line.startswith("\\sleep ")]
    return "".join([*comments, *pauses, *(line for line in lines if line not in (*comments, *pauses))])


def recording_contradictions(options: SqlOptions, spec: LoadSpec) -> Iterator[str]:
    """Yield what recordings and replays cannot be combined with."""
    if options.speed is not None and options.replay is None:
        yield "--speed requires --replay"
    if options.short_transactions and spec.recorded is None:
        yield "--short-transactions requires a recording (--replay, or -f with its folder)"
    if spec.recorded is None:
        return
    if options.nodes is not None:
        yield "a recording cannot be sent from --nodes: send it from one machine"
    if options.replay is None:
        return
    for given, option, why in (
        (options.rate is not None, "-R/--rate", "it has the recorded pace: use --speed"),
        (options.arrivals is not None, "--arrivals", "it has the recorded times: use --speed"),
        (options.clients is not None, "-c/--client", "it has a client for each session"),
        (options.max_clients is not None, "--max-clients", "it has a client for each session"),
        (options.transactions is not None, "-t/--transactions", "use -T to end it early"),
        (options.connect_each, "-C/--connect", "it keeps a connection for each session"),
        (options.warm_up is not None, "--warmup", "each transaction is sent once"),
        (options.pipeline is not None, "--pipeline", "sessions wait for each answer"),
        (options.sweep is not None, "--sweep", "use -f to send the mix of the recording at any rate"),
        (options.shard is not None, "--shard", "sessions are not divided"),
        (options.advise, "--advise", "it cannot be sent for 5 s more; watch with `uncork advise` meanwhile"),
    ):
        if given:
            yield f"--replay cannot be combined with {option}: {why}"
