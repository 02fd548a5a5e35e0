"""Read profiles of any tool as folded stacks, sum up their frames, and write them for other tools."""

from __future__ import annotations

import http.client
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO, Any, Final, Literal

import pyarrow as pa

from uncork import _native
from uncork.errors import UsageError
from uncork.model.records import Record
from uncork.model.results.stacks import ProfileFormat


class Imported(Record):
    """An imported profile: `stacks` has measure, pid, process, route, time_ns, stack and value.

    `measures` are pairs of name and unit; `default` is the index of the profile's main measure.
    """

    format: ProfileFormat
    measures: tuple[tuple[str, str], ...]
    default: int
    stacks: pa.Table


class FrameSums(Record):
    """The sums of stacks: the total, the time in the kernel, frames, and entries into the kernel.

    `frames` have name, kernel, own, total, own_before and total_before. `entries` have user, caller, kernel
    and value, the largest first. Pairs are (now, before).
    """

    total: tuple[int, int]
    kernel: tuple[int, int]
    frames: tuple[dict[str, Any], ...]
    entries: tuple[dict[str, Any], ...]


def read_profile(
    data: bytes, name: str, *, format: ProfileFormat | None = None, times: bool = False
) -> Imported:
    """Read a profile; `name` is its name in errors. `times` keeps the samples of perf script separate.

    Raises UsageError if it is not a profile, or damaged; the message has the line or the byte.
    """
    try:
        facts, stacks = _native.read_stacks(data, format, times)
    except ValueError as error:
        line, _, problem = str(error).removeprefix("line ").partition(": ")
        place = f"{name}:{line}: {problem}" if str(error).startswith("line ") else f"{name}: {error}"
        raise UsageError(place) from error
    read = json.loads(facts)
    measures = tuple((measure["name"], measure["unit"]) for measure in read["measures"])
    return Imported(read["format"], measures, read["default"], pa.table(stacks))


def beside(now: pa.Table, before: pa.Table | None) -> pa.Table:
    """Return stacks with their values now and before; without `before`, only now."""
    now = now.select(["stack", "value"])
    if before is None:
        return now
    zeros = pa.array([0] * len(before), pa.int64())
    later = now.append_column("before", pa.array([0] * len(now), pa.int64()))
    earlier = pa.table({"stack": before["stack"], "value": zeros, "before": before["value"]})
    return pa.concat_tables([later, earlier.cast(later.schema)])


def sum_frames(stacks: pa.Table) -> FrameSums:
    """Add up the frames of stacks, as `beside` returns them."""
    totals, frames, entries = _native.sum_stacks(stacks)
    sums = json.loads(totals)
    return FrameSums(
        tuple(sums["total"]),
        tuple(sums["kernel"]),
        tuple(pa.table(frames).to_pylist()),
        tuple(pa.table(entries).to_pylist()),
    )


def write_profile(
    stacks: pa.Table, format: Literal["folded", "speedscope", "pprof"], *, name: str, measure: str, unit: str
) -> bytes:
    """Return stacks in another tool's format."""
    return _native.write_stacks(stacks.select(["stack", "value"]), format, name, measure, unit)


# ---- profiles in files and at addresses ----

_MOST_BYTES: Final = 1 << 30
_MOST_S: Final = 180.0
_SILENCE_S: Final = 60.0
"""How long to wait for a byte, besides the seconds that the address asks for: Go answers only after these."""
_LONGEST_S: Final = 3600.0
_CHUNK: Final = 1 << 20


def fetch(name: str) -> bytes:
    """Return the bytes of a file, of standard input (-), or of a URL.

    Raises UsageError if it cannot be read, is larger than 1 GB, or takes three minutes longer than the
    seconds that the URL asks for.
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
    parts = urllib.parse.urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    shown = urllib.parse.urlunsplit((parts.scheme, place, parts.path, "", ""))  # without secrets
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
