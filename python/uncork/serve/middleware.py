"""Middleware for every page: size limits, the Host header, the token, and response headers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from uncork.serve import access
from uncork.serve.access import Settings
from uncork.serve.metrics import Metrics

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_BODY: Final = 16 * 1024
_MAX_ADDRESS: Final = 2048
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_OPEN: Final = ("/sign-in", "/static/")
"""Paths that need no token."""
_YEAR_S: Final = 365 * 86_400


class Guard:
    """An ASGI application that checks requests before another one; it also counts and times them."""

    def __init__(self, app: App, settings: Settings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["state"].get("new_visitor"):
                    name, visitor = f"{self._settings.cookie}-visitor", scope["state"]["visitor"]
                    cookie = f"{name}={visitor}; Path=/; Max-Age={_YEAR_S}; HttpOnly; SameSite=Lax"
                    headers.append("set-cookie", cookie)
            await send(message)

        scope.setdefault("state", {})
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await refusal(scope, receive, sending)
            else:
                await self._app(scope, _limited(receive), sending)
        finally:
            route = scope.get("endpoint")
            self._metrics.count(
                getattr(route, "__name__", "other"), scope["method"], status, time.perf_counter() - began
            )

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not access.host_is_ours(headers.get("host", ""), self._settings.names):
            return self._refused(
                421, "host", "This host name is not allowed. To allow it: uncork serve --name NAME.\n"
            )
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return self._refused(405, "method", "Only GET, HEAD and POST are supported.\n")
        large = self._too_large(scope, headers)
        if large is not None:
            return large
        cookies = cookie_parser(headers.get("cookie", ""))
        # Each visitor gets a random id, for which forms are signed.
        visitor = cookies.get(f"{self._settings.cookie}-visitor", "")
        new = len(visitor) != 32 or not visitor.isalnum()
        scope["state"] |= {"new_visitor": new, "visitor": secrets.token_hex(16) if new else visitor}
        if scope["method"] == "POST" and access.is_cross_site(headers):
            return self._refused(403, "cross-site", "The form was sent by another site, so it is ignored.\n")
        return self._unknown(scope, headers, cookies)

    def _too_large(self, scope: Scope, headers: Headers) -> Response | None:
        length = headers.get("content-length", "0")
        if len(scope["raw_path"] or b"") + len(scope["query_string"]) > _MAX_ADDRESS:
            return self._refused(414, "address", f"The address is longer than {_MAX_ADDRESS} bytes.\n")
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_BODY:
            return self._refused(431, "headers", f"The headers are longer than {MAX_BODY} bytes.\n")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_BODY:
            return self._refused(413, "size", f"The form is larger than {MAX_BODY} bytes.\n")
        return None

    def _unknown(self, scope: Scope, headers: Headers, cookies: dict[str, str]) -> Response | None:
        token = self._settings.token
        if token is None or scope["path"].startswith(_OPEN):
            return None
        shown = access.bearer(headers.get("authorization", ""))
        if shown:
            known = access.same(shown, token)
            return None if known else self._refused(401, "token", "The token is wrong.\n")
        if access.same(cookies.get(self._settings.cookie, ""), access.signed_in_key(token)):
            return None
        self._metrics.refused["token"] += 1
        if scope["method"] == "POST" or "text/html" not in headers.get("accept", ""):
            return PlainTextResponse(
                "A token is required: Authorization: Bearer TOKEN.\n",
                401,
                # htmx reloads the whole page instead of a part, so that it asks for the token.
                headers={"www-authenticate": "Bearer", "hx-refresh": "true"},
            )
        wanted = scope["path"] + (
            f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else ""
        )
        return RedirectResponse(f"/sign-in?{urlencode({'to': wanted})}", 303)

    def _refused(self, status: int, reason: str, text: str) -> Response:
        self._metrics.refused[reason] += 1
        return PlainTextResponse(text, status, headers={"connection": "close"})


def _limited(receive: Receive) -> Receive:
    seen = 0

    async def receiving() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return message if seen <= MAX_BODY else {"type": "http.disconnect"}

    return receiving
