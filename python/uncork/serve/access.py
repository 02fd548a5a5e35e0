"""Who may ask, and what a form must bring. Pure."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

__all__ = ["bearer", "form_key", "host_is_ours", "is_cross_site", "same", "signed_in_key"]

_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(\d{1,5}))?")


def host_is_ours(host: str, names: frozenset[str]) -> bool:
    """Say whether a Host header names us: an address, localhost, or one of the names given.

    A page of another site whose name was made to lead here (DNS rebinding) still sends that site's name. An
    address cannot be rebound.
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
    """Say whether another site had a browser send this, by what the browser tells of it."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return True
    origin = headers.get("origin")
    return origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()


def same(one: str, other: str) -> bool:
    """Compare secrets, in a time that tells nothing of them."""
    return hmac.compare_digest(one.encode(), other.encode())


def bearer(header: str) -> str:
    """Return the token of an Authorization header; empty if it has none."""
    kind, _, token = header.partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def signed_in_key(token: str) -> str:
    """Return what the cookie of somebody who knows the token holds; the token cannot be had from it."""
    return hmac.digest(token.encode(), b"uncork: signed in", "sha256").hex()


def form_key(secret: bytes, visitor: str) -> str:
    """Return what a form must bring back, different for each visitor."""
    return hmac.digest(secret, b"form " + visitor.encode(), hashlib.sha256).hex()
