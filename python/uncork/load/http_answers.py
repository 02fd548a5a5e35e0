"""Fetch a service's complete answers to a few requests, to compare variants rather than to time them."""

from __future__ import annotations

import hashlib
import http.client
import json
import ssl
import time
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import quote

from uncork.errors import LoadError
from uncork.load.http2_answers import Http2Connection
from uncork.model.http_trial import AskedRequest, HttpAnswer
from uncork.model.service import Served
from uncork.model.services.tls import own_service_tls, speaks_only_http2

_SAFE: Final = "!$%&'()*+,-./:;=?@[]_~"
"""Characters of a path that need no escaping, besides letters and digits."""


def ask(served: Served, requests: Sequence[AskedRequest], *, timeout_s: float) -> list[HttpAnswer]:
    """Send requests one by one, and return their answers.

    Uses HTTP/1.1, or HTTP/2 if the service supports nothing else.

    Raises:
        VersionError: if the service speaks only HTTP/2, and the package h2 is not installed.
        LoadError: if a request gets no answer; the message names the request.
    """
    connection: _Plain | Http2Connection = _Plain(served, timeout_s)
    found: list[HttpAnswer] = []
    try:
        for request in requests:
            try:
                try:
                    status, data = connection.answer(request, _path(request), time.monotonic() + timeout_s)
                except (http.client.BadStatusLine, ssl.SSLError) as error:
                    if found or isinstance(connection, Http2Connection) or not _understands_other(error):
                        raise
                    connection.close()
                    connection = Http2Connection(served, timeout_s=timeout_s)
                    status, data = connection.answer(request, _path(request), time.monotonic() + timeout_s)
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = str(error) or type(error).__name__
                if isinstance(error, TimeoutError):
                    reason = f"no answer within {timeout_s:g} s"
                raise LoadError(f"service {served.name}: {request.line}: {reason}") from error
            digest = hashlib.sha256(data).hexdigest()
            form = _json(data)
            found.append(
                HttpAnswer(
                    request.line, status, form, digest, len(data), _text(data) if form is None else None
                )
            )
    finally:
        connection.close()
    return found


class _Plain:
    """One connection over HTTP/1.1."""

    def __init__(self, served: Served, timeout_s: float) -> None:
        if served.tls:
            tls = own_service_tls("http/1.1")
            self._connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                served.host, served.port, timeout=timeout_s, context=tls
            )
        else:
            self._connection = http.client.HTTPConnection(served.host, served.port, timeout=timeout_s)

    def close(self) -> None:
        self._connection.close()

    def answer(self, request: AskedRequest, path: str, deadline: float) -> tuple[int, bytes]:
        """Send a request. Retry once if the service has closed a kept-alive connection meanwhile."""
        kept = self._connection.sock is not None
        try:
            answer = self._sent(request, path)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            if not kept:
                raise
            self._connection.close()
            answer = self._sent(request, path)
        return answer.status, b"".join(_parts(answer, deadline))

    def _sent(self, request: AskedRequest, path: str) -> http.client.HTTPResponse:
        body = None if request.body is None else request.body.encode()
        self._connection.request(request.method, path, body, dict(request.headers))
        return self._connection.getresponse()


def _understands_other(error: BaseException) -> bool:
    """Return whether a service answered, but in another version than HTTP/1.1."""
    if isinstance(error, http.client.BadStatusLine):
        return not isinstance(error, http.client.RemoteDisconnected)
    return speaks_only_http2(error)


def _path(request: AskedRequest) -> str:
    return quote(request.path, safe=_SAFE)


def _parts(answer: http.client.HTTPResponse, deadline: float) -> Iterator[bytes]:
    """Yield an answer's body as it arrives; raise TimeoutError if the deadline has passed."""
    while part := answer.read1(1 << 16):
        if time.monotonic() > deadline:
            raise TimeoutError
        yield part
    if answer.length:
        raise http.client.IncompleteRead(b"", answer.length)
    answer.read()  # returns nothing, but makes the connection ready for the next request


def _json(data: bytes) -> str | None:
    """Return JSON in a form that does not depend on the order of keys; None if it is not JSON."""
    try:
        return json.dumps(json.loads(data), sort_keys=True, ensure_ascii=False)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
