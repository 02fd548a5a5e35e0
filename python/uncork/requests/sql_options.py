"""The options of `uncork load sql`: pgbench's, with pgbench's meaning, and uncork's own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from uncork.model.load import Protocol
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.requests.load_options import (
    HOW,
    INITIALIZE,
    OUTPUT,
    SWEEP,
    WATCH,
    WHAT,
    WHEN,
    Advise,
    AsJson,
    GoBench,
    HdrLog,
    Html,
    Objective,
    ProgressEvery,
    RunsOutput,
    SweepBudget,
    Verify,
    WarmUp,
)
from uncork.requests.option import MOST, Location, choice, number, opt, pair, whole
from uncork.requests.part import PartOptions
from uncork.requests.shared_options import (
    CONNECT,
    WatchedServer,
)

_connect, _what, _how, _when = (partial(opt, panel=panel) for panel in (CONNECT, WHAT, HOW, WHEN))
_sweep, _output, _tables = (partial(opt, panel=panel) for panel in (SWEEP, OUTPUT, INITIALIZE))
_watch = partial(opt, panel=WATCH)

_PROTOCOL = choice(
    "simple",
    "extended",
    "prepared",
    refusal='invalid query mode (-M): "{value}"; expecting "simple", "extended" or "prepared"',
)
_VARIABLE = pair(
    "=", 'invalid variable definition: "{value}"; write -D NAME=VALUE', name=r"[\w\u0080-\uffff]+", value=".+"
)
_MAX_TRIES = whole(
    0, 2**32 - 1, refusal='invalid number of maximum tries: "{value}"; give a number, or 0 for no limit'
)
_SEED = whole(
    0,
    2**64 - 1,
    words=("time", "rand"),
    refusal='unrecognized random seed option "{value}". Expecting an unsigned integer, "time" or "rand". '
    "error while setting random seed from --random-seed option",
)
_TIME = number(0, MOST, scale=1e9, refusal=f"-T/--time must be above 0 seconds and at most {MOST}")
_RATE = number(0, 1e9, refusal='invalid rate limit: "{value}"; give transactions a second above 0')
_SPEED = number(0, 1e6, refusal='invalid speed: "{value}"; give a factor above 0, such as 2 or 0.5')
_LATENCY_LIMIT = number(
    0, MOST, scale=1e6, refusal='invalid latency limit: "{value}"; give milliseconds above 0'
)
_SAMPLING = number(0, 1, refusal='invalid sampling rate: "{value}"; give a fraction above 0 and at most 1')
_METHOD = choice(
    "range", "hash", refusal='invalid partition method, expecting "range" or "hash", but got: "{value}"'
)


@dataclass(frozen=True, kw_only=True)
class _SqlLoad(WatchedServer):
    """What help shows before the options of a load from several machines."""

    database: str | None = opt("[DBNAME]", "Database to connect to, or a connection string.")
    dsn: str | None = _connect(
        "--dsn CONNINFO",
        "Connection string: a URI or key=value pairs. PG* variables, service files and .pgpass apply.",
    )
    embedded: bool = _connect(
        "--embedded",
        "Start a temporary PostgreSQL, create pgbench's tables at scale -s if a built-in script needs "
        "them, load it, and remove it.",
        python="Start a temporary PostgreSQL; create pgbench's tables if a built-in script needs them.",
        default=False,
    )
    pg_bin: Path | None = _connect(
        "--pg-bin DIR",
        "With --embedded: use the PostgreSQL binaries in DIR.",
        python="With `embedded`: folder of the PostgreSQL binaries to use.",
    )
    builtin: list[str] | None = _what(
        "-b, --builtin NAME[@W]",
        "Add a built-in script with weight W (default: 1); -b list lists them. Default: tpcb-like.",
        python='A built-in script such as ``"select-only"``, or several. Default: ``tpcb-like``.',
    )
    script: list[str] | None = _what(
        "-f, --file FILE[@W]",
        "Add a script from FILE with weight W (default: 1); - is standard input. A folder adds its .sql "
        'files, with the weights in their first lines ("-- weight: 37").',
        python="A script file, a folder of scripts, the text of a script (with a semicolon or newline), or a "
        "list of these.",
    )
    replay: str | None = _what(
        "--replay DIR",
        "Replay the sessions that `uncork capture --sessions` recorded in DIR: each transaction once, at its "
        "time, with its values and pauses.",
        python="Folder of a recording of sessions to replay: each transaction once, at its time.",
    )
    short_transactions: bool = _what(
        "--short-transactions",
        "With a recording: clients pause before each transaction, not within it, to measure what shorter "
        "transactions bring.",
        python="Of a recording: clients pause before each transaction, not within it.",
        default=False,
    )
    skip_some_updates: bool = _what("-N, --skip-some-updates", "Same as -b simple-update.", default=False)
    select_only: bool = _what("-S, --select-only", "Same as -b select-only.", default=False)
    define: list[tuple[str, str]] | None = _what(
        "-D, --define NAME=VALUE",
        "Define a variable for scripts.",
        _VARIABLE,
        python="Variables for scripts.",
    )
    scale: int | None = _what(
        "-s, --scale NUM",
        "Scale factor: of the tables with -i, otherwise the scripts' :scale variable.",
        python="Scale factor of pgbench's tables.",
    )
    show_script: str | None = _what("--show-script NAME", "Print a built-in script, then exit.")
    clients: int | None = _how("-c, --client NUM", "Number of clients. Default: 1.")
    jobs: int | None = _how(
        "-j, --jobs NUM",
        "Number of threads, at most -c. Default: 1.",
        python="Number of threads, at most `clients`. Default: 1.",
    )
    protocol: Protocol | None = _how(
        "-M, --protocol simple|extended|prepared",
        "Protocol for submitting statements. Default: simple.",
        _PROTOCOL,
    )
    pipeline: int | None = _how(
        "--pipeline DEPTH",
        "Keep up to DEPTH transactions in flight on each connection, sent without waiting.",
        whole(1, 10_000),
        python="Transactions in flight on each connection, sent without waiting. Default: 1.",
    )
    connect_each: bool = _how("-C, --connect", "Open a new connection for each transaction.", default=False)
    exit_on_abort: bool = _how(
        "--exit-on-abort",
        "End the load at the first client that aborts: its transaction fails, except by a serialization "
        "failure or a deadlock, or its connection is lost or cannot be opened.",
        default=False,
    )
    max_tries: int | None = _how(
        "--max-tries NUM",
        "Maximum tries of a transaction after a serialization or deadlock error; 0 is no limit. Default: 1.",
        _MAX_TRIES,
    )
    no_vacuum: bool = _how("-n, --no-vacuum", "Do not vacuum before a built-in script.", default=False)
    vacuum_all: bool = _how(
        "-v, --vacuum-all", "Vacuum all four pgbench tables before a built-in script.", default=False
    )
    random_seed: int | str | None = _how(
        "--random-seed NUM|time|rand", "Seed of the random number generator.", _SEED
    )
    transactions: int | None = _when(
        "-t, --transactions NUM",
        "Number of transactions each client runs. Default: 10.",
        python="Number of transactions each client runs. Default: 10, unless `time` is given.",
    )
    time: int | None = _when(
        "-T, --time SECONDS",
        "Duration of the load in seconds.",
        _TIME,
        python='Duration of the load, such as ``"30s"``.',
    )
    warm_up: WarmUp = None
    rate: float | None = _when(
        "-R, --rate NUM",
        "Open loop: start NUM transactions a second, however fast the server answers.",
        _RATE,
        python="Open loop: transactions started per second, however fast the server answers.",
    )
    arrivals: str | None = _when(
        "--arrivals poisson|constant|bursts:SIZE|trace:FILE",
        "How transactions arrive at -R; a trace has its own times in seconds, one a line. Default: poisson.",
        python="How transactions arrive: poisson, constant, bursts:SIZE or trace:FILE. Default: poisson.",
    )
    speed: float | None = _when(
        "--speed FACTOR",
        "With --replay: FACTOR times as fast as recorded. Default: 1.",
        _SPEED,
        python="With `replay`: how many times as fast as recorded. Default: 1.",
    )
    max_clients: int | None = _when(
        "--max-clients NUM",
        "Open loop: maximum number of connections. Default: 64, or -c if higher.",
        python="Open loop: maximum number of connections. Default: 64, or `clients` if higher.",
    )
    latency_limit: int | None = _when(
        "-L, --latency-limit MS",
        "Count transactions that take longer than MS as late; an open loop skips those already late.",
        _LATENCY_LIMIT,
        python='Count transactions that take longer as late, such as ``"20ms"``.',
    )
    advise: Advise = False
    postgres: str | None = _watch(
        "--postgres CONNINFO",
        "With --advise, if the load goes through a pooler: the PostgreSQL server behind it, to watch.",
    )
    pooler: str | None = _watch(
        "--pooler CONNINFO",
        "With --advise: the console of the PgBouncer that the load goes through (dbname=pgbouncer), to see "
        "how long transactions wait for its connections. Requires --postgres.",
    )
    logs: list[Location] | None = _watch(
        "--logs FILE",
        "With --advise: a log of the database, to see the time of parsing: a file, glob or folder; "
        "repeatable. It needs log_min_duration_statement = 0.",
    )
    sweep: str | None = _sweep(
        "--sweep clients|rate",
        "Raise the load step by step, starting from -c or -R, in load steps of -T seconds (default: 2), "
        "and report where the server saturates or fails.",
    )
    to: float | None = _sweep("--to NUM", "Highest level. Default: 512 clients.")
    objective: Objective = None
    budget: SweepBudget = None
    verify: Verify = False


@dataclass(frozen=True, slots=True)
class SqlOptions(PartOptions, _SqlLoad):
    """Load-test a PostgreSQL server with pgbench's scripts or your own.

    Accepts pgbench's options, scripts and tables. The run is stored; `uncork report` shows it again.
    """

    progress: ProgressEvery = None
    progress_timestamp: bool = _output(
        "--progress-timestamp", "With -P: show Unix time instead of elapsed time.", default=False
    )
    per_command: bool = _output(
        "-r, --report-per-command, --report-latencies", "Report the latency of each statement.", default=False
    )
    failures_detailed: bool = _output(
        "--failures-detailed",
        "Accepted for pgbench; failures are always reported by SQLSTATE.",
        default=False,
    )
    verbose_errors: bool = _output(
        "--verbose-errors", "Print each error and each retry to standard error.", default=False
    )
    debug: bool = _output(
        "--debug",
        "Print each command that a client carries out, and each error, to standard error.",
        default=False,
    )
    as_json: AsJson = False
    go_bench: GoBench = False
    html: Html = None
    hdr_log: HdrLog = None
    log: bool = _output("-l, --log", "Write one line per transaction to a log file.", default=False)
    log_prefix: str | None = _output(
        "--log-prefix PREFIX", "Prefix of the log file name. Default: pgbench_log."
    )
    sampling_rate: float | None = _output(
        "--sampling-rate NUM", "Fraction of transactions to log, 0 to 1.", _SAMPLING
    )
    aggregate_interval: int | None = _output(
        "--aggregate-interval SECONDS", "Log one line of totals per SECONDS seconds."
    )
    initialise: bool = _tables(
        "-i, --initialize", "Create and fill pgbench's tables, then exit.", default=False
    )
    init_steps: str | None = _tables(
        "-I, --init-steps [dtgGvpf]+", "Initialization steps to run. Default: dtgvp."
    )
    fillfactor: int | None = _tables(
        "-F, --fillfactor NUM", "Fillfactor of the tables, 10 to 100.", whole(10, 100)
    )
    foreign_keys: bool = _tables("--foreign-keys", "Create foreign keys between the tables.", default=False)
    unlogged: bool = _tables("--unlogged-tables", "Create unlogged tables.", default=False)
    tablespace: str | None = _tables("--tablespace NAME", "Create the tables in this tablespace.")
    index_tablespace: str | None = _tables(
        "--index-tablespace NAME", "Create the indexes in this tablespace."
    )
    partitions: int | None = _tables(
        "--partitions NUM", "Partition pgbench_accounts into NUM parts.", whole(0)
    )
    partition_method: Literal["range", "hash"] | None = _tables(
        "--partition-method range|hash", "Partition pgbench_accounts with this method.", _METHOD
    )
    quiet: bool = _tables("-q, --quiet", "Report less progress while filling the tables.", default=False)
    runs: RunsOutput = DEFAULT_RUNS
