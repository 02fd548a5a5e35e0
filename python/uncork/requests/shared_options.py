"""Options that several verbs share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from uncork.requests.option import Opt, whole

RUNS_HELP: Final = "Where runs are stored: a folder, or an address such as s3://BUCKET/PREFIX."

Runs = Annotated[Path, Opt("--runs DIR", RUNS_HELP, envvar="UNCORK_RUNS", show_default=True)]
AsJson = Annotated[bool, Opt("--json", "Print JSON.")]
Markdown = Annotated[bool, Opt("--markdown", "Print Markdown.")]
Html = Annotated[Path | None, Opt("--html FILE", "Write the HTML report to FILE.")]
Top = Annotated[int, Opt("--top N", "Number of templates to show in the terminal. Default: 10.")]
Full = Annotated[bool, Opt("--full", "Show all tables in the terminal.")]
Quiet = Annotated[bool, Opt("-q, --quiet", "Do not report progress.")]


CONNECT: Final = "Where to connect"

ServerHost = Annotated[str | None, Opt("-h, --host HOST", "Server host or socket directory.", panel=CONNECT)]
WatchedPort = Annotated[int | None, Opt("-p, --port PORT", "Server port.", whole(1, 65535), CONNECT)]
"""The port of a server that a verb connects to; verbs that can start a server have `ServerPort`."""
ServerUser = Annotated[str | None, Opt("-U, --username USER", "Role to connect as.", panel=CONNECT)]
DatabaseName = Annotated[
    str | None, Opt("-d, --dbname DBNAME", "Database to connect to, or a connection string.", panel=CONNECT)
]
AskPassword = Annotated[
    bool,
    Opt(
        "-W, --password",
        "Ask for the password on the terminal; it is never stored.",
        panel=CONNECT,
    ),
]
NeverAsk = Annotated[bool, Opt("-w, --no-password", "Never ask for a password (the default).", panel=CONNECT)]
ServerDsn = Annotated[
    str | None,
    Opt(
        "--dsn CONNINFO",
        "Measure on this running server, in databases created for the run: a URI or key=value pairs. PG* "
        "variables, service files and .pgpass apply.",
        panel=CONNECT,
        python="Connection string of a running server to measure on. Default: start a server.",
    ),
]
ServerBinaries = Annotated[
    Path | None,
    Opt(
        "--pg-bin DIR",
        "Start the server from the PostgreSQL binaries in DIR instead of the bundled ones.",
        panel=CONNECT,
        python="Folder of the PostgreSQL binaries to start. Default: the bundled ones.",
    ),
]
ServerPort = Annotated[
    int | None,
    Opt(
        "-p, --port PORT",
        "Port of the running server that -h, -U or -d names; otherwise TCP port of the started server. "
        "Default: a free port.",
        whole(1024, 65535),
        CONNECT,
        python="TCP port of the started server. Default: a free port.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class WatchedServer:
    """The options that name a running server as psql's do."""

    host: ServerHost = None
    port: WatchedPort = None
    user: ServerUser = None
    database_name: DatabaseName = None
    password: AskPassword = False
    no_password: NeverAsk = False


@dataclass(frozen=True, kw_only=True)
class MeasuredServer:
    """The options of a verb that measures on a running server, or starts one."""

    dsn: ServerDsn = None
    host: ServerHost = None
    user: ServerUser = None
    database_name: DatabaseName = None
    password: AskPassword = False
    no_password: NeverAsk = False
    pg_bin: ServerBinaries = None
    port: ServerPort = None


ServerNames = WatchedServer | MeasuredServer
