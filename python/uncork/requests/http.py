"""Turn the options of `uncork load http` into a load, or refuse them. Pure.

Files are read through a function that the caller passes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from uncork.errors import UsageError
from uncork.model.http import Checks, HttpServer, HttpSpec, HttpVersion, Request, Variable
from uncork.model.load import Arrivals, ClusterRequest
from uncork.model.records import build_from
from uncork.requests.http_files.http_file import described_requests, file_and_urls, missing_server
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import SweepRequest
from uncork.requests.part import (
    advise_contradictions,
    part_given,
    read_arrivals,
    read_cluster,
    read_part,
    refuse,
    warm_up_contradictions,
)
from uncork.requests.sweep import SweepOptions, most_clients

ReadFile = Callable[[str], bytes]

_MOST_URLS: Final = 64
"""Addresses that each get their own metrics; the addresses of -i share theirs."""
_MOST_CONNECTIONS: Final = 64
"""Default connection limit of a sweep over rates."""
_TIMEOUT_NS: Final = 30_000_000_000
_CONNECT_TIMEOUT_NS: Final = 10_000_000_000
_LISTED: Final = "url"
"""The variable that holds the addresses of -i."""


@dataclass(frozen=True, slots=True)
class _Sent:
    server: HttpServer
    requests: tuple[Request, ...]
    variables: tuple[Variable, ...]
    login: tuple[Request, ...] = ()
    cookies: bool = False
    in_order: bool = False
    environment: tuple[tuple[str, str], ...] = ()


def read_http(
    options: HttpOptions, *, read: ReadFile, seed: int, environment: Mapping[str, str] | None = None
) -> HttpSpec:
    """Return the load that the options describe; `seed` is used unless the options name one.

    `environment` has the values of ``${NAME}`` in a requests file.

    Raises:
        UsageError: if an option is invalid or contradicts another.
        SpecError: if a requests file is not valid.
    """
    file, urls = file_and_urls(options)
    if options.write_requests is not None:
        raise UsageError("--write-requests sends nothing; leave it out to send the load")
    sent = (
        _what(options, urls, read) if file is None else _of_file(file, urls, options, read, environment or {})
    )
    clients = options.clients or 1
    arrivals = _arrivals(options, clients, read)
    operations, most = options.requests, options.max_clients
    if operations is None and options.duration is None and (arrivals is None or arrivals.kind != "trace"):
        operations = 1
    if options.sweep == "rate" and most is None:
        most = max(_MOST_CONNECTIONS, clients)
    spec = build_from(
        HttpSpec,
        sent,
        version=_version(options, tls=sent.server.tls),
        clients=clients,
        max_clients=most,
        streams=options.streams or 1,
        threads=min(options.threads or 1, clients),
        seed=seed if options.random_seed is None else options.random_seed,
        arrivals=arrivals,
        latency_limit_ns=options.latency_limit,
        connect_each=options.connect_each,
        on_close=options.on_close or "reconnect",
        operations=operations,
        duration_ns=options.duration,
        warmup_ns=options.warm_up or 0,
        request_timeout_ns=_TIMEOUT_NS if options.timeout is None else options.timeout or None,
        connect_timeout_ns=options.connect_timeout or _CONNECT_TIMEOUT_NS,
        progress_s=options.progress,
        trace=_trace(options, seed) if options.traceparent else None,
        part=read_part(
            options,
            clients=clients,
            arrivals=arrivals,
            operations=operations,
            read_files=(options.input_file, options.data),
        ),
    )
    refuse(_contradictions(options, spec))
    refuse(warm_up_contradictions(spec))
    return spec


def _trace(options: HttpOptions, seed: int) -> str:
    """Return the digits of the load in its traces. Parts of one load, on several machines, share them."""
    if options.random_seed is not None and (options.shard is not None or options.nodes is not None):
        seed = options.random_seed
    return hashlib.sha256(str(seed).encode()).hexdigest()[:6]


# ---- what to send ----


def _of_file(
    file: Path, urls: list[str], options: HttpOptions, read: ReadFile, environment: Mapping[str, str]
) -> _Sent:
    found = described_requests(file, options, read=read, environment=environment)
    if len(urls) > 1:
        raise UsageError(f"{file} has the requests, so at most one address can be given: where to send them")
    targets = [request.path for request in (*found.login, *found.requests)]
    base = urls[0] if urls else found.base_url
    first = base or next((target for target in targets if "://" in target), None)
    if first is None:
        raise missing_server(str(file))
    _refuse_without_scheme(first)
    server, prefix = _server(_split(first), options), _split(base or "").path.rstrip("/")

    def placed(request: Request) -> Request:
        path = request.path if "://" in request.path else f"{prefix}{request.path}"
        return replace(request, path=_path(path, server))

    variables = [_variable(name, values, read) for name, values in options.var or ()]
    given = {variable.name for variable in variables}
    return _Sent(
        server,
        tuple(placed(request) for request in found.requests),
        (*variables, *(variable for variable in found.variables if variable.name not in given)),
        tuple(placed(request) for request in found.login),
        found.cookies,
        found.in_order,
        found.environment,
    )


def _what(options: HttpOptions, urls: list[str], read: ReadFile) -> _Sent:
    addresses = [_weighted(text) for text in urls]
    listed = () if options.input_file is None else tuple(_listed(options.input_file, read))
    if not addresses and not listed:
        raise UsageError(
            "no address is given; write one, such as http://127.0.0.1:8080/, a file of addresses (-i), or a "
            "requests file (-f)"
        )
    if len(addresses) > _MOST_URLS:
        raise UsageError(f"at most {_MOST_URLS} addresses can be given; put them into a file (-i)")
    variables = [_variable(name, values, read) for name, values in options.var or ()]
    body, checks = _body(options, read), _checks(options)
    method = (options.method or ("GET" if body is None else "POST")).upper()
    headers = tuple(options.header or ())
    urls = [*(url for url, _ in addresses), *listed]
    first = next((url for url in urls if "://" in url), urls[0])
    _refuse_without_scheme(first)
    server = _server(_split(first), options)
    requests = [
        Request(_path(url, server), method, _path(url, server), weight, headers, body, checks)
        for url, weight in addresses
    ]
    if listed:
        paths = tuple(_path(url, server) for url in listed)
        variables.append(Variable(_LISTED, values=paths, in_turn=True))
        requests.append(
            Request(options.input_file or "-", method, f"{{{_LISTED}}}", 1, headers, body, checks)
        )
    names = [variable.name for variable in variables]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the variable {twice} is given twice; leave one out")
    twice = next(
        (request.name for request in requests if [it.name for it in requests].count(request.name) > 1), None
    )
    if twice is not None:
        raise UsageError(f'"{twice}" is given twice; to send it more often give it a weight ({twice}@2)')
    if not any(request.weight for request in requests):
        raise UsageError("no address has a weight above 0; give one a weight (URL@1)")
    return _Sent(server, tuple(requests), tuple(variables))


def _weighted(text: str) -> tuple[str, int]:
    """Return an address and its weight: digits after an @ in the path."""
    found = re.fullmatch(r"(.*/.*)@(\d{1,9})", text)
    return (found[1], int(found[2])) if found and urlsplit(found[1]).path else (text, 1)


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise UsageError(f'invalid address "{url}": {error}') from error


def _refuse_without_scheme(url: str) -> None:
    """Refuse a path, and an address without http://, with the address to write instead."""
    if "://" in url:
        return
    if url.startswith(("/", "?")):
        raise UsageError(f'"{url}" names no server; write http://HOST:PORT{url}')
    host, slash, path = url.partition("/")
    host = host.rpartition("@")[2]  # without a password
    raise UsageError(f'"{host}{slash}{path}" has no scheme; write http://{host}/{path}')


