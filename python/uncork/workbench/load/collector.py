"""Send telemetry to an OpenTelemetry collector, by HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from uncork.errors import ConnectError, UsageError

__all__ = ["metrics_address", "send_requests"]

_TIMEOUT_S: Final = 15.0
_MOST_TOLD: Final = 300
_PATH: Final = "/v1/metrics"


def metrics_address(address: str) -> str:
    """Return where metrics are posted: the address with ``/v1/metrics`` where it names no path.

    Raises:
        UsageError: if it is no address of HTTP.
    """
    parts = urlsplit(address)
    try:
        known = bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        known = False
    if parts.scheme not in ("http", "https") or not known:
        raise UsageError(f'"{address}" is no address of a collector; one is such as http://127.0.0.1:4318')
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") or _PATH, fragment=""))


def send_requests(address: str, requests: Iterable[str], headers: Mapping[str, str]) -> int:
    """Post requests one after the other; return how many data points the collector left out.

    Redirects are not followed: what was meant for one host is not sent to another.

    Raises:
        ConnectError: if it cannot be reached, or refuses one.
    """
    opener = urllib.request.build_opener(_NoRedirect)
    rejected = 0
    for body in requests:
        request = urllib.request.Request(  # noqa: S310 -- the caller checked that it is HTTP
            address, body.encode(), {**headers, "content-type": "application/json"}, method="POST"
        )
        try:
            with opener.open(request, timeout=_TIMEOUT_S) as answer:
                rejected += _rejected(answer.read(1 << 20))
        except urllib.error.HTTPError as error:
            told = error.read(_MOST_TOLD).decode("utf-8", "replace").strip()
            raise ConnectError(f"{address} answered {error.code}: {told or error.reason}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            reason = getattr(reason, "strerror", None) or reason
            raise ConnectError(f"cannot reach the collector at {address}: {reason}") from error
    return rejected


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none: the answer is told as an error."""


def _rejected(body: bytes) -> int:
    """Return how many points were left out, as an answer says; it may say nothing, or be no JSON."""
    try:
        return int(json.loads(body)["partialSuccess"]["rejectedDataPoints"])
    except (ValueError, KeyError, TypeError):
        return 0
