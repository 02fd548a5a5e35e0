"""Measure observers that are switched on and off within one load: see `stats.ab_switching`."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from uncork.engines.tpcb import initialise
from uncork.engines.watch.observing import create_extension
from uncork.errors import RunError, UncorkError
from uncork.experiment.plan.switching import done_between, turns
from uncork.load.run import load_plan, run_plan
from uncork.load.sampler import sampler_plan
from uncork.model.load import LoadMeasurement, LoadOutcome, LoadScript, LoadSpec
from uncork.model.results.observer_cost import CatalogueCost, Ratio, Slice, Switched
from uncork.model.server import Target
from uncork.stats.ab_switching import SwitchedEstimate, adjusted_estimate, disagree, plain_estimate
from uncork.store.layout import write_atomically
from uncork.workbench.overhead.catalogue import CATALOGUE, catalogue_cost
from uncork.workbench.overhead.observers import process_cpu_ns
from uncork.workbench.overhead.switches import Switch, switches

SLICES_FILE: Final = "observer_slices.json"
STATEMENTS_COUNTED: Final = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
    "compute_query_id": "auto",
}
"""Settings that let a watch read plans. Statements are counted whether an observer is on or off."""
_LOAD_NS: Final = 20 * 10**9

Notify = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SwitchedLoad:
    """The load: a pgbench script on pgbench's tables, for `seconds` in total."""

    name: str
    text: str
    scale: int
    clients: int
    seed: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Switching:
    """The measured slices, whether Ctrl-C ended them early, and what reading the catalogue costs."""

    slices: tuple[Slice, ...]
    interrupted: bool = False
    catalogue: CatalogueCost | None = None


def measure_switched(
    load: SwitchedLoad,
    target: Target,
    conninfo: str,
    names: Sequence[str],
    notify: Notify,
    others: Mapping[str, Switch] | None = None,
) -> Switching:
    """Create pgbench's tables, send the load, and meanwhile switch the observers `names` and `others`.

    Raises:
        SetupError, ConnectError: if the tables cannot be created, or an observer cannot be started.
        RunError: if the load stopped early.
    """
    initialise(conninfo, scale=load.scale)
    spec = LoadSpec(
        scripts=(LoadScript(load.name, 1, load.text),),
        clients=load.clients,
        protocol="prepared",
        variables={"scale": str(load.scale)},
        seed=load.seed,
        duration_ns=_LOAD_NS,
    )
    catalogue = None
    if CATALOGUE in names:
        create_extension(conninfo, "pg_stat_statements")
        catalogue = cost_under_load(Steady(spec, target))
    with switches(tuple(names), target) as found:
        observers = {**found, **(others or {})}
        slices, interrupted = switch_under_load(
            Steady(spec, target), observers, load.seconds, load.seed, notify
        )
    return Switching(tuple(slices), interrupted, catalogue)


def judge_switched(
    slices: Sequence[Slice], observer: str, confidence: float, sure: float, processors: int | None = None
) -> Switched | None:
    """Return what one observer costs; None if it was not switched. Pure.

    `confidence` is for the intervals shown, and `sure` for the intervals behind verdicts.
    `processors` is how many the load may use; without it there is no bound.
    """
    all_of_them = sorted({name for piece in slices for name in piece.on})
    if observer not in all_of_them:
        return None

    def rows(values: Sequence[float]) -> np.ndarray:
        return np.array(values, dtype=np.float64).reshape(-1, 4)

    on = rows([observer in piece.on for piece in slices]).astype(bool)
    beside = [rows([name in piece.on for piece in slices]) for name in all_of_them if name != observer]
    length, done = rows([piece.length_ns for piece in slices]), rows([piece.operations for piece in slices])
    work = rows([piece.work_ns for piece in slices])
    others = rows([piece.others_ns for piece in slices]) / length
    stolen = rows([piece.stolen_ns for piece in slices]) / length
    # A slice without operations counts as half an operation, because zero has no logarithm.
    some = np.maximum(done, 0.5)
    covariates = np.stack([others, others**2, stolen, *beside], axis=-1)
    plain = plain_estimate(done / length, on)
    adjusted = adjusted_estimate(np.log(some / length), on, covariates)
    processor = adjusted_estimate(np.log(np.maximum(work, 1.0) / some), on, covariates)
    had = float(work.sum() / length.sum())
    return Switched(
        quadruples=len(on),
        slice_ns=round(float(np.median(length))),
        plain=_ratio(plain, confidence),
        adjusted=_ratio(adjusted, confidence),
        sure=_ratio(adjusted, sure),
        processor=_ratio(processor, confidence),
        processor_sure=_ratio(processor, sure),
        others=float(others.mean()),
        stolen=float(stolen.mean()),
        work=had,
        bound=None if processors is None else _scaled(_ratio(processor, sure), had / processors),
        apart=plain is not None and adjusted is not None and disagree(plain, adjusted),
    )


