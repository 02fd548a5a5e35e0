"""A load by HTTP: the requests, and what their answers must be.

One operation of such a load is a *request* with its answer. *Streams* are requests in flight at once on one
connection: pipelined in HTTP/1.1, streams in HTTP/2. `uncork.model.load` describes the rest of a load.
"""

from __future__ import annotations

import json
from dataclasses import field
from typing import Literal

from uncork.model.load import Arrivals, LoadPart
from uncork.model.records import Record

HttpVersion = Literal["1.1", "2", "3", "negotiated"]
"""Which version to use: ``negotiated`` is HTTP/2 if the server agrees to it under TLS, else HTTP/1.1."""
OnClose = Literal["reconnect", "stop"]
"""What to do when the server closes a connection."""
BodyKind = Literal["text", "json", "form"]
"""How values are escaped in a body: not at all, as in JSON strings, or as in an HTML form."""
CaptureSource = Literal["json", "header", "regex"]
"""Where in an answer a value is: at a JSON pointer, in a header, or where a regular expression matches."""


class HttpServer(Record):
    """Where requests go. `cacert` is a file of certificate authorities; None uses the operating system's."""

    host: str
    port: int
    tls: bool = False
    verify: bool = True
    cacert: str | None = None

    @property
    def authority(self) -> str:
        """Return the server's name and port, as in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"

    @property
    def place(self) -> str:
        """Return the scheme and authority that begin each URL."""
        return f"http{'s' if self.tls else ''}://{self.authority}"


class Variable(Record):
    """The values of ``{name}``: whole numbers from `first` to `last`, or one of `values`.

    The values are taken in turn by the request's number, or drawn at random; with `per_client` each client
    keeps one value, chosen by the client's number. Variables of the same `group` are columns of one table:
    they take the same row.
    """

    name: str
    first: int = 0
    last: int = 0
    values: tuple[str, ...] = ()
    in_turn: bool = False
    per_client: bool = False
    group: int | None = None


class Capture(Record):
    """A value of an answer that later requests of the same client use as ``{name}``.

    `where` is a JSON pointer, the name of a header, or a regular expression, whose first group counts.
    Without a `default`, requests that use the name fail until an answer has given the value.
    """

    name: str
    source: CaptureSource
    where: str
    default: str | None = None


class Checks(Record):
    """What an answer must be. Only what is given is checked, except that the status must be 200 to 399.

    `headers` are names with a value, or None if any value will do; `json` maps pointers (RFC 6901) to the
    value there, as JSON; `exists` are pointers that must have a value; `contains` are texts in the body;
    `sha256` is the body's digest in hexadecimal digits. Texts in `json` and `contains` may have ``{name}``.
    """

    statuses: tuple[int, ...] = ()
    headers: tuple[tuple[str, str | None], ...] = ()
    size: int | None = None
    sha256: str | None = None
    json: tuple[tuple[str, object], ...] = ()
    exists: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()


class Request(Record):
    """One kind of request, chosen with the probability `weight` / sum of all weights; `name` is unique.

    `path` includes the query.
    """

    name: str
    method: str
    path: str
    weight: int = 1
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    checks: Checks = Checks()
    body_kind: BodyKind = "text"
    captures: tuple[Capture, ...] = ()


class HttpSpec(Record):
    """A load by HTTP to send.

    `operations` (of all clients together) and `duration_ns` exclude each other; one of them is given, except
    for a trace, which may end with its last arrival. For `warmup_ns` before that, the load is sent but not
    counted. A `request_timeout_ns` of None means no limit. Each
    client sends the requests of `login` once, before its first operation. With `cookies` it keeps the cookies
    that answers set. With `in_order` it sends the requests in their order, over and over. `environment` has
    the values of ``${NAME}``, which are secret. For `part`, see `LoadSpec`. With `trace`, six hexadecimal
    digits of the load, each request has a trace of its own (`traceparent`).
    """

    server: HttpServer
    requests: tuple[Request, ...]
    version: HttpVersion = "1.1"
    variables: tuple[Variable, ...] = ()
    clients: int = 1
    max_clients: int | None = None
    streams: int = 1
    threads: int = 1
    seed: int = 1
    arrivals: Arrivals | None = None
    latency_limit_ns: int | None = None
    connect_each: bool = False
    on_close: OnClose = "reconnect"
    operations: int | None = None
    duration_ns: int | None = None
    warmup_ns: int = 0
    request_timeout_ns: int | None = 30 * 10**9
    connect_timeout_ns: int = 10 * 10**9
    progress_s: int | None = None
    login: tuple[Request, ...] = ()
    cookies: bool = False
    in_order: bool = False
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    part: LoadPart | None = None
    trace: str | None = None


def request_text(request: dict[str, object]) -> str:
    """Return a request of a stored plan as text: its request line, headers, body, and checks."""
    headers = request["headers"]
    lines = [f"{request['method']} {request['path']}"]
    if isinstance(headers, list):
        lines += [f"{name}: {value}" for name, value in headers]
    if request.get("body") is not None:
        lines += ["", str(request["body"])]
    elif request.get("body_base64") is not None:
        lines += ["", f"(a binary body, {len(str(request['body_base64'])) * 3 // 4} bytes)"]
    checks = request["checks"]
    if isinstance(checks, dict):
        lines += [f"# {name} must be {json.dumps(value)}" for name, value in checks.items() if value]
    for capture in request["captures"]:  # type: ignore[attr-defined]
        source, where = next(iter(capture["from"].items()))
        lines.append(f"# {{{capture['name']}}} is captured from {source} {where}")
    return "\n".join(lines) + "\n"
