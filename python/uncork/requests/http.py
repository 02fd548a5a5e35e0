"""What the words after `uncork load http` ask for, or what is wrong with them. Pure.

Files are read through the function that is handed in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from uncork.errors import UsageError
from uncork.model.http import Checks, HttpServer, HttpSpec, HttpVersion, OnClose, Request, Variable
from uncork.model.load import Arrivals
from uncork.model.units import parse_duration
from uncork.requests.sweep import SweepOptions
from uncork.requests.words import (
    MOST,
    read_arrivals,
    read_count,
    read_integer,
    read_number,
    refuse,
)

__all__ = ["HttpOptions", "read_http", "read_pids", "sweep_of_http"]

ReadFile = Callable[[str], bytes]

_MOST_URLS: Final = 64
"""Each address has figures of its own; for more there is -i, whose addresses share theirs."""
_MOST_CONNECTIONS: Final = 64
"""To how many connections a sweep of rates grows by default."""
_LISTED: Final = "url"
"""The variable that stands for the addresses of -i."""


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """What is wanted, unread: a field for each option of `uncork load http` that bears on the load."""

    urls: list[str] | None = None
    input_file: str | None = None
    method: str | None = None
    header: list[str] | None = None
    data: str | None = None
    body: str | None = None
    var: list[str] | None = None
    expect_status: str | None = None
    expect_header: list[str] | None = None
    expect_size: str | None = None
    expect_sha256: str | None = None
    expect_json: list[str] | None = None
    clients: str | None = None
    streams: str | None = None
    threads: str | None = None
    h1: bool = False
    h2: bool = False
    no_tls_proto: str | None = None
    connect_each: bool = False
    on_close: str | None = None
    timeout: str | None = None
    connect_timeout: str | None = None
    cacert: Path | None = None
    insecure: bool = False
    seed: str | None = None
    requests: str | None = None
    duration: str | None = None
    warm_up: str | None = None
    rps: str | None = None
    rate: str | None = None
    arrivals: str | None = None
    max_clients: str | None = None
    latency_limit: str | None = None
    sweep: str | None = None
    to: str | None = None
    objective: str | None = None
    budget: str | None = None
    service_pid: list[str] | None = None
    postgres: str | None = None
    progress: str | None = None
    as_json: bool = False
    go_bench: bool = False


def read_http(asked: HttpOptions, *, read: ReadFile, seed: int) -> HttpSpec:
    """Return what was asked for; `seed` is drawn for a load that names none.

    Raises:
        UsageError: if something cannot be understood, or contradicts something else.
    """
    server, requests, variables = _what(asked, read)
    clients = read_count(asked.clients, "-c/--clients", 1)
    streams = read_count(asked.streams, "-m/--max-concurrent-streams", 1)
    arrivals = _arrivals(asked, clients, read)
    duration = None if asked.duration is None else _time(asked.duration, "-D/--duration")
    operations = read_count(asked.requests, "-n/--requests", None)
    if operations is None and duration is None and (arrivals is None or arrivals.kind != "trace"):
        operations = 1
    most = read_count(asked.max_clients, "--max-clients", None)
    if asked.sweep == "rate" and most is None:
        most = max(_MOST_CONNECTIONS, clients)
    spec = HttpSpec(
        server=server,
        requests=requests,
        version=_version(asked, tls=server.tls),
        variables=variables,
        clients=clients,
        max_clients=most,
        streams=streams,
        threads=min(read_count(asked.threads, "-t/--threads", 1), clients),
        seed=read_count(asked.seed, "--random-seed", seed, 0, 2**64 - 1),
        arrivals=arrivals,
        latency_limit_ns=None if asked.latency_limit is None else _time(asked.latency_limit, "-L", "ms"),
        connect_each=asked.connect_each,
        on_close=_on_close(asked.on_close),
        operations=operations,
        duration_ns=duration,
        warmup_ns=0 if asked.warm_up is None else _time(asked.warm_up, "--warm-up-time"),
        request_timeout_ns=_timeout(asked.timeout),
        connect_timeout_ns=_time(asked.connect_timeout or "10s", "--connect-timeout"),
        progress_s=read_count(asked.progress, "-P/--progress", None),
    )
    refuse(_contradictions(asked, spec))
    return spec


# ---- what to send ----


def _what(asked: HttpOptions, read: ReadFile) -> tuple[HttpServer, tuple[Request, ...], tuple[Variable, ...]]:
    addresses = [_weighted(text) for text in asked.urls or ()]
    listed = () if asked.input_file is None else tuple(_listed(asked.input_file, read))
    if not addresses and not listed:
        raise UsageError(
            "no address is given; write one, such as http://127.0.0.1:8080/, or a file of them (-i)"
        )
    if len(addresses) > _MOST_URLS:
        raise UsageError(
            f"at most {_MOST_URLS} addresses have figures of their own; put them into a file (-i)"
        )
    variables = [_variable(text, read) for text in asked.var or ()]
    body, checks = _body(asked, read), _checks(asked)
    method = (asked.method or ("GET" if body is None else "POST")).upper()
    headers = tuple(_header(text) for text in asked.header or ())
    urls = [*(url for url, _ in addresses), *listed]
    first = _split(next((url for url in urls if "://" in url), urls[0]))
    if not first.scheme:
        raise UsageError(f'"{first.geturl()}" names no server; write http://HOST:PORT{first.path}')
    server = _server(first, asked)
    requests = [
        Request(_path(url, server), method, _path(url, server), weight, headers, body, checks)
        for url, weight in addresses
    ]
    if listed:
        paths = tuple(_path(url, server) for url in listed)
        variables.append(Variable(_LISTED, values=paths, in_turn=True))
        requests.append(Request(asked.input_file or "-", method, f"{{{_LISTED}}}", 1, headers, body, checks))
    names = [one.name for one in variables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the variable {twice} is given twice; leave one out")
    twice = next((one.name for one in requests if [it.name for it in requests].count(one.name) > 1), None)
    if twice is not None:
        raise UsageError(f'"{twice}" is given twice; to send it more often give it a weight ({twice}@2)')
    if not any(one.weight for one in requests):
        raise UsageError("no address has a weight above 0; give one a weight (URL@1)")
    return server, tuple(requests), tuple(variables)


def _weighted(text: str) -> tuple[str, int]:
    """Return an address and its weight: only digits behind an @ in the path are one."""
    found = re.fullmatch(r"(.*/.*)@(\d{1,9})", text)
    return (found[1], int(found[2])) if found and urlsplit(found[1]).path else (text, 1)


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise UsageError(f'"{url}" is no address: {error}') from error


def _server(url: SplitResult, asked: HttpOptions) -> HttpServer:
    shown = f"{url.scheme}://{url.hostname or ''}"
    if url.scheme not in ("http", "https"):
        raise UsageError(f'"{shown}": expected http:// or https://, found "{url.scheme}://"')
    if url.username is not None or url.password is not None:
        raise UsageError(f'"{shown}": leave out user and password, and send a header (-H "Authorization: …")')
    if not url.hostname:
        raise UsageError(f'"{url.geturl()}" names no host')
    try:
        port = url.port
    except ValueError as error:
        raise UsageError(f'"{shown}": the port is no number from 1 to 65535') from error
    tls = url.scheme == "https"
    if not tls and (asked.insecure or asked.cacert is not None):
        raise UsageError("-k and --cacert are about certificates, and http:// has none: use https://")
    if asked.insecure and asked.cacert is not None:
        raise UsageError("-k trusts everybody, --cacert does not: leave one out")
    cacert = None if asked.cacert is None else str(asked.cacert.absolute())
    return HttpServer(url.hostname, port or (443 if tls else 80), tls, not asked.insecure, cacert)


def _path(url: str, server: HttpServer) -> str:
    """Return the path and query of an address, which must be of this server."""
    parts = _split(url)
    if parts.scheme:
        try:
            other = (parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
        except ValueError:
            other = (parts.scheme, parts.hostname, -1)
        if other != ("https" if server.tls else "http", server.host, server.port):
            raise UsageError(
                f'"{url}" is not of {server.place}: a load goes to one server; load each by itself'
            )
    elif not url.startswith(("/", "{")):
        raise UsageError(f'"{url}" is no address: it begins neither with http:// nor with a slash')
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _listed(name: str, read: ReadFile) -> Iterator[str]:
    found = False
    for number, line in enumerate(_text(name, read).splitlines(), start=1):
        word = line.strip()
        if word and not word.startswith("#"):
            found = True
            if not re.match(r"https?://|/", word):
                raise UsageError(f'{name}:{number}: "{word}" is no address; begin it with http:// or a slash')
            yield word
    if not found:
        raise UsageError(f"{name} holds no address; write one a line")


def _variable(text: str, read: ReadFile) -> Variable:
    name, equals, values = text.partition("=")
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not values.lstrip("+"):
        raise UsageError(f'--var "{text}": write NAME=1..1000, NAME=a,b,c or NAME=@FILE')
    in_turn, values = values.startswith("+"), values.removeprefix("+")
    numbers = re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})", values)
    if numbers:
        first, last = int(numbers[1]), int(numbers[2])
        if first > last:
            raise UsageError(f'--var "{text}": {first} is above {last}; swap them')
        return Variable(name, first, last, in_turn=in_turn)
    if values.startswith("@"):
        lines = tuple(line for line in _text(values[1:], read).splitlines() if line)
        if not lines:
            raise UsageError(f"{values[1:]} holds no values for {{{name}}}; write one a line")
        return Variable(name, values=lines, in_turn=in_turn)
    return Variable(name, values=tuple(values.split(",")), in_turn=in_turn)


def _body(asked: HttpOptions, read: ReadFile) -> bytes | None:
    if asked.data is not None and asked.body is not None:
        raise UsageError("-d and --body both give a body: leave one out")
    return read(asked.data) if asked.data is not None else None if asked.body is None else asked.body.encode()


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"-H \"{name}\": write -H 'NAME: VALUE'")
    return name.strip(), value.strip()


def _text(name: str, read: ReadFile) -> str:
    try:
        return read(name).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error


# ---- what answers must be ----


def _checks(asked: HttpOptions) -> Checks:
    statuses = [
        read_integer(word, "--expect-status", 200, 599)
        for word in (asked.expect_status or "").split(",")
        if word
    ]
    if asked.expect_sha256 is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", asked.expect_sha256):
        raise UsageError(f'--expect-sha256 "{asked.expect_sha256}" is not 64 hexadecimal digits (sha256sum)')
    return Checks(
        statuses=tuple(statuses),
        headers=tuple(_expected_header(text) for text in asked.expect_header or ()),
        size=read_count(asked.expect_size, "--expect-size", None, 0, 2**53),
        sha256=asked.expect_sha256,
        json=tuple(_expected_json(text) for text in asked.expect_json or ()),
    )


def _expected_header(text: str) -> tuple[str, str | None]:
    name, colon, value = text.partition(":")
    if not name.strip():
        raise UsageError(f"--expect-header \"{text}\": write 'NAME' or 'NAME: VALUE'")
    return name.strip(), value.strip() if colon else None


def _expected_json(text: str) -> tuple[str, object]:
    pointer, equals, value = text.partition("=")
    if not equals or (pointer and not pointer.startswith("/")):
        raise UsageError(f'--expect-json "{text}": write /POINTER=VALUE, such as /items/0/id=7')
    try:
        return pointer, json.loads(value)
    except ValueError:
        return pointer, value  # a text needs no quotes


# ---- how ----


def _version(asked: HttpOptions, *, tls: bool) -> HttpVersion:
    if asked.no_tls_proto not in (None, "h2c", "http/1.1"):
        raise UsageError(f'-p/--no-tls-proto "{asked.no_tls_proto}": expecting h2c or http/1.1')
    two = asked.h2 or (asked.no_tls_proto == "h2c" and not tls)
    one = asked.h1 or (asked.no_tls_proto == "http/1.1" and not tls)
    if one and two:
        raise UsageError("HTTP/1.1 and HTTP/2 are both demanded: leave one out")
    return "2" if two else "negotiated" if tls and not one else "1.1"


def _on_close(text: str | None) -> OnClose:
    if text not in (None, "reconnect", "stop"):
        raise UsageError(f'--on-close "{text}": expecting reconnect or stop')
    return "stop" if text == "stop" else "reconnect"


def _timeout(text: str | None) -> int | None:
    return (
        None if text is not None and re.fullmatch(r"0+\s*[a-z]*", text) else _time(text or "30s", "--timeout")
    )


def _time(text: str, flag: str, unit: str = "s") -> int:
    """Return nanoseconds; a number without a unit has the given one."""
    bare = re.fullmatch(r"\s*\d+(\.\d+)?\s*", text)
    minutes = re.fullmatch(r"\s*(\d+)m\s*", text)  # as h2load writes it
    try:
        nanoseconds = parse_duration(f"{text}{unit}" if bare else f"{minutes[1]}min" if minutes else text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from error
    if not 0 < nanoseconds <= MOST * 10**9:
        raise UsageError(f"{flag} must be above 0; found {text}")
    return nanoseconds


def _arrivals(asked: HttpOptions, clients: int, read: ReadFile) -> Arrivals | None:
    if asked.rps is not None and asked.rate is not None:
        raise UsageError("--rps is for each client, -R for all: leave one out")
    rate = None
    if asked.rps is not None:
        rate = _rate(asked.rps, "--rps") * clients
    elif asked.rate is not None:
        rate = _rate(asked.rate, "-R/--rate")
    return read_arrivals(
        asked.arrivals,
        rate,
        lambda name: _text(name, read),
        kinds=("constant", "poisson"),
        rates="--rps and -R",
        needed="--rps or -R",
    )


def _rate(text: str, option: str) -> float:
    rate = read_number(text, option)
    if not 0 < rate <= 1e9:
        raise UsageError(f"{option} must be above 0, requests a second; found {text}")
    return rate


def _contradictions(asked: HttpOptions, spec: HttpSpec) -> Iterator[tuple[bool, str]]:
    yield (
        asked.requests is not None and asked.duration is not None,
        "specify either a number of requests (-n) or a duration (-D), not both",
    )
    yield (
        asked.requests is not None and spec.arrivals is None and (spec.operations or 0) < spec.clients,
        f"-n {spec.operations} is below the {spec.clients} connections of -c, which send one each at least",
    )
    yield (
        spec.max_clients is not None and spec.arrivals is None and asked.sweep != "rate",
        "--max-clients is for an open loop, whose connections grow: add --rps or -R, or raise -c",
    )
    yield (
        spec.max_clients is not None and spec.max_clients < spec.clients,
        f"--max-clients {spec.max_clients} is below the {spec.clients} connections of -c: raise it",
    )
    yield (
        spec.connect_each and (spec.streams > 1 or spec.version != "1.1"),
        "-C/--connect is a connection for each request: leave out -m, and use HTTP/1.1 (--h1)",
    )
    yield (
        spec.connect_each and spec.on_close == "stop",
        "-C/--connect closes each connection: leave out --on-close stop",
    )
    yield asked.as_json and asked.go_bench, "--json and --go-bench both print the result: choose one"


# ---- a sweep, and who is looked at ----


def sweep_of_http(asked: HttpOptions, spec: HttpSpec, *, hdr_log: bool) -> SweepOptions:
    """Return what was typed of a sweep: ``-c``, ``-m`` and ``-R`` begin it, ``-D`` is a visit's length."""
    rate = None if spec.arrivals is None else spec.arrivals.rate
    excluded = (
        ("-n/--requests", asked.requests is not None),
        ("--rps", asked.rps is not None),
        ("-R/--rate", asked.sweep != "rate" and (asked.rate is not None or asked.arrivals is not None)),
        ("-C/--connect", asked.sweep == "streams" and asked.connect_each),
        ("--hdr-log", hdr_log),
        ("--go-bench", asked.go_bench),
        ("-P/--progress", asked.progress is not None),
        ("--arrivals trace", spec.arrivals is not None and spec.arrivals.kind == "trace"),
    )
    return SweepOptions(
        asked.sweep,
        asked.to,
        asked.objective,
        asked.budget,
        axes=("clients", "rate", "streams"),
        starts={"clients": float(spec.clients), "rate": rate, "streams": float(spec.streams)},
        visit_ns=None if asked.duration is None else spec.duration_ns,
        visit_option="-D",
        excluded=tuple(option for option, wrong in excluded if wrong),
        seed=spec.seed,
    )


def read_pids(texts: Sequence[str] | None) -> tuple[int, ...]:
    """Return the processes of --service-pid.

    Raises:
        UsageError: if one is no number of a process.
    """
    return tuple(dict.fromkeys(read_integer(text, "--service-pid", 1, 2**22) for text in texts or ()))
