"""Measure what observers cost on an idle server."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from uncork.experiment.observe import NOTHING
from uncork.model.results.observer_cost import IdleCost
from uncork.model.server import Target
from uncork.stats.interval import radius, summary
from uncork.workbench.overhead.observers import LocalObservers, process_cpu_ns

_WINDOW_S: Final = 0.75
_WINDOWS: Final = 8
"""The number of idle windows of each observer, and their length."""


def idle_seconds(observers: int) -> float:
    """Return how long measuring so many observers takes, in seconds."""
    return _WINDOWS * _WINDOW_S * (observers + 1)


def idle_costs(names: Sequence[str], target: Target, seed: int) -> dict[str, IdleCost]:
    """Measure observers on an idle server, in windows with each observer and without, in random order."""
    order = random.Random(seed)
    observers = LocalObservers()
    server: dict[str, list[float]] = {name: [] for name in names}
    own: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(_WINDOWS):
        found: dict[str, float | None] = {}
        turns: list[str | None] = [None, *names]
        order.shuffle(turns)
        for name in turns:
            if name is None:
                found[NOTHING] = _window(target)
                continue
            with observers.beside(name, target) as watching:
                begun = time.monotonic_ns()
                found[name] = _window(target)
                passed = time.monotonic_ns() - begun
            own[name].append((watching.cpu_ns or 0) / passed * 1e9)
        quiet = found[NOTHING]
        for name in names:
            busy = found[name]
            if busy is not None and quiet is not None:
                server[name].append(busy - quiet)
    return {name: _idle_cost(own[name], server[name]) for name in names}


def _idle_cost(own: Sequence[float], server: Sequence[float]) -> IdleCost:
    own_mean, own_spread = _mean(own)
    known = _mean(server) if server else (None, None)
    return IdleCost(len(own), own_mean or 0.0, own_spread, *known)


def _mean(values: Sequence[float]) -> tuple[float | None, float | None]:
    count, mean, deviation = summary(values)
    half = float(radius(count, deviation, 0.95))
    return mean, half if half < float("inf") else None


def _window(target: Target) -> float | None:
    """Return the processor time per second of the server's processes; None if they are not local."""
    before, begun = _server_cpu(target.pid), time.monotonic_ns()
    time.sleep(_WINDOW_S)
    after, passed = _server_cpu(target.pid), time.monotonic_ns() - begun
    if before is None or after is None:
        return None
    return sum(used - before.get(pid, 0) for pid, used in after.items()) / passed * 1e9


def _server_cpu(postmaster: int | None) -> dict[int, int] | None:
    """Return the processor time of the server's processes by pid; None if they are not local."""
    if postmaster is None:
        return None
    try:
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    except OSError:
        return None
    clocks = {pid: process_cpu_ns(pid) for pid in (postmaster, *map(int, children))}
    return {pid: used for pid, used in clocks.items() if used is not None}
