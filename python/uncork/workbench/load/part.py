"""Send one part of a load: check its start, record where it ran, and keep counts that outlive it."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from uncork.engines import process
from uncork.errors import UsageError
from uncork.load.parts import PartControl
from uncork.model.load import LoadPart
from uncork.store.parts import RESERVATIONS

_LEAST_AHEAD_NS: Final = 1_000_000_000
"""Time to connect, and to start the threads that wait for the start."""


def check_start(part: LoadPart | None) -> None:
    """Raise UsageError if a part is to start in less than a second, or has started."""
    if part is None or part.start_at_ns is None:
        return
    now_ns = time.time_ns()
    ahead_ns = part.start_at_ns - now_ns
    if ahead_ns < _LEAST_AHEAD_NS:
        when = "in the past" if ahead_ns < 0 else f"only {ahead_ns / 1e9:.1f} s ahead"
        now = datetime.fromtimestamp(now_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        raise UsageError(
            f"--start-at is {when}: it is {now} by the clock of this machine; give a time at least 1 s ahead"
        )


def started_part(part: LoadPart | None, control: PartControl | None) -> LoadPart | None:
    """Return a part with its start: with `control`, wait until the coordinator gives it."""
    if part is None or control is None:
        return part
    start_ns = control.await_start()
    return replace(part, start_at_ns=start_ns, clock_offset_ns=control.clock_offset_ns)


def kept_part(part: LoadPart | None, folder: Path) -> LoadPart | None:
    """Return a part that keeps its counts in the folder of its run."""
    return None if part is None else replace(part, reservations=str(folder / RESERVATIONS))


def part_facts(part: LoadPart | None) -> dict[str, Any]:
    """Return what a part's manifest says about it: also on which machine it runs."""
    if part is None:
        return {}
    machine = (process.identity(os.getpid()) or {}).get("machine", 0)
    return {
        "part": {
            "number": part.number,
            "count": part.count,
            "start_at_ns": part.start_at_ns,
            "host": platform.node(),
            "machine": machine,
        }
    }