def _ratio(found: SwitchedEstimate | None, confidence: float) -> Ratio | None:
    return None if found is None else Ratio(*found.interval(confidence), found.units)


def _scaled(ratio: Ratio | None, part: float) -> Ratio | None:
    """Scale a ratio of a part to the whole; `part` is the fraction of the whole that changed."""
    if ratio is None or ratio.low is None or ratio.high is None:
        return None
    changed, low, high = (1 + (value - 1) * part for value in (ratio.ratio, ratio.low, ratio.high))
    return Ratio(changed, low, high, ratio.rounds)


def write_slices(folder: Path, slices: Sequence[Slice]) -> None:
    """Store the slices with the run, as one list per field.

    Raises StoreError if they cannot be written.
    """
    rows = [asdict(piece) for piece in slices]
    columns = {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}
    write_atomically(folder / SLICES_FILE, json.dumps(columns) + "\n")


# ---- one steady load after another ----


_SLICE_S: Final = 0.1
_GUARD_S: Final = 0.02
"""The time left out at the start of each slice, switched or not, while operations of the slice
before end and switching takes effect."""
_SETTLE_S: Final = 1.0
"""How long each load runs before its first slice."""
_LOAD_S: Final = 20.0
"""The approximate length of a load. Each load has new connections, and so new server processes."""
_READING_S: Final = 6.0
"""The length of the load during which the catalogue is read."""
_INTERVAL_NS: Final = 10_000_000
_NEVER_NS: Final = 3_600_000_000_000
"""The period of the load's own sampler: it only records when the load started."""


@dataclass(frozen=True, slots=True)
class Steady:
    """The load that is sent all the time, and its server."""

    spec: LoadSpec
    target: Target


@dataclass(frozen=True, slots=True)
class _Edge:
    quadruple: int
    on: tuple[str, ...]
    before: Used
    after: Used


def switch_under_load(
    steady: Steady,
    observers: Mapping[str, Switch],
    seconds: float,
    seed: int,
    notify: Callable[[str], None],
) -> tuple[list[Slice], bool]:
    """Return the slices of complete quadruples, and whether Ctrl-C ended the measurement early.

    Raises:
        LoadError, ConnectError, RunError: if the load cannot be sent, or an observer stopped early.
    """
    found: list[Slice] = []
    order = turns(list(observers), seed)
    number = 0
    loads = max(1, round(seconds / _LOAD_S))
    for _ in range(loads):
        edges, measured = _one_load(steady, observers, order, number, seconds / loads)
        number += len(edges) // 4
        found += _slices(edges, measured)
        if measured.totals.outcome is LoadOutcome.INTERRUPTED:
            return found, True
        if measured.totals.outcome is not LoadOutcome.COMPLETE:
            raise RunError(f"the load stopped early: {measured.totals.message or measured.totals.outcome}")
        notify(f"switched {', '.join(observers)} on and off: {len(found) // 4} quadruples")
    return found, False


def cost_under_load(steady: Steady) -> CatalogueCost:
    """Return what reading the catalogue costs while the load is sent.

    Raises:
        LoadError, ConnectError, RunError: if the load cannot be sent, or the catalogue cannot be read.
    """
    found: list[CatalogueCost] = []
    trouble: list[UncorkError] = []

    def read() -> None:
        time.sleep(_SETTLE_S)
        try:
            found.append(catalogue_cost(steady.target))
        except UncorkError as error:
            trouble.append(error)

    thread = threading.Thread(target=read, name="catalogue", daemon=True)
    thread.start()
    try:
        run_plan(_plan(steady, _READING_S), None)
    finally:
        thread.join()
    if trouble:
        raise RunError(f"the catalogue cannot be read: {trouble[0]}") from trouble[0]
    return found[0]


def _plan(steady: Steady, seconds: float) -> dict[str, Any]:
    """Return the plan of a load of so many seconds, which records when it started."""
    return load_plan(steady.spec, steady.target.connection, pid=None) | {
        "connection": {**steady.target.connection, "database": steady.target.database},
        "stop": {"duration_ns": round(seconds * 1e9)},
        "interval_ns": _INTERVAL_NS,
        "sample": sampler_plan([], period_ns=_NEVER_NS),
    }


def _one_load(
    steady: Steady,
    observers: Mapping[str, Switch],
    order: Iterator[list[frozenset[str]]],
    number: int,
    seconds: float,
) -> tuple[list[_Edge], LoadMeasurement]:
    edges: list[_Edge] = []
    ended = threading.Event()
    trouble: list[UncorkError] = []

    def hand() -> None:
        try:
            _turn(observers, order, number, time.monotonic() + seconds, steady.target, edges, ended)
        except UncorkError as error:
            trouble.append(error)

    thread = threading.Thread(target=hand, name="switch", daemon=True)
    thread.start()
    try:
        measured = run_plan(_plan(steady, seconds), None)
    finally:
        ended.set()
        thread.join()
    if trouble:
        raise RunError(f"an observer stopped early: {trouble[0]}") from trouble[0]
    return edges, measured


