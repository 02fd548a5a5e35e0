"""The system sampler, a part of the Rust core that reads the machine's counters during a measurement."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from uncork import _native
from uncork.model.system import GENERATOR, SAMPLE_PERIOD_NS, SERVER, SERVICE, Strain, SystemSeries, Watch

# pyarrow is imported where tables are built: sampling starts sooner without it.


class Sampler:
    """Sample the machine and processes until the sampler is stopped or garbage collected.

    `memory` also reads how processes share memory. This may make them wait, so do not use it while timing.
    Raises SetupError if sampling cannot start.
    """

    def __init__(
        self, watch: Sequence[Watch], *, period_ns: int = SAMPLE_PERIOD_NS, memory: bool = False
    ) -> None:
        plan = sampler_plan(watch, period_ns=period_ns, memory=memory)
        self._running = _native.start_sampler(json.dumps(plan).encode())

    def rest(self, resting: bool) -> None:
        """Pause or resume sampling. Pauses do not count towards the period between readings."""
        self._running.rest(resting)

    def stop(self) -> SystemSeries | None:
        """Stop sampling; return all samples, or None if it was already stopped."""
        return system_series(self._running.stop())


def sampler_plan(
    watch: Sequence[Watch], *, period_ns: int = SAMPLE_PERIOD_NS, memory: bool = False
) -> dict[str, Any]:
    """Return the sampler's plan for the core."""
    return {"period_ns": period_ns, "watch": [asdict(target) for target in watch], "memory": memory}


def trial_watch(postmaster: int | None, services: Sequence[int] = ()) -> list[Watch]:
    """Return the processes to sample during a load: server and services, if local, and this process."""
    server = [] if postmaster is None else [Watch(SERVER, postmaster, children=True)]
    beside = [Watch(SERVICE, pid, children=True) for pid in services]
    return [*server, *beside, Watch(GENERATOR, os.getpid())]


def system_series(sampled: tuple[bytes, Mapping[str, Any]] | None) -> SystemSeries | None:
    """Convert the core's samples to a SystemSeries."""
    if sampled is None:
        return None
    facts, tables = sampled
    import pyarrow as pa  # noqa: PLC0415

    return SystemSeries(json.loads(facts), {name: pa.table(table) for name, table in tables.items()})


def strain(series: SystemSeries | None) -> Strain | None:
    """Return what may have disturbed a trial; None if nothing was sampled.

    The processor time of other programs is known only if the server's processes were sampled. It is the busy
    time of all processors minus the time of the sampled processes, which include the sampler.
    """
    if series is None:
        return None
    samples, processes = series.tables["system_samples"], series.tables["system_processes"]

    import pyarrow.compute as pc  # noqa: PLC0415

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
