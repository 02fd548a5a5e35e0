"""Access checks: the Host header, cross-site requests, tokens, and the keys of forms. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")


def host_is_ours(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header is allowed: an IP address, localhost, or one of `names`.

    A page of another site whose name was made to resolve to this server (DNS rebinding) still sends that
    site's name. An IP address cannot be rebound.
    """
    match = _HOST.fullmatch(host)
    if match is None:
        return False
    name = match[1].strip("[]").rstrip(".").lower()
    if name == "localhost" or name in names:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def is_cross_site(headers: Mapping[str, str]) -> bool:
    """Return whether another site made the browser send this request, from the headers that browsers set."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()


def same(one: str, other: str) -> bool:
    """Compare secrets in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


def bearer(header: str) -> str:
    """Return the token of an Authorization header; empty without one."""
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def signed_in_key(token: str) -> str:
    """Return the cookie's value for a visitor who knows the token. The token cannot be derived from it."""
    return hmac.digest(token.encode(), b"uncork: signed in", "sha256").hex()


def form_key(secret: bytes, visitor: str) -> str:
    """Return the key that a form must send back. It differs for each visitor."""
    return hmac.digest(secret, b"form " + visitor.encode(), hashlib.sha256).hex()


# ---- the settings of a dashboard ----


@dataclass(frozen=True, slots=True)
class Settings:
    """What a dashboard serves, and to whom.

    `names` are allowed host names, besides IP addresses and this machine's own name. If `token` is set, every
    page requires it. `secret` signs forms; a restart invalidates open forms. `ending` is set when serving
    ends, and stops event streams.
    """

    root: Path
    names: frozenset[str] = frozenset()
    token: str | None = None
    port: int = 0
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    ending: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def cookie(self) -> str:
        """Return the cookie's name. It has the port, because cookies of two dashboards share a host."""
        return f"uncork-{self.port}"
