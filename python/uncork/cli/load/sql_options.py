"""The options of `uncork load sql`: pgbench's, in its words and with its meaning, and those beyond it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uncork.cli.load.options import HOW, SWEEP, TELL, WHAT, WHEN, Text, Texts, flag, option

WHERE, INITIALISE = "Where to connect", "Initialisation (-i), as pgbench -i"

Database = Annotated[
    Text,
    typer.Argument(
        metavar="[DBNAME]", help="Database to connect to, or a connection string.", show_default=False
    ),
]
Host = Annotated[
    Text, option("-h", "--host", metavar="HOST", help="Server's host or socket folder.", panel=WHERE)
]
Port = Annotated[Text, option("-p", "--port", metavar="PORT", help="Server's port.", panel=WHERE)]
User = Annotated[Text, option("-U", "--username", metavar="USER", help="Role to connect as.", panel=WHERE)]
DatabaseName = Annotated[
    Text, option("-d", "--dbname", metavar="DBNAME", help="The same as the argument DBNAME.", panel=WHERE)
]
Dsn = Annotated[
    Text,
    option(
        "--dsn",
        metavar="CONNINFO",
        help="Connection string (URI or key=value; PG*, service files and .pgpass work).",
        panel=WHERE,
    ),
]
Embedded = Annotated[
    bool,
    flag(
        "--embedded",
        help="Start a PostgreSQL of our own, fill pgbench's tables at -s if a built-in script needs them, "
        "load it, and remove it.",
        panel=WHERE,
    ),
]
PgBin = Annotated[
    Path | None,
    option("--pg-bin", metavar="DIR", help="With --embedded: start these binaries.", panel=WHERE),
]

Builtin = Annotated[
    Texts,
    option(
        "-b",
        "--builtin",
        metavar="NAME[@W]",
        help="Add a built-in script with weight W (1); -b list lists them. Default: tpcb-like.",
        panel=WHAT,
    ),
]
File = Annotated[
    Texts,
    option("-f", "--file", metavar="FILE[@W]", help="Add a script from a file; - reads it here.", panel=WHAT),
]
SkipUpdates = Annotated[
    bool, flag("-N", "--skip-some-updates", help="The same as -b simple-update.", panel=WHAT)
]
SelectOnly = Annotated[bool, flag("-S", "--select-only", help="The same as -b select-only.", panel=WHAT)]
Define = Annotated[
    Texts, option("-D", "--define", metavar="NAME=VALUE", help="Define a variable of scripts.", panel=WHAT)
]
Scale = Annotated[
    Text,
    option(
        "-s",
        "--scale",
        metavar="NUM",
        help="Scale: of the tables with -i, else of scripts' :scale.",
        panel=WHAT,
    ),
]
ShowScript = Annotated[
    Text, option("--show-script", metavar="NAME", help="Print a built-in script, then exit.", panel=WHAT)
]

Clients = Annotated[
    Text, option("-c", "--client", metavar="NUM", help="Number of clients. Default: 1.", panel=HOW)
]
Jobs = Annotated[
    Text, option("-j", "--jobs", metavar="NUM", help="Number of threads, at most -c. Default: 1.", panel=HOW)
]
Protocol = Annotated[
    Text,
    option(
        "-M", "--protocol", metavar="simple|extended|prepared", help="How statements are sent.", panel=HOW
    ),
]
Pipeline = Annotated[
    Text,
    option(
        "--pipeline",
        metavar="DEPTH",
        help="Keep so many transactions under way on each connection, sent without waiting.",
        panel=HOW,
    ),
]
ConnectEach = Annotated[
    bool, flag("-C", "--connect", help="Open a connection for each transaction.", panel=HOW)
]
MaxTries = Annotated[
    Text,
    option(
        "--max-tries",
        metavar="NUM",
        help="Tries of a transaction that fails by serialization or deadlock. Default: 1; 0: no bound.",
        panel=HOW,
    ),
]
NoVacuum = Annotated[
    bool, flag("-n", "--no-vacuum", help="Do not vacuum before a built-in script.", panel=HOW)
]
VacuumAll = Annotated[
    bool, flag("-v", "--vacuum-all", help="Vacuum all four tables before a built-in script.", panel=HOW)
]
RandomSeed = Annotated[
    Text,
    option("--random-seed", metavar="NUM|time|rand", help="Seed of everything random.", panel=HOW),
]

Transactions = Annotated[
    Text,
    option(
        "-t", "--transactions", metavar="NUM", help="Transactions of each client. Default: 10.", panel=WHEN
    ),
]
Time = Annotated[Text, option("-T", "--time", metavar="SECONDS", help="How long to load.", panel=WHEN)]
Rate = Annotated[
    Text,
    option(
        "-R",
        "--rate",
        metavar="NUM",
        help="Open loop: so many transactions a second arrive, whatever the server does.",
        panel=WHEN,
    ),
]
Arrivals = Annotated[
    Text,
    option(
        "--arrivals",
        metavar="poisson|constant|bursts:SIZE|trace:FILE",
        help="How they arrive at -R; a trace has times of its own, in seconds, one a line. Else poisson.",
        panel=WHEN,
    ),
]
MaxClients = Annotated[
    Text,
    option(
        "--max-clients",
        metavar="NUM",
        help="Open loop: connections may grow to so many. Default: 64, or -c if that is more.",
        panel=WHEN,
    ),
]
LatencyLimit = Annotated[
    Text,
    option(
        "-L",
        "--latency-limit",
        metavar="MS",
        help="Count transactions over so many ms as late; an open loop skips those so late already.",
        panel=WHEN,
    ),
]

Sweep = Annotated[
    Text,
    option(
        "--sweep",
        metavar="clients|rate",
        help="Raise the load by itself, from -c or -R on, in visits of -T seconds (2), and say where the "
        "server bends or breaks.",
        panel=SWEEP,
    ),
]
To = Annotated[
    Text,
    option("--to", metavar="NUM", help="The highest level. Default: 512 clients.", panel=SWEEP),
]
ProgressTimestamp = Annotated[
    bool, flag("--progress-timestamp", help="With -P: Unix time, not time elapsed.", panel=TELL)
]
PerCommand = Annotated[
    bool,
    flag(
        "-r", "--report-per-command", "--report-latencies", help="Show times of each statement.", panel=TELL
    ),
]
FailuresDetailed = Annotated[
    bool, flag("--failures-detailed", help="Accepted; failures are always told by SQLSTATE.", panel=TELL)
]
Log = Annotated[bool, flag("-l", "--log", help="Write a line for each transaction to a file.", panel=TELL)]
LogPrefix = Annotated[
    Text,
    option(
        "--log-prefix",
        metavar="PREFIX",
        help="Beginning of the log's name. Default: pgbench_log.",
        panel=TELL,
    ),
]
SamplingRate = Annotated[
    Text,
    option("--sampling-rate", metavar="NUM", help="Part of the transactions logged, 0 to 1.", panel=TELL),
]
AggregateInterval = Annotated[
    Text,
    option("--aggregate-interval", metavar="SECONDS", help="Log sums over so many seconds.", panel=TELL),
]
Initialise = Annotated[
    bool,
    flag("-i", "--initialize", help="Make and fill pgbench's tables, then exit.", panel=INITIALISE),
]
InitSteps = Annotated[
    Text,
    option("-I", "--init-steps", metavar="[dtgGvpf]+", help="Steps. Default: dtgvp.", panel=INITIALISE),
]
Fillfactor = Annotated[
    Text,
    option("-F", "--fillfactor", metavar="NUM", help="Fillfactor of tables, 10 to 100.", panel=INITIALISE),
]
ForeignKeys = Annotated[bool, flag("--foreign-keys", help="Add foreign keys.", panel=INITIALISE)]
Unlogged = Annotated[bool, flag("--unlogged-tables", help="Make unlogged tables.", panel=INITIALISE)]
Tablespace = Annotated[
    Text, option("--tablespace", metavar="NAME", help="Tablespace of tables.", panel=INITIALISE)
]
IndexTablespace = Annotated[
    Text, option("--index-tablespace", metavar="NAME", help="Tablespace of indexes.", panel=INITIALISE)
]
Partitions = Annotated[
    Text,
    option("--partitions", metavar="NUM", help="Partitions of pgbench_accounts.", panel=INITIALISE),
]
PartitionMethod = Annotated[
    Text,
    option("--partition-method", metavar="range|hash", help="How they are cut.", panel=INITIALISE),
]
Quiet = Annotated[bool, flag("-q", "--quiet", help="Tell less while filling.", panel=INITIALISE)]
