"""Fetch a service's complete answers to a few requests, to compare variants rather than to time them."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from uncork.errors import LoadError
from uncork.model.http_trial import AskedRequest, HttpAnswer
from uncork.model.service import Served
from uncork.model.services.tls import own_service_tls, speaks_only_http2

if TYPE_CHECKING:
    from httpcore2 import ConnectionPool

_SAFE: Final = "!$%&'()*+,-./:;=?@[]_~"
"""Characters of a path that need no escaping, besides letters and digits."""
_OWN: Final = ("connection", "keep-alive", "upgrade")
"""Headers that HTTP/2 does not allow."""
_CLOSED: Final = "Server disconnected"
_SILENTLY: Final = f"{_CLOSED} without"
"""How httpcore says that a service closed the connection, and that it did so without any answer."""


def ask(served: Served, requests: Sequence[AskedRequest], *, timeout_s: float) -> list[HttpAnswer]:
    """Send requests one by one, by HTTP/2 only if need be; return the answers. Raises LoadError."""
    connection = _Connection(served, timeout_s)
    found: list[HttpAnswer] = []
    try:
        for request in requests:
            status, data = connection.answer(request)
            form = _json(data)
            text = _text(data) if form is None else None
            digest = hashlib.sha256(data).hexdigest()
            found.append(HttpAnswer(request.line, status, form, digest, len(data), text))
    finally:
        connection.close()
    return found


class _Connection:
    """One connection to a service, opened anew if the service has closed it or speaks only HTTP/2."""

    def __init__(self, served: Served, timeout_s: float) -> None:
        self._served, self._timeout_s = served, timeout_s
        self._two = self._used = False
        self._pool = self._open()

    def close(self) -> None:
        self._pool.close()

    def answer(self, request: AskedRequest) -> tuple[int, bytes]:
        """Return the status and the body of the answer to a request. Raises LoadError if there is none."""
        import httpcore2  # noqa: PLC0415 -- slow to load, and few commands compare answers

        try:
            try:
                found = self._sent(request)
            except (httpcore2.RemoteProtocolError, httpcore2.NetworkError) as error:
                if not self._may_try_again(error):
                    raise
                self.close()
                self._pool = self._open()
                found = self._sent(request)
        except (httpcore2.TimeoutException, TimeoutError) as error:
            raise self._refused(request, f"no answer within {self._timeout_s:g} s") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError, ValueError) as error:
            closed = "it closed the connection before its answer was complete"
            text = closed if str(error).startswith(_CLOSED) else str(error)
            raise self._refused(request, text or type(error).__name__) from error
        self._used = True
        return found

    def _may_try_again(self, error: Exception) -> bool:
        """Return whether to send a request anew: to a service that closed the connection, or by HTTP/2."""
        from httpcore2 import ReadError, WriteError  # noqa: PLC0415 -- as above

        if isinstance(error, ReadError | WriteError) or str(error).startswith(_SILENTLY):
            return self._used
        if self._used or self._two or not _understands_other(error):
            return False
        self._two = True
        return True

    def _open(self) -> ConnectionPool:
        from httpcore2 import ConnectionPool  # noqa: PLC0415 -- as above

        return ConnectionPool(
            own_service_tls("h2" if self._two else "http/1.1"),
            max_connections=1,
            http1=not self._two,
            http2=self._two,
        )

    def _sent(self, request: AskedRequest) -> tuple[int, bytes]:
        from httpcore2 import URL  # noqa: PLC0415 -- as above

        served, deadline = self._served, time.monotonic() + self._timeout_s
        scheme, target = "https" if served.tls else "http", quote(request.path, safe=_SAFE)
        barred = _OWN if self._two else ()
        timeouts = dict.fromkeys(("connect", "read", "write", "pool"), self._timeout_s)
        with self._pool.stream(
            request.method,
            URL(scheme=scheme, host=served.host, port=served.port, target=target),
            headers=[header for header in request.headers if header[0].lower() not in barred],
            content=None if request.body is None else request.body.encode(),
            extensions={"timeout": timeouts},
        ) as answer:
            return answer.status, b"".join(_before(deadline, answer.iter_stream()))

    def _refused(self, request: AskedRequest, reason: str) -> LoadError:
        return LoadError(f"service {self._served.name}: {request.line}: {reason}")


def _understands_other(error: BaseException) -> bool:
    """Return whether a service answered, but in another version than HTTP/1.1."""
    from httpcore2 import RemoteProtocolError  # noqa: PLC0415 -- as above

    causes = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    return isinstance(error, RemoteProtocolError) or any(map(speaks_only_http2, causes))


def _before(deadline: float, parts: Iterator[bytes]) -> Iterator[bytes]:
    for part in parts:
        if time.monotonic() > deadline:
            raise TimeoutError
        yield part


def _json(data: bytes) -> str | None:
    try:
        return json.dumps(json.loads(data), sort_keys=True, ensure_ascii=False)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return None


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
