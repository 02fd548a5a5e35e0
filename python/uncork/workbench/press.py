"""Load a server past its knee, and look at all parties at the same time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from uncork.engines.conninfo import Address
from uncork.engines.watch import ServerWatch
from uncork.errors import UncorkError
from uncork.load.run import run_load
from uncork.model.bottleneck import DatabaseUse, LoadUse, MachineUse, Party, Seen
from uncork.model.load import LoadMeasurement, LoadOutcome, LoadSpec
from uncork.model.system import GENERATOR, SERVER, SystemUse
from uncork.profile.activity import CLIENT, averages, wait_class, weights
from uncork.profile.system import system_use
from uncork.store.system import system_tables
from uncork.workbench.database_watch import Watched, watch

__all__ = ["press"]

_RATE_HZ: Final = 20.0
_BUSY_THREAD: Final = 0.9
"""A thread of the generator that is busier than this can send no more. Whether it took processors from a
server beside it (`stats.generator`) is not asked here: it is one party among others, weighed by a rule."""


def press(load: LoadSpec, address: Address, connection: Mapping[str, object], pid: int | None) -> Seen | None:
    """Carry out a load while the server's sessions are sampled; None if it was interrupted.

    Sessions are None where the server lets nobody watch: the load goes on without.
    """
    seconds = (load.duration_ns or 0) / 1e9
    with ThreadPoolExecutor(1) as watcher:
        watching = watcher.submit(_watched, address.conninfo(), seconds)
        measured = run_load(load, connection, pid=pid)
        watched = watching.result()
    if measured.totals.outcome is LoadOutcome.INTERRUPTED:
        return None
    return seen_of(measured, watched, load.threads)


def seen_of(measured: LoadMeasurement, watched: Watched | None, threads: int) -> Seen:
    """Put together what generator, machine and database tell of the same time. Pure."""
    system = None if measured.system is None else system_use(system_tables([({}, measured.system)]))
    totals = measured.totals
    times = next((row for row in measured.times if row.kind == "operation"), None)
    succeeded = 0 if times is None else times.executions - times.errors
    mean = times.sum_ns / succeeded if times is not None and succeeded else 0.0
    busy = totals.busiest_thread
    return Seen(
        load=LoadUse(
            in_flight=mean * succeeded / totals.elapsed_ns if totals.elapsed_ns else 0.0,
            mean_ns=mean,
            busiest_thread=busy,
            limit="yes" if busy > _BUSY_THREAD else "no",
            limit_reason=f"the busiest of its {threads} threads works {busy * 100:.0f} % of the time",
            errors={**totals.errors, **totals.connect_errors},
            message=totals.first_error or totals.message or "",
        ),
        machine=_machine(system),
        database=None if system is None else _party(system, SERVER),
        generator=None if system is None else _party(system, GENERATOR),
        sessions=None if watched is None else _sessions(watched),
    )


def _watched(conninfo: str, seconds: float) -> Watched | None:
    with suppress(UncorkError):
        server = ServerWatch(conninfo)
        try:
            return watch(server, seconds, _RATE_HZ)
        finally:
            server.close()
    return None


def _machine(system: SystemUse | None) -> MachineUse:
    if system is None or system.cpus is None or system.modes is None:
        return MachineUse(1 if system is None else system.cpus or 1)
    modes = system.modes
    return MachineUse(
        processors=system.cpus,
        busy=1.0 - modes["idle"] - modes["iowait"],
        waiting_for_disk=modes["iowait"],
        stolen=modes["steal"],
    )


def _party(system: SystemUse, role: str) -> Party | None:
    found = [one for one in system.processes if one.role == role]
    if not found or not system.elapsed_ns:
        return None
    bounds = next((one for one in system.bounds if one.role == role), None)
    return Party(
        user=sum(one.user_ns for one in found) / system.elapsed_ns,
        system=sum(one.system_ns for one in found) / system.elapsed_ns,
        quota=None if bounds is None else bounds.quota_cpus,
        throttled=bounds.throttled if bounds is not None and bounds.periods else None,
    )


def _sessions(watched: Watched) -> DatabaseUse:
    """Return what client sessions did on average over the samples."""
    samples: list[dict[str, Any]] = watched.tables["database_samples"].to_pylist()
    span = watched.facts["watch"]
    shares = weights([row["time_us"] for row in samples], span["begun_us"], span["ended_us"])
    rows = [
        {**row, "weight": shares[row["sample"]]}
        for row in watched.tables["database_activity"].to_pylist()
        if row["backend"] == CLIENT
    ]
    whole = float(span["ended_us"] - span["begun_us"])
    waits = averages(rows, lambda row: (wait_class(row), str(row["wait_event"] or "")), whole)
    folded: dict[tuple[str, str], float] = defaultdict(float)
    for (name, event), many in waits.items():
        folded[name, event if name not in ("CPU", "idle in transaction") else ""] += many
    busy = sum(folded.values())
    texts = {row["template"]: row["text"] for row in watched.tables["database_templates"].to_pylist()}
    by_template = averages(rows, lambda row: row["template"], whole)
    settings = {row["name"]: row["value"] for row in watched.tables["database_settings"].to_pylist()}
    most = settings.get("max_connections")
    return DatabaseUse(
        waits=dict(folded),
        sessions=float(len({row["pid"] for row in rows})),
        max_connections=int(most) if most is not None else None,
        templates={
            texts[number]: many / busy for number, many in by_template.items() if number in texts and busy
        },
    )
