"""The options of `uncork load sql`: pgbench's, in its words and with its meaning, and those beyond it.

All values arrive as text, so that one place reads them and words what is wrong with them (`load_request`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from uncork.cli import places

Text = str | None
Texts = list[str] | None


def _option(*names: str, metavar: str, help: str, panel: str) -> Any:
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel, show_default=False)


def _flag(*names: str, help: str, panel: str) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False)


WHERE, WHAT, HOW, WHEN = "Where to connect", "What to send", "How to send it", "When and how long"
SWEEP = "Sweep over levels"
TELL, INITIALISE = "What to tell", "Initialisation (-i), as pgbench -i"

Database = Annotated[
    Text,
    typer.Argument(
        metavar="[DBNAME]", help="Database to connect to, or a connection string.", show_default=False
    ),
]
Host = Annotated[
    Text, _option("-h", "--host", metavar="HOST", help="Server's host or socket folder.", panel=WHERE)
]
Port = Annotated[Text, _option("-p", "--port", metavar="PORT", help="Server's port.", panel=WHERE)]
User = Annotated[Text, _option("-U", "--username", metavar="USER", help="Role to connect as.", panel=WHERE)]
DatabaseName = Annotated[
    Text, _option("-d", "--dbname", metavar="DBNAME", help="The same as the argument DBNAME.", panel=WHERE)
]
Dsn = Annotated[
    Text,
    _option(
        "--dsn",
        metavar="CONNINFO",
        help="Connection string (URI or key=value; PG*, service files and .pgpass work).",
        panel=WHERE,
    ),
]
Embedded = Annotated[
    bool,
    _flag(
        "--embedded",
        help="Start a PostgreSQL of our own, fill pgbench's tables at -s if a built-in script needs them, "
        "load it, and remove it.",
        panel=WHERE,
    ),
]
PgBin = Annotated[
    Path | None,
    _option("--pg-bin", metavar="DIR", help="With --embedded: start these binaries.", panel=WHERE),
]

Builtin = Annotated[
    Texts,
    _option(
        "-b",
        "--builtin",
        metavar="NAME[@W]",
        help="Add a built-in script with weight W (1); -b list lists them. Default: tpcb-like.",
        panel=WHAT,
    ),
]
File = Annotated[
    Texts,
    _option(
        "-f", "--file", metavar="FILE[@W]", help="Add a script from a file; - reads it here.", panel=WHAT
    ),
]
SkipUpdates = Annotated[
    bool, _flag("-N", "--skip-some-updates", help="The same as -b simple-update.", panel=WHAT)
]
SelectOnly = Annotated[bool, _flag("-S", "--select-only", help="The same as -b select-only.", panel=WHAT)]
Define = Annotated[
    Texts, _option("-D", "--define", metavar="NAME=VALUE", help="Define a variable of scripts.", panel=WHAT)
]
Scale = Annotated[
    Text,
    _option(
        "-s",
        "--scale",
        metavar="NUM",
        help="Scale: of the tables with -i, else of scripts' :scale.",
        panel=WHAT,
    ),
]
ShowScript = Annotated[
    Text, _option("--show-script", metavar="NAME", help="Print a built-in script, then exit.", panel=WHAT)
]

Clients = Annotated[
    Text, _option("-c", "--client", metavar="NUM", help="Number of clients. Default: 1.", panel=HOW)
]
Jobs = Annotated[
    Text, _option("-j", "--jobs", metavar="NUM", help="Number of threads, at most -c. Default: 1.", panel=HOW)
]
Protocol = Annotated[
    Text,
    _option(
        "-M", "--protocol", metavar="simple|extended|prepared", help="How statements are sent.", panel=HOW
    ),
]
Pipeline = Annotated[
    Text,
    _option(
        "--pipeline",
        metavar="DEPTH",
        help="Keep so many transactions under way on each connection, sent without waiting.",
        panel=HOW,
    ),
]
ConnectEach = Annotated[
    bool, _flag("-C", "--connect", help="Open a connection for each transaction.", panel=HOW)
]
MaxTries = Annotated[
    Text,
    _option(
        "--max-tries",
        metavar="NUM",
        help="Tries of a transaction that fails by serialization or deadlock. Default: 1; 0: no bound.",
        panel=HOW,
    ),
]
NoVacuum = Annotated[
    bool, _flag("-n", "--no-vacuum", help="Do not vacuum before a built-in script.", panel=HOW)
]
VacuumAll = Annotated[
    bool, _flag("-v", "--vacuum-all", help="Vacuum all four tables before a built-in script.", panel=HOW)
]
RandomSeed = Annotated[
    Text,
    _option("--random-seed", metavar="NUM|time|rand", help="Seed of everything random.", panel=HOW),
]

Transactions = Annotated[
    Text,
    _option(
        "-t", "--transactions", metavar="NUM", help="Transactions of each client. Default: 10.", panel=WHEN
    ),
]
Time = Annotated[Text, _option("-T", "--time", metavar="SECONDS", help="How long to load.", panel=WHEN)]
Rate = Annotated[
    Text,
    _option(
        "-R",
        "--rate",
        metavar="NUM",
        help="Open loop: so many transactions a second arrive, whatever the server does.",
        panel=WHEN,
    ),
]
ArrivalsOption = Annotated[
    Text,
    _option(
        "--arrivals",
        metavar="poisson|constant|bursts:SIZE|trace:FILE",
        help="How they arrive at -R; a trace has times of its own, in seconds, one a line. Else poisson.",
        panel=WHEN,
    ),
]
MaxClients = Annotated[
    Text,
    _option(
        "--max-clients",
        metavar="NUM",
        help="Open loop: connections may grow to so many. Default: 64, or -c if that is more.",
        panel=WHEN,
    ),
]
LatencyLimit = Annotated[
    Text,
    _option(
        "-L",
        "--latency-limit",
        metavar="MS",
        help="Count transactions over so many ms as late; an open loop skips those so late already.",
        panel=WHEN,
    ),
]

Sweep = Annotated[
    Text,
    _option(
        "--sweep",
        metavar="clients|rate",
        help="Raise the load by itself, from -c or -R on, in visits of -T seconds (2), and say where the "
        "server bends or breaks.",
        panel=SWEEP,
    ),
]
To = Annotated[
    Text,
    _option("--to", metavar="NUM", help="The highest level. Default: 512 clients.", panel=SWEEP),
]
ObjectiveOption = Annotated[
    Text,
    _option(
        "--objective",
        metavar="TEXT",
        help='Find the highest load that holds it: "p99<250ms, errors<0.1%".',
        panel=SWEEP,
    ),
]
Budget = Annotated[
    Text, _option("--budget", metavar="TIME", help="How long to sweep at most. Default: 3min.", panel=SWEEP)
]

ProgressOption = Annotated[
    Text, _option("-P", "--progress", metavar="SECONDS", help="Tell progress every so often.", panel=TELL)
]
ProgressTimestamp = Annotated[
    bool, _flag("--progress-timestamp", help="With -P: Unix time, not time elapsed.", panel=TELL)
]
PerCommand = Annotated[
    bool,
    _flag(
        "-r", "--report-per-command", "--report-latencies", help="Show times of each statement.", panel=TELL
    ),
]
FailuresDetailed = Annotated[
    bool, _flag("--failures-detailed", help="Accepted; failures are always told by SQLSTATE.", panel=TELL)
]
AsJson = Annotated[bool, _flag("--json", help="Print the result as JSON.", panel=TELL)]
GoBench = Annotated[bool, _flag("--go-bench", help="Print the result as benchstat reads it.", panel=TELL)]
Html = Annotated[Path | None, _option("--html", metavar="FILE", help="Write the HTML page here.", panel=TELL)]
HdrLog = Annotated[
    Path | None,
    _option(
        "--hdr-log", metavar="FILE", help="Write histograms by second for HdrHistogram's tools.", panel=TELL
    ),
]
Log = Annotated[bool, _flag("-l", "--log", help="Write a line for each transaction to a file.", panel=TELL)]
LogPrefix = Annotated[
    Text,
    _option(
        "--log-prefix",
        metavar="PREFIX",
        help="Beginning of the log's name. Default: pgbench_log.",
        panel=TELL,
    ),
]
SamplingRate = Annotated[
    Text,
    _option("--sampling-rate", metavar="NUM", help="Part of the transactions logged, 0 to 1.", panel=TELL),
]
AggregateInterval = Annotated[
    Text,
    _option("--aggregate-interval", metavar="SECONDS", help="Log sums over so many seconds.", panel=TELL),
]
RunsFolder = Annotated[
    Path,
    typer.Option(
        "--runs",
        metavar="DIR",
        envvar="UNCORK_RUNS",
        parser=places.place_of_runs,
        help=places.HELP,
        rich_help_panel=TELL,
    ),
]

Initialise = Annotated[
    bool,
    _flag("-i", "--initialize", help="Make and fill pgbench's tables, then exit.", panel=INITIALISE),
]
InitSteps = Annotated[
    Text,
    _option("-I", "--init-steps", metavar="[dtgGvpf]+", help="Steps. Default: dtgvp.", panel=INITIALISE),
]
Fillfactor = Annotated[
    Text,
    _option("-F", "--fillfactor", metavar="NUM", help="Fillfactor of tables, 10 to 100.", panel=INITIALISE),
]
ForeignKeys = Annotated[bool, _flag("--foreign-keys", help="Add foreign keys.", panel=INITIALISE)]
Unlogged = Annotated[bool, _flag("--unlogged-tables", help="Make unlogged tables.", panel=INITIALISE)]
Tablespace = Annotated[
    Text, _option("--tablespace", metavar="NAME", help="Tablespace of tables.", panel=INITIALISE)
]
IndexTablespace = Annotated[
    Text, _option("--index-tablespace", metavar="NAME", help="Tablespace of indexes.", panel=INITIALISE)
]
Partitions = Annotated[
    Text,
    _option("--partitions", metavar="NUM", help="Partitions of pgbench_accounts.", panel=INITIALISE),
]
PartitionMethod = Annotated[
    Text,
    _option("--partition-method", metavar="range|hash", help="How they are cut.", panel=INITIALISE),
]
Quiet = Annotated[bool, _flag("-q", "--quiet", help="Tell less while filling.", panel=INITIALISE)]
