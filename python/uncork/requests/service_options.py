"""The options of `uncork profile service`, and the profile that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.model.records import build_from
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.requests.connection import AskPassword, named, refuse_asking, watched_server
from uncork.requests.http import read_http
from uncork.requests.http_options import HEADER, VARIABLE, HttpOptions
from uncork.requests.jobs import ServiceJob
from uncork.requests.load_options import HOW, WHAT
from uncork.requests.option import Location, duration, opt, whole
from uncork.requests.part import local_logs
from uncork.requests.shared_options import (
    AsJson,
    Full,
    Html,
    Markdown,
    Quiet,
    Runs,
    WatchedServer,
)

_what, _how, _watch = partial(opt, panel=WHAT), partial(opt, panel=HOW), partial(opt, panel="What to watch")
_TWENTY_S: Final = 20_000_000_000
_LEAST_NS: Final = 4_000_000_000
_CLIENTS: Final = 8


@dataclass(frozen=True, kw_only=True)
class _SentAndWatched:
    """What help shows before the server."""

    urls: list[str] | None = opt(
        "URL[@W]...", "Where to send requests; {name} stands for a variable, W is a weight."
    )
    requests_file: Path | None = _what(
        "-f, --file FILE",
        "Send the requests of FILE: TOML with [[requests]], [[login]] and [variables], or recorded traffic "
        "(HAR), as `uncork load http` does.",
        python="A requests file (TOML), or recorded traffic (HAR).",
    )
    postgres: str | None = _watch(
        "--postgres CONNINFO",
        "The PostgreSQL server behind the service; -h, -p, -U and -d name it, too.",
        python="Connection string of the PostgreSQL server behind the service.",
    )


@dataclass(frozen=True, slots=True)
class ServiceOptions(WatchedServer, _SentAndWatched):
    """Find the bottleneck of a service: send requests, and watch service, database and machine at once.

    Reports which request sends which statements, where the requests pass their time, and which process and
    function works. It changes nothing in the database. The run is stored; `uncork report` shows it again.
    """

    pids: list[int] | None = _watch(
        "--pid PID",
        "A process of the service, with its children. Default: local processes that listen on the port.",
        whole(1, 2**22),
        python="Processes of the service. Default: local processes that listen on its port.",
    )
    logs: list[Location] | None = _watch(
        "--logs FILE",
        "A log of the database, for the time of the profile: a file, glob or folder; repeatable.",
        python="Logs of the database, for the time of the profile: files, globs and folders.",
    )
    pooler: str | None = _watch(
        "--pooler CONNINFO",
        "The console of the PgBouncer between service and database (dbname=pgbouncer), to see how long "
        "requests wait for its connections.",
        python="Connection string of the console of the PgBouncer between service and database.",
    )
    no_code: bool = _watch("--no-code", "Do not record the functions of the service.", default=False)
    watch_only: bool = _watch(
        "--watch-only", "Send no requests: only watch the traffic that is there.", default=False
    )
    lasting: int = opt("--for TIME", "Duration of the profile. Default: 20s.", duration(), default=_TWENTY_S)
    clients: int = _how("-c, --clients NUM", "Number of connections. Default: 8.", whole(1), default=_CLIENTS)
    method: str | None = _what("-X, --method METHOD", "Request method. Default: GET, or POST with a body.")
    header: list[tuple[str, str]] | None = _what(
        "-H, --header 'NAME: VALUE'", "Add a request header.", HEADER, python="Request headers."
    )
    body: str | bytes | None = _what("--body TEXT", "Send TEXT as the body.", python="Request body.")
    var: list[tuple[str, str]] | None = _what(
        "--var NAME=VALUES",
        "Values of {NAME}: 1..1000, a,b,c or @FILE with one a line.",
        VARIABLE,
        python='Values of ``{name}``: ``{"id": "1..1000"}``, ``"a,b,c"`` or ``"@FILE"``.',
    )
    traceparent: bool = _what(
        "--traceparent",
        "Begin a trace with each request (W3C traceparent). If the service writes it into comments of "
        "statements, --logs then shows exactly which request sends which statement.",
        default=False,
    )
    h2: bool = _how("--h2", "Use HTTP/2; without TLS, with prior knowledge (h2c).", default=False)
    h3: bool = _how("--h3, --http3", "Use HTTP/3, over QUIC and UDP; requires https://.", default=False)
    insecure: bool = _how("-k, --insecure", "Do not verify the server's certificate.", default=False)
    top: int = opt("--top N", "Number of functions to show in the terminal. Default: 5.", default=5)
    full: Full = False
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS


def service_job(
    options: ServiceOptions,
    *,
    read: Callable[[str], bytes],
    environment: Mapping[str, str],
    seed: int,
    command: str,
    ask: AskPassword = lambda _: None,
) -> ServiceJob:
    """Return the profile that the options ask for.

    `read` reads a file, `environment` has the values of ``${NAME}`` in a requests file, and
    `command` repeats the profile. `ask` asks for a password.

    Raises:
        UsageError: if an option is invalid or contradicts another.
        SpecError: if a requests file is not valid.
    """
    if options.lasting < _LEAST_NS:
        raise UsageError("--for: a profile needs at least 4s, to send each request alone and all together")
    connects = options.postgres is not None or named(options)
    if options.watch_only and not connects:
        raise UsageError("--watch-only: name the database to watch with --postgres or -d")
    refuse_asking(options, connects=connects)
    load = build_from(HttpOptions, options, duration=options.lasting)
    spec = read_http(load, read=read, seed=seed, environment=environment)
    return ServiceJob(
        spec=spec,
        postgres=watched_server(options, options.postgres, ask).address() if connects else None,
        pids=tuple(dict.fromkeys(options.pids or ())),
        seconds=options.lasting / 1e9,
        send=not options.watch_only,
        code=not options.no_code,
        command=command,
        logs=local_logs(options.logs or [], "profile"),
        pooler=options.pooler,
    )
