"""Send telemetry to an OpenTelemetry collector by HTTP."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from uncork.errors import ConnectError, UsageError

_TIMEOUT_S: Final = 15.0
_MOST_SHOWN: Final = 300
_PATH: Final = "/v1/metrics"


def metrics_address(address: str) -> str:
    """Return the URL to post metrics to; ``/v1/metrics`` is the default path.

    Raises UsageError if `address` is not an HTTP URL.
    """
    parts = urlsplit(address)
    try:
        known = bool(parts.hostname) and parts.username is None and parts.port != 0
    except ValueError:
        known = False
    if parts.scheme not in ("http", "https") or not known:
        raise UsageError(
            f'"{address}" is not the address of a collector; give one such as http://127.0.0.1:4318'
        )
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") or _PATH, fragment=""))


def send_requests(address: str, requests: Iterable[str], headers: Mapping[str, str]) -> int:
    """Post requests one after another; return how many data points the collector rejected.

    Redirects are not followed, so that data for one host is never sent to another. Raises
    ConnectError if the collector cannot be reached, or refuses a request.
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
            with error:
                text = error.read(_MOST_SHOWN).decode("utf-8", "replace").strip()
            raise ConnectError(f"{address} answered {error.code}: {text or error.reason}") from error
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or error
            reason = getattr(reason, "strerror", None) or reason
            raise ConnectError(f"cannot reach the collector at {address}: {reason}") from error
    return rejected


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Do not follow redirects: the answer is reported as an error."""


def _rejected(body: bytes) -> int:
    """Return how many points an answer reports as rejected; 0 if it does not say, or is not JSON."""
    try:
        return int(json.loads(body)["partialSuccess"]["rejectedDataPoints"])
    except (ValueError, KeyError, TypeError):
        return 0
