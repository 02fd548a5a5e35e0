"""The system sampler: one object of the core that reads the machine while something else is measured."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from uncork import _native
from uncork.model.system import GENERATOR, SAMPLE_PERIOD_NS, SERVER, SERVICE, Strain, SystemSeries, Watch

__all__ = ["Sampler", "sampler_plan", "strain", "system_series", "trial_watch"]


class Sampler:
    """Samples machine and processes until it is stopped, or forgotten.

    `memory` reads how processes share memory too, which may make them wait: not for what is timed.

    Raises:
        SetupError: if it cannot begin.
    """

    def __init__(
        self, watch: Sequence[Watch], *, period_ns: int = SAMPLE_PERIOD_NS, memory: bool = False
    ) -> None:
        plan = sampler_plan(watch, period_ns=period_ns, memory=memory)
        self._running = _native.start_sampler(json.dumps(plan).encode())

    def rest(self, resting: bool) -> None:
        """Rest, or go on: the time of a rest is none to it, so that readings come as far apart as without."""
        self._running.rest(resting)

    def stop(self) -> SystemSeries | None:
        """End; return what was seen, or None if it was stopped before."""
        return system_series(self._running.stop())


def sampler_plan(
    watch: Sequence[Watch], *, period_ns: int = SAMPLE_PERIOD_NS, memory: bool = False
) -> dict[str, Any]:
    """Return the sampler's plan as the core takes it."""
    return {"period_ns": period_ns, "watch": [asdict(one) for one in watch], "memory": memory}


def trial_watch(postmaster: int | None, services: Sequence[int] = ()) -> list[Watch]:
    """Return what is watched while load is sent: server and services, if they are here, and ourselves."""
    server = [] if postmaster is None else [Watch(SERVER, postmaster, children=True)]
    beside = [Watch(SERVICE, pid, children=True) for pid in services]
    return [*server, *beside, Watch(GENERATOR, os.getpid())]


def system_series(told: tuple[bytes, Mapping[str, Any]] | None) -> SystemSeries | None:
    """Return what the core told of the system."""
    if told is None:
        return None
    facts, tables = told
    return SystemSeries(json.loads(facts), {name: pa.table(table) for name, table in tables.items()})


def strain(series: SystemSeries | None) -> Strain | None:
    """Return what may have disturbed a trial; None if nothing was sampled.

    What others took is known only where the server's processes were watched too: it is the time that
    processors were busy, less that of the watched processes and of the sampler among them.
    """
    if series is None:
        return None
    samples, processes = series.tables["system_samples"], series.tables["system_processes"]

    def total(column: str) -> int | None:
        found: int | None = pc.sum(samples[column]).as_py()
        return found

    waited, length, cpus = total("memory_some_ns"), total("length_ns"), pc.max(samples["cpus"]).as_py()
    whole = (length or 0) * (cpus or 0)
    busy = [total(f"{mode}_ns") for mode in ("user", "nice", "system")]
    known = [value for value in busy if value is not None]
    others = None
    if SERVER in processes["role"].to_pylist() and len(known) == len(busy) and whole:
        watched = pc.sum(series.tables["system_process_samples"]["cpu_ns"]).as_py() or 0
        others = max(0, sum(known) - watched) / whole
    return Strain(None if waited is None or not length else waited / length, others, whole)