def _turn(
    observers: Mapping[str, Switch],
    order: Iterator[list[frozenset[str]]],
    number: int,
    until: float,
    target: Target,
    edges: list[_Edge],
    ended: threading.Event,
) -> None:
    if ended.wait(_SETTLE_S) or target.pid is None:
        return
    with closing(Clocks(target.pid)) as clocks:
        # The last quadruple must end before the load, although it takes a little longer than planned.
        while time.monotonic() < until - 8 * (_SLICE_S + _GUARD_S):
            quadruple = []
            for on in next(order):
                for name, observer in observers.items():
                    observer.switch(name in on)
                if ended.wait(_GUARD_S):
                    break
                before = clocks.read()
                time.sleep(_SLICE_S)
                quadruple.append(_Edge(number, tuple(sorted(on)), before, clocks.read()))
            if len(quadruple) < 4:
                return
            edges += quadruple
            number += 1
        for observer in observers.values():
            observer.switch(False)


def _slices(edges: list[_Edge], measured: LoadMeasurement) -> list[Slice]:
    """Combine switching with the load's series, without quadruples that ended after the load.

    The start of the series is known as wall-clock time, which is converted to the monotonic clock here.
    """
    if not edges or measured.system is None or not measured.series:
        return []
    origin = measured.system.facts["begun_unix_ns"] - (time.time_ns() - time.monotonic_ns())
    counts = np.zeros(max(row.interval for row in measured.series) + 1)
    for row in measured.series:
        counts[row.interval] += row.succeeded
    begun = np.array([edge.before.time_ns - origin for edge in edges])
    ended = np.array([edge.after.time_ns - origin for edge in edges])
    done = done_between(begun, ended, counts, _INTERVAL_NS).reshape(-1, 4)
    whole = ~np.isnan(done).any(axis=1)
    return [
        _slice(edges[4 * row + place], float(done[row, place]))
        for row in np.flatnonzero(whole)
        for place in range(4)
    ]


def _slice(edge: _Edge, done: float) -> Slice:
    passed: Any = (last - first for first, last in zip(edge.before, edge.after, strict=True))
    length, taken, stolen, server, own = passed
    return Slice(
        quadruple=edge.quadruple,
        on=edge.on,
        length_ns=length,
        operations=done,
        work_ns=server + own,
        others_ns=max(0, taken - server - own),
        stolen_ns=stolen,
    )


_MACHINE: Final = tuple(
    Path("/sys/fs/cgroup") / folder / "cpuacct.usage" for folder in ("cpuacct", "cpu,cpuacct", "cpuacct,cpu")
)
"""The processor time of all tasks in nanoseconds, where the kernel has it (control groups, version 1)."""
_STAT: Final = Path("/proc/stat")
_TICK_NS: Final = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Used(NamedTuple):
    """Processor time so far, in nanoseconds: of all tasks, stolen by the host, the server's, and our own.

    `time_ns` is the monotonic clock. A value that cannot be read does not change.
    """

    time_ns: int
    all_ns: int
    stolen_ns: int
    server_ns: int
    own_ns: int


class Clocks:
    """The clocks of a machine and of a server's processes that exist now.

    Without control groups, the time of all tasks comes from /proc/stat, in ticks of 10 ms. It then
    explains less of the variation in a tenth of a second, but is not biased.
    """

    def __init__(self, postmaster: int) -> None:
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
        self._server = (postmaster, *map(int, children))
        self._stat = _open(_STAT)
        self._machine = next((one for path in _MACHINE if (one := _open(path)) is not None), None)

    def read(self) -> Used:
        """Read all clocks; this takes about ten microseconds."""
        now = time.monotonic_ns()
        user = nice = system = hard = soft = stolen = 0
        if self._stat is not None:
            line = os.pread(self._stat, 200, 0).partition(b"\n")[0].split()[1:9]
            user, nice, system, _, _, hard, soft, stolen = map(int, line)
        busy = (user + nice + system + hard + soft) * _TICK_NS
        if self._machine is not None:
            busy = int(os.pread(self._machine, 32, 0))
        server = sum(process_cpu_ns(pid) or 0 for pid in self._server)
        return Used(now, busy, stolen * _TICK_NS, server, time.process_time_ns())

    def close(self) -> None:
        """Close the files."""
        for number in (self._stat, self._machine):
            if number is not None:
                os.close(number)


def _open(path: Path) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
