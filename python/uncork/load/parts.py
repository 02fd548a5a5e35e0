"""What a part of a load tells the core, and the lease that lets it continue."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uncork import _native
from uncork.model.load import LoadPart

LEASE_NS: Final = 5_000_000_000
"""A load ends this long after the last renewal of its lease."""
_LOOK_S: Final = 0.1
"""How often a file is checked for a renewal."""

Lease = _native.Lease
"""A lease: `renew` lets the load go on for another `LEASE_NS`. Any thread may call it."""


@dataclass(frozen=True, slots=True)
class PartControl:
    """How a coordinator steers a part that this process sends.

    `await_start` is called when the part is prepared. It waits for the start time, and returns it in Unix
    nanoseconds. `lease` is renewed by whoever hears from the coordinator. Parts in one process share
    `clock_offset_ns`, by how much the wall clock was ahead of the monotonic one: then they start at the same
    instant, whatever happens to the wall clock. Once `stopped` returns true, the part ends as by Ctrl-C.
    """

    lease: Lease
    await_start: Callable[[], int]
    clock_offset_ns: int | None = None
    stopped: Callable[[], bool] | None = None


def part_plan(part: LoadPart | None) -> dict[str, Any]:
    """Return a part of a load in the core's format, whose times are on the clock of this machine."""
    if part is None:
        return {}
    return {
        "index": part.number - 1,
        "count": part.count,
        "start_at_ns": _monotonic_start_ns(part),
        "lease_ns": None if part.lease is None else LEASE_NS,
        "reservations": part.reservations,
    }


def _monotonic_start_ns(part: LoadPart) -> int | None:
    if part.start_at_ns is None:
        return None
    offset_ns = part.clock_offset_ns
    if offset_ns is None:
        offset_ns = time.time_ns() - time.monotonic_ns()
    return max(0, part.start_at_ns - offset_ns)


def planned_operations(plan: Mapping[str, Any]) -> int | None:
    """Return how many operations the part of a plan is to begin; None if the server decides that."""
    return _native.planned_operations(json.dumps(plan).encode())


def part_deadline_ns(part: LoadPart | None, deadline_ns: int, warmup_ns: int = 0) -> int:
    """Return the time limit of a load, from now; `deadline_ns` counts from the start."""
    if part is None:
        return warmup_ns + deadline_ns
    wait_ns = 0 if part.start_at_ns is None else part.start_at_ns - time.time_ns()
    return max(wait_ns, warmup_ns) + min(deadline_ns, part.end_after_ns or deadline_ns)


@contextmanager
def held_lease(source: str | None, control: PartControl | None = None) -> Iterator[Lease | None]:
    """Yield a lease that a thread renews whenever its source does; None without a source.

    The source is a file, of which each change counts, or ``-``: each input from standard input. The core ends
    the load if this thread, or this process, stops renewing. With `control`, its lease is used instead.
    """
    if control is not None or source is None:
        yield None if control is None else control.lease
        return
    lease, ended = _native.Lease(), threading.Event()
    target = _renew_by_input if source == "-" else _renew_by_file
    threading.Thread(target=target, args=(lease, source, ended), name="lease", daemon=True).start()
    try:
        yield lease
    finally:
        ended.set()


def _renew_by_input(lease: Lease, _: str, ended: threading.Event) -> None:
    with suppress(OSError):
        while not ended.is_set() and os.read(0, 4096):
            lease.renew()


def _renew_by_file(lease: Lease, path: str, ended: threading.Event) -> None:
    """Renew at each change. The file's own time is not used: another machine's clock may have set it."""
    before = _state(path)
    while not ended.wait(_LOOK_S):
        now = _state(path)
        if now is not None and now != before:
            lease.renew()
        before = now


def _state(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