def _server(url: SplitResult, options: HttpOptions) -> HttpServer:
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
        raise UsageError(f'"{shown}": the port must be a number from 1 to 65535') from error
    tls = url.scheme == "https"
    if not tls and (options.insecure or options.cacert is not None):
        raise UsageError("-k and --cacert require TLS: use https://")
    if options.insecure and options.cacert is not None:
        raise UsageError("-k disables verification, --cacert requires it: leave one out")
    cacert = None if options.cacert is None else str(options.cacert.absolute())
    return HttpServer(url.hostname, port or (443 if tls else 80), tls, not options.insecure, cacert)


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
                f'"{url}" is not on {server.place}: a load goes to one server; run one load per server'
            )
    elif not url.startswith(("/", "{")):
        raise UsageError(f'invalid address "{url}": it must begin with http:// or a slash')
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def _listed(name: str, read: ReadFile) -> Iterator[str]:
    found = False
    for number, line in enumerate(_text(name, read).splitlines(), start=1):
        word = line.strip()
        if word and not word.startswith("#"):
            found = True
            if not re.match(r"https?://|/", word):
                raise UsageError(
                    f'{name}:{number}: invalid address "{word}"; it must begin with http:// or a slash'
                )
            yield word
    if not found:
        raise UsageError(f"{name} contains no addresses; write one per line")


def _variable(name: str, values: str, read: ReadFile) -> Variable:
    in_turn, values = values.startswith("+"), values.removeprefix("+")
    numbers = re.fullmatch(r"(\d{1,18})\.\.(\d{1,18})", values)
    if numbers:
        first, last = int(numbers[1]), int(numbers[2])
        if first > last:
            raise UsageError(f'--var "{name}={values}": {first} is above {last}; swap them')
        return Variable(name, first, last, in_turn=in_turn)
    if values.startswith("@"):
        lines = tuple(line for line in _text(values[1:], read).splitlines() if line)
        if not lines:
            raise UsageError(f"{values[1:]} contains no values for {{{name}}}; write one per line")
        return Variable(name, values=lines, in_turn=in_turn)
    return Variable(name, values=tuple(values.split(",")), in_turn=in_turn)


def _body(options: HttpOptions, read: ReadFile) -> bytes | None:
    if options.data is not None and options.body is not None:
        raise UsageError("-d and --body both give a body: leave one out")
    if options.data is not None:
        return read(options.data)
    return options.body.encode() if isinstance(options.body, str) else options.body


