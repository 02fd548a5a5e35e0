"""The options of `uncork load http`: h2load's, with h2load's meaning, and uncork's own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from uncork.errors import UsageError
from uncork.model.http import OnClose
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.requests.load_options import (
    HOW,
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
from uncork.requests.option import Kind, choice, duration, number, opt, pair, whole
from uncork.requests.part import PartOptions

_what, _how, _when, _sweep = (partial(opt, panel=panel) for panel in (WHAT, HOW, WHEN, SWEEP))
_check, _watch = partial(opt, panel="Expected responses"), partial(opt, panel=WATCH)


def _statuses(value: object, option: str) -> tuple[int, ...]:
    words = (
        value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    )
    return tuple(_STATUS.take(word, option) for word in words if word != "")


def _expected_header(text: str, option: str) -> tuple[str, str | None]:
    name, colon, value = text.partition(":")
    return _taken_header((name, value if colon else None), option)


def _taken_header(entry: tuple[str, str | None], option: str) -> tuple[str, str | None]:
    name, value = entry
    if not name.strip():
        raise UsageError(f"{option} \"{name}:{value or ''}\": write 'NAME' or 'NAME: VALUE'")
    return name.strip(), value.strip() if value else None


def _expected_json(text: str, option: str) -> tuple[str, Any]:
    pointer, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f'{option} "{text}": write /POINTER=VALUE, such as /items/0/id=7')
    try:
        return _taken_json((pointer, json.loads(value)), option)
    except ValueError:
        return _taken_json((pointer, value), option)  # a string needs no quotes


def _taken_json(entry: tuple[str, Any], option: str) -> tuple[str, Any]:
    if entry[0] and not entry[0].startswith("/"):
        raise UsageError(f'{option} "{entry[0]}": write /POINTER=VALUE, such as /items/0/id=7')
    return entry


def _digest(text: str, option: str) -> str:
    if not re.fullmatch(r"[0-9a-fA-F]{64}", text):
        raise UsageError(f'{option} "{text}" is not 64 hexadecimal digits (sha256sum)')
    return text


_STATUS = whole(200, 599)
_TIME, _TIMEOUT, _LATENCY = duration(), duration(zero=True), duration("ms")
_RATE = number(0, 1e9, refusal="{option} must be above 0 requests a second; found {value}")
HEADER = pair(":", "-H \"{name}\": write -H 'NAME: VALUE'")
VARIABLE = pair(
    "=",
    '--var "{value}": write NAME=1..1000, NAME=a,b,c or NAME=@FILE',
    name="[A-Za-z_][A-Za-z0-9_]*",
    value=r"\+*[^+].*",
)


@dataclass(frozen=True, kw_only=True)
class _HttpLoad:
    """What help shows before the options of a load from several machines."""

    urls: list[str] | None = opt(
        "URL[@W]...",
        "Where to send requests; {name} stands for a variable, W is a weight. With -f, where the file's "
        "requests are sent. A requests file or a HAR file is the same as -f.",
        python="Where to send requests; ``{name}`` stands for a variable, ``@3`` at the end is a weight.",
    )
    requests_file: Path | None = _what(
        "-f, --file FILE",
        "Send the requests of FILE: TOML with [[requests]], [[login]] and [variables], or recorded traffic "
        "(HAR).",
        python="A requests file (TOML), or recorded traffic (HAR).",
    )
    write_requests: Path | None = _what(
        "--write-requests FILE", "Write recorded traffic (HAR) as a requests file, and send nothing."
    )
    input_file: str | None = _what(
        "-i, --input-file FILE", "Read addresses from FILE, one a line, used in turn; - is standard input."
    )
    method: str | None = _what("-X, --method METHOD", "Request method. Default: GET, or POST with a body.")
    header: list[tuple[str, str]] | None = _what(
        "-H, --header 'NAME: VALUE'", "Add a request header.", HEADER, python="Request headers."
    )
    data: str | None = _what("-d, --data FILE", "Send the content of FILE as the body.")
    body: str | bytes | None = _what("--body TEXT", "Send TEXT as the body.", python="Request body.")
    var: list[tuple[str, str]] | None = _what(
        "--var NAME=VALUES",
        "Values of {NAME}: 1..1000, a,b,c or @FILE with one a line. They are drawn at random, or used in "
        "turn if VALUES begins with +.",
        VARIABLE,
        python='Values of ``{name}``: ``{"id": "1..1000"}``, ``"a,b,c"`` or ``"@FILE"``.',
    )
    traceparent: bool = _what(
        "--traceparent",
        "Begin a trace with each request: send a W3C traceparent whose trace id begins with 756e636b. "
        "Services that trace record such requests.",
        default=False,
        python="Begin a trace with each request: send a W3C ``traceparent``.",
    )
    expect_status: tuple[int, ...] | None = _check(
        "--expect-status 200,304",
        "Accept only these statuses. Default: 200 to 399.",
        Kind(_statuses, _statuses),
        python='Statuses to accept, such as 200 or ``"200,304"``. Default: 200 to 399.',
    )
    expect_header: list[tuple[str, str | None]] | None = _check(
        "--expect-header 'NAME[: VALUE]'",
        "Require this response header, with this value if one is given.",
        Kind(_expected_header, _taken_header),
        python="Required response headers and their values; an empty value accepts any.",
    )
    expect_size: int | None = _check(
        "--expect-size BYTES",
        "Require a body of this size.",
        whole(0, 2**53),
        python="Required size of the body in bytes.",
    )
    expect_sha256: str | None = _check(
        "--expect-sha256 HEX", "Require a body with this SHA-256 digest.", Kind(_digest, _digest)
    )
    expect_json: list[tuple[str, Any]] | None = _check(
        "--expect-json /POINTER=VALUE",
        "Require a JSON body with this value at a JSON pointer.",
        Kind(_expected_json, _taken_json),
        python='Required values of a JSON body by JSON pointer: ``{"/items/0/id": 1}``.',
    )
    clients: int | None = _how("-c, --clients NUM", "Number of connections. Default: 1.")
    streams: int | None = _how(
        "-m, --max-concurrent-streams NUM",
        "Concurrent requests per connection: streams of HTTP/2 or 3, or HTTP/1.1 pipelining. Default: 1.",
    )
    threads: int | None = _how(
        "-t, --threads NUM",
        "Number of threads, at most -c. Default: 1.",
        python="Number of threads, at most `clients`. Default: 1.",
    )
    h1: bool = _how("--h1", "Use HTTP/1.1, even where TLS would negotiate HTTP/2.", default=False)
    h2: bool = _how("--h2", "Use HTTP/2; without TLS, with prior knowledge (h2c).", default=False)
    h3: bool = _how("--h3, --http3", "Use HTTP/3, over QUIC and UDP; requires https://.", default=False)
    no_tls_proto: str | None = _how(
        "-p, --no-tls-proto h2c|http/1.1",
        "Protocol without TLS, as in h2load: same as --h2 or --h1.",
        choice("h2c", "http/1.1"),
    )
    connect_each: bool = _how(
        "-C, --connect", "Open a new connection for each request (no keep-alive).", default=False
    )
    on_close: OnClose | None = _how(
        "--on-close reconnect|stop", "What to do when the server closes a connection. Default: reconnect."
    )
    timeout: int | None = _how("--timeout TIME", "Request timeout; 0 disables it. Default: 30s.", _TIMEOUT)
    connect_timeout: int | None = _how(
        "--connect-timeout TIME", "Timeout of opening a connection. Default: 10s.", _TIME
    )
    cacert: Path | None = _how(
        "--cacert FILE",
        "Trust the certificate authorities in FILE (PEM).",
        python="File of certificate authorities to trust (PEM).",
    )
    insecure: bool = _how("-k, --insecure", "Do not verify the server's certificate.", default=False)
    random_seed: int | None = _how(
        "--random-seed NUM", "Seed of the random number generator.", whole(0, 2**64 - 1)
    )
    requests: int | None = _when(
        "-n, --requests NUM",
        "Total number of requests across all clients. Default: 1.",
        python="Total number of requests across all clients. Default: 1, unless `duration` is given.",
    )
    duration: int | None = _when(
        "-D, --duration TIME",
        "Duration of the load.",
        _TIME,
        python='Duration of the load, such as ``"30s"``.',
    )
    warm_up: WarmUp = None
    rps: float | None = _when("--rps NUM", "Open loop: start NUM requests a second for each client.", _RATE)
    rate: float | None = _when(
        "-R, --rate NUM",
        "Open loop: start NUM requests a second in total.",
        _RATE,
        python="Open loop: requests started per second, however fast the service answers.",
    )
    arrivals: str | None = _when(
        "--arrivals constant|poisson|bursts:SIZE|trace:FILE",
        "How requests arrive. A trace has its own times, in seconds, one a line. Default: constant.",
        python="How requests arrive: constant, poisson, bursts:SIZE or trace:FILE. Default: constant.",
    )
    max_clients: int | None = _when("--max-clients NUM", "Open loop: maximum number of connections.")
    latency_limit: int | None = _when(
        "-L, --latency-limit TIME",
        "Count requests that take longer as late; an open loop skips those already late.",
        _LATENCY,
        python="Count requests that take longer as late.",
    )
    sweep: str | None = _sweep(
        "--sweep clients|rate|streams",
        "Raise the load step by step, starting from -c, -R or -m, in load steps of -D (default: 2s), and "
        "report where the service saturates or fails, and which resource is the bottleneck.",
    )
    to: float | None = _sweep("--to NUM", "Highest level. Default: 512 clients, 256 streams.")
    objective: Objective = None
    budget: SweepBudget = None
    verify: Verify = False


@dataclass(frozen=True, slots=True)
class HttpOptions(PartOptions, _HttpLoad):
    """Load-test a service over HTTP/1.1, HTTP/2 or HTTP/3.

    Accepts h2load's options. The run is stored; `uncork report` shows it again.
    """

    service_pid: list[int] | None = _watch(
        "--service-pid PID",
        "A process of the service, with its children. Default: local processes that listen on the port.",
        whole(1, 2**22),
        python="Processes of the service. Default: local processes that listen on its port.",
    )
    postgres: str | None = _watch(
        "--postgres CONNINFO",
        "The PostgreSQL server behind the service: record what its sessions run and wait for.",
        python="Connection string of the PostgreSQL server behind the service.",
    )
    advise: Advise = False
    progress: ProgressEvery = None
    as_json: AsJson = False
    go_bench: GoBench = False
    html: Html = None
    hdr_log: HdrLog = None
    runs: RunsOutput = DEFAULT_RUNS
