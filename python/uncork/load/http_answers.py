"""What a service answers to a few requests, whole: to compare variants, not to time them."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from uncork.errors import LoadError, VersionError
from uncork.model.http_trial import AskedRequest, HttpAnswer
from uncork.model.service import Served

__all__ = ["ask"]

_FRAME: Final = "\x00"
"""How an answer begins that is a frame of HTTP/2: with the first byte of its length. Settings are short."""

_SAFE: Final = "!$%&'()*+,-./:;=?@[]_~"
"""What an address may hold as it is, beside letters and digits."""


def ask(served: Served, requests: Sequence[AskedRequest], *, timeout_s: float) -> list[HttpAnswer]:
    """Send requests one by one over HTTP/1.1, and return what each was answered.

    Raises:
        VersionError: if the service speaks HTTP/2 only.
        LoadError: if a request has no answer; it says which.
    """
    connection = http.client.HTTPConnection(served.host, served.port, timeout=timeout_s)
    found = []
    try:
        for request in requests:
            try:
                found.append(_answer(connection, request))
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, http.client.BadStatusLine) and str(error).startswith(_FRAME):
                    raise VersionError(f"service {served.name} does not speak HTTP/1.1") from error
                told = str(error) or type(error).__name__
                late = f"no answer within {timeout_s:g} s" if isinstance(error, TimeoutError) else told
                raise LoadError(f"service {served.name}: {request.line}: {late}") from error
    finally:
        connection.close()
    return found


def _answer(connection: http.client.HTTPConnection, request: AskedRequest) -> HttpAnswer:
    body = None if request.body is None else request.body.encode()
    headers = dict(request.headers)
    try:
        connection.request(request.method, quote(request.path, safe=_SAFE), body, headers)
        answer = connection.getresponse()
    except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
        # A connection that was kept alive may have been closed meanwhile: ask once more on a new one.
        connection.close()
        connection.request(request.method, quote(request.path, safe=_SAFE), body, headers)
        answer = connection.getresponse()
    data = answer.read()
    return HttpAnswer(
        request=request.line,
        status=answer.status,
        json=_json(data),
        digest=hashlib.sha256(data).hexdigest(),
        size=len(data),
    )


def _json(data: bytes) -> str | None:
    """Return JSON in one form, whatever the order of its keys; None if it is none."""
    try:
        return json.dumps(json.loads(data), sort_keys=True, ensure_ascii=False)
    except (ValueError, UnicodeDecodeError, RecursionError):
        return None