def _text(name: str, read: ReadFile) -> str:
    try:
        return read(name).decode()
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error


# ---- what answers must be ----


def _checks(options: HttpOptions) -> Checks:
    return Checks(
        statuses=options.expect_status or (),
        headers=tuple(options.expect_header or ()),
        size=options.expect_size,
        sha256=options.expect_sha256,
        json=tuple(options.expect_json or ()),
    )


# ---- how ----


def _version(options: HttpOptions, *, tls: bool) -> HttpVersion:
    two = options.h2 or (options.no_tls_proto == "h2c" and not tls)
    one = options.h1 or (options.no_tls_proto == "http/1.1" and not tls)
    if one + two + options.h3 > 1:
        raise UsageError("several versions of HTTP are requested: leave all but one out")
    if options.h3 and not tls:
        raise UsageError("--h3: HTTP/3 is always encrypted; write https:// instead of http://")
    if options.h3:
        return "3"
    return "2" if two else "negotiated" if tls and not one else "1.1"


def _arrivals(options: HttpOptions, clients: int, read: ReadFile) -> Arrivals | None:
    if options.rps is not None and options.rate is not None:
        raise UsageError("--rps is a rate per client, -R the total: leave one out")
    rate = options.rate
    if options.rps is not None:
        rate = options.rps * clients
    return read_arrivals(
        options.arrivals,
        rate,
        lambda name: _text(name, read),
        kinds=("constant", "poisson"),
        rates="--rps and -R",
        needed="--rps or -R",
    )


def _contradictions(options: HttpOptions, spec: HttpSpec) -> Iterator[str]:
    if options.requests is not None and options.duration is not None:
        yield "specify either a number of requests (-n) or a duration (-D), not both"
    if options.requests is not None and spec.arrivals is None and (spec.operations or 0) < spec.clients:
        below = f"below the {spec.clients} connections of -c"
        yield f"-n {spec.operations} is {below}, which send at least one each"
    if spec.max_clients is not None and spec.arrivals is None and options.sweep != "rate":
        yield "--max-clients requires an open loop: add --rps or -R, or raise -c"
    if spec.max_clients is not None and spec.max_clients < spec.clients:
        yield f"--max-clients {spec.max_clients} is below the {spec.clients} connections of -c: raise it"
    if spec.connect_each and (spec.streams > 1 or spec.version != "1.1"):
        yield "-C/--connect opens a connection for each request: leave out -m, and use HTTP/1.1 (--h1)"
    if spec.connect_each and spec.on_close == "stop":
        yield "-C/--connect closes each connection: leave out --on-close stop"
    if options.as_json and options.go_bench:
        yield "--json and --go-bench both print the result: choose one"
    yield from advise_contradictions(options, spec)
    if options.advise and options.postgres is None:
        yield "--advise requires --postgres CONNINFO, the database behind the service"


# ---- a sweep ----


def sweep_of_http(options: HttpOptions, spec: HttpSpec) -> SweepOptions:
    """Return the sweep's options: ``-c``, ``-m`` and ``-R`` start it, ``-D`` is the length of a load step."""
    rate = None if spec.arrivals is None else spec.arrivals.rate
    excluded = (
        ("-n/--requests", options.requests is not None),
        ("--rps", options.rps is not None),
        ("-R/--rate", options.sweep != "rate" and (options.rate is not None or options.arrivals is not None)),
        ("-C/--connect", options.sweep == "streams" and options.connect_each),
        ("--hdr-log", options.hdr_log is not None),
        ("--go-bench", options.go_bench),
        ("-P/--progress", options.progress is not None),
        *((name, True) for name in part_given(options)),
        ("--on-lost", options.on_lost is not None),
        ("--arrivals trace", spec.arrivals is not None and spec.arrivals.kind == "trace"),
    )
    return SweepOptions(
        options.sweep,
        options.to,
        options.objective,
        options.budget,
        axes=("clients", "rate", "streams"),
        starts={"clients": float(spec.clients), "rate": rate, "streams": float(spec.streams)},
        step_ns=None if options.duration is None else spec.duration_ns,
        step_option="-D",
        excluded=tuple(option for option, wrong in excluded if wrong),
        seed=spec.seed,
        verify=options.verify,
    )


# ---- a cluster ----


def cluster_of_http(
    options: HttpOptions, spec: HttpSpec, sweep: SweepRequest | None = None
) -> ClusterRequest | None:
    """Return the nodes that send the load, or the steps of a sweep; None if this machine sends it.

    Raises UsageError if a load from nodes cannot be as the options ask.
    """
    watched = "nodes watch only themselves; run `uncork profile db` beside the load"
    return read_cluster(
        options,
        clients=spec.clients if sweep is None else most_clients(sweep, spec.clients),
        arrivals=spec.arrivals,
        operations=spec.operations if sweep is None else None,
        excluded=(
            f"{option}: {remedy}"
            for option, given, remedy in (
                ("--service-pid", bool(options.service_pid), "its processes run on one machine only"),
                ("--postgres", options.postgres is not None, watched),
            )
            if given
        ),
    )
