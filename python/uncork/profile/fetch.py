"""Read a profile from a file, from standard input, or over HTTP, with limits on size and time."""

from __future__ import annotations

import http.client
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO, Final

from uncork.errors import UsageError

_MOST_BYTES: Final = 1 << 30
_MOST_S: Final = 180.0
_SILENCE_S: Final = 60.0
"""How long to wait for a byte, besides the seconds that the address asks for: Go answers only after these."""
_LONGEST_S: Final = 3600.0
_CHUNK: Final = 1 << 20


def fetch(name: str) -> bytes:
    """Return the bytes of a file, of standard input (-), or of a URL.

    Raises:
        UsageError: if it cannot be read, is larger than 1 GB, or takes three minutes longer than the seconds
            that the URL asks for.
    """
    if name == "-":
        return _bounded(sys.stdin.buffer, "standard input", None)
    if is_address(name):
        return _download(name)
    path = Path(name)
    try:
        if path.is_dir():
            raise UsageError(f"{name} is a folder; name a profile in it")
        with path.open("rb") as file:
            return _bounded(file, name, None)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror}") from error


def is_address(name: str) -> bool:
    """Return whether a profile is fetched over HTTP."""
    return urllib.parse.urlsplit(name).scheme in ("http", "https")


def _download(url: str) -> bytes:
    shown = _without_secret(url)
    request = urllib.request.Request(url, headers={"User-Agent": "uncork"})  # noqa: S310 -- http(s) alone gets here
    try:
        asked = seconds_asked(url)
        with urllib.request.urlopen(request, timeout=_SILENCE_S + asked) as answer:  # noqa: S310
            return _bounded(answer, shown, time.monotonic() + _MOST_S)
    except urllib.error.HTTPError as error:
        error.close()
        raise UsageError(f"cannot fetch {shown}: the server answered {error.code} {error.reason}") from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise UsageError(f"cannot fetch {shown}: {reason}") from error


def seconds_asked(url: str) -> float:
    """Return the duration that an address asks for (``?seconds=90``), at most an hour; 0 if it has none."""
    given = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query).get("seconds", ["0"])[-1]
    return min(float(given), _LONGEST_S) if given.isdecimal() else 0.0


def _bounded(source: IO[bytes], name: str, deadline: float | None) -> bytes:
    found = bytearray()
    while chunk := source.read(_CHUNK):
        found += chunk
        if len(found) > _MOST_BYTES:
            raise UsageError(f"{name} is larger than {_MOST_BYTES >> 20} MB, the limit for a profile")
        if deadline is not None and time.monotonic() > deadline:
            raise UsageError(f"{name} did not arrive completely within {_MOST_S:.0f} s")
    return bytes(found)


def _without_secret(url: str) -> str:
    parts = urllib.parse.urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urllib.parse.urlunsplit((parts.scheme, place, parts.path, "", ""))
