"""Measure trials through the ports: one by one, or the arms of a block in turns.

A workload with a given trial length (`duration`, `operations`) is measured trial by trial. Otherwise its arms
take turns in slices of a few milliseconds within one call of the load engine. If something prevents that (see
`Measuring.interleaves`), it is measured trial by trial too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from uncork.experiment.plan.order import arms
from uncork.experiment.plan.placement import Placement, Placements
from uncork.experiment.plan.slicing import (
    CYCLES_TOGETHER,
    SLICE_NS,
    Pilot,
    changes_allowed,
    cycle_ns,
    cycle_order,
    lengthened,
    slice_sizes,
    warmup_operations,
)
from uncork.experiment.ports import Clock, Load, Observers, Server
from uncork.experiment.run.http_request import http_trial
from uncork.experiment.run.own_metrics import own_metrics
from uncork.experiment.run.parameters import ROWS_FOR_A_DURATION
from uncork.experiment.run.preparation import Preparation
from uncork.experiment.run.request import trial_request, undo_for
from uncork.experiment.run.service_manager import ServiceManager, with_service_cost
from uncork.experiment.spec.schema import Spec
from uncork.model.block import BlockMeasurement, BlockRequest, SliceSize
from uncork.model.engine import POSTGRESQL
from uncork.model.http_trial import HttpTrial, TrialRequest
from uncork.model.measurement import Counters, Disturbance, Measurement, Outcome, Slice
from uncork.model.request import LoadRequest
from uncork.model.server import Snapshot
from uncork.model.service import Served
from uncork.model.system import Strain
from uncork.model.trial import Arm, Cell, Trial
from uncork.stats.bursts import cycle_weights

_WRITING = 0.1
"""From this many write-ahead log records per operation on, a workload counts as writing. Reads occasionally
write one too, when they set hints or clean a page."""

_APART_SHARE = 0.1
"""Untimed operations that only collect counters take at most this fraction of a block's time, per round."""

_PILOT = SliceSize(duration_ns=20_000_000)
_MOST_CYCLES = 5_000

Pair = tuple[Cell, str]
Block = tuple[Trial, ...]
Measured = list[tuple[Trial, Measurement]]


@dataclass(frozen=True, slots=True)
class Fit:
    """How a workload in a cell is measured in turns.

    `cycle_ns` is the length of one cycle, `least_ns` that of the shortest possible cycle, and `long_ns` that
    of a cycle of long slices, None if there are none. `operations` is how many operations each arm may run
    before its data must be restored, None if nothing changes.
    """

    arms: tuple[Arm, ...]
    pilot: Pilot
    sizes: tuple[SliceSize, ...]
    cycle_ns: float
    least_ns: float
    long_ns: float | None
    operations: int | None


@dataclass(slots=True)
class _Changes:
    """What one workload has changed since its data was last restored.

    `first` is the first block since then: later blocks continue its stream of parameters, so that no value
    repeats.
    """

    first: Trial
    operations: int = 0


class Measuring:
    """Measures trials and blocks, and keeps each arm's data in the state that the experiment requires."""

    def __init__(
        self,
        spec: Spec,
        server: Server,
        load: Load,
        placements: Placements,
        manager: ServiceManager,
        preparation: Preparation,
        observers: Observers | None,
        clock: Clock,
    ) -> None:
        self._spec = spec
        self._server = server
        self._load = load
        self._placements = placements
        self._manager = manager
        self._preparation = preparation
        self._observers = observers
        self._clock = clock
        self._fits: dict[Pair, Fit] = {}
        self._changes: dict[Pair, _Changes] = {}
        self._apart_ns: dict[Pair, float] = {}
        self._operation_ns: dict[tuple[Pair, Arm], float] = {}
        self._dirty: set[Placement] = set()

    # ---- data ----

    def mark_dirty(self, placements: Iterable[Placement]) -> None:
        """Mark data as permanently changed, so that it is restored before the next measurement."""
        self._dirty |= (changed := set(placements))
        self._forget_changes(changed)

    def clean(self, placements: Iterable[Placement]) -> None:
        """Restore the data that has changed, and warm it unless the experiment wants it otherwise."""
        changed = [home for home in dict.fromkeys(placements) if home in self._dirty]
        if changed:
            if self._spec.setup.cache == "warm":
                self._manager.restore_all(changed)
            else:
                for home in changed:
                    self._manager.restore(home)
            self._dirty -= set(changed)
            self._forget_changes(changed)

    def _forget_changes(self, placements: Iterable[Placement]) -> None:
        cells = {home[0] for home in placements}
        self._changes = {pair: change for pair, change in self._changes.items() if pair[0] not in cells}

    def warm(self, placements: Iterable[Placement]) -> None:
        """Restore what has changed, and read all of it into the cache, unless the experiment has none."""
        distinct = list(dict.fromkeys(placements))
        unchanged = [home for home in distinct if home not in self._dirty]
        self.clean(distinct)
        for home in unchanged if self._spec.setup.cache == "warm" else ():
            self._server.warm(*home)

    # ---- one by one ----

    def trial(self, trial: Trial) -> Measurement:
        """Run one trial, and make sure that its data is restored."""
        home = self._placements.of(trial.cell, trial.arm)
        undo = undo_for(self._spec, trial.cell, trial.workload, trial.arm.variant)
        self.clean([home])
        cold = self._spec.setup.cache == "cold"
        if cold:
            self._server.cool(*home)
        request, served = self.request(trial)
        request = replace(request, warmup_operations=0) if cold else self._briefly_warmed(trial, request)
        updates = reads_updates(request)
        before, used = self._server.snapshot(*home, updates=updates), self._manager.cpu_ns(served)
        measurement = self._manager.examined(self._observed(trial.arm.variant, request), served)
        if measurement.outcome == Outcome.CONNECTION_LOST:
            return measurement
        if measurement.started:
            self._operation_ns[trial.comparison_key, trial.arm] = measurement.elapsed_ns / measurement.started
        after = self._server.snapshot(*home, updates=updates)
        operations = measurement.started + request.warmup_operations
        counters = with_service_cost(counted(before, after, operations), used, self._manager.cpu_ns(served))
        wrote = not (counters.wal_records == 0 and counters.shared_dirtied == 0)
        own = own_metrics(self._spec, self._server, trial, home)
        if undo:
            self._server.undo(*home, undo)
        elif self._spec.workloads[trial.workload].state == "reset" and wrote:
            self._dirty.add(home)
        found = disturbances(before, after, measurement)
        return replace(measurement, counters=counters, disturbances=found, own=own)

    def _briefly_warmed(self, trial: Trial, request: TrialRequest) -> TrialRequest:
        """Limit the warm-up operations of a trial of unspecified length to a short time.

        Their duration is known from the arm's previous trial; the first trial has one operation per client.
        """
        facts = self._spec.workloads[trial.workload]
        if not facts.fitted:
            return request
        known_ns = self._operation_ns.get((trial.comparison_key, trial.arm))
        asked = facts.warmup_operations
        most = self._clients((trial,)) if known_ns is None else warmup_operations(asked, known_ns)
        return replace(request, warmup_operations=min(asked, most))

    def request(self, trial: Trial, rows: int | None = None) -> tuple[TrialRequest, Served | None]:
        """Return the load of a trial, and the service that runs for it, if any."""
        target = self._server.target(*self._placements.of(trial.cell, trial.arm))
        pools = self._preparation.pools(trial.cell, trial.workload, trial.arm.variant)
        served = (
            self._manager.served(trial.cell, trial.arm) if self._manager.runs_for(trial.workload) else None
        )
        if served is None or self._spec.workloads[trial.workload].http is None:
            return trial_request(self._spec, trial, target, pools, rows=rows), served
        return http_trial(self._spec, trial, target, served, pools), served

    def _observed(self, variant: str, request: TrialRequest) -> Measurement:
        """Run a trial, together with the variant's observer if it has one."""
        observer = self._spec.variants[variant].observe
        if observer is None or self._observers is None:
            return self._load.run(request)
        with self._observers.beside(observer, request.target) as watching:
            measurement = self._load.run(request)
        return replace(measurement, observer_ns=watching.cpu_ns)

    # ---- in turns ----

    def interleaves(self, cell: Cell, workload: str) -> bool:
        """Return whether the arms of a workload take turns within a block.

        They do not in these cases:

        - the file sets the length of a trial;
        - a variant has an observer, whose own work would affect the others;
        - the file has metrics, whose queries are about the data after one trial;
        - statements undo the data, and other arms would wait for them;
        - a variant opens a connection for each operation, and a block keeps its connections;
        - the baseline does not run on PostgreSQL;
        - a load ends with its connections.

        Arms on other engines have separate trials beside the block (see `parted`).
        """
        spec, facts = self._spec, self._spec.workloads[workload]
        if not facts.fitted or spec.observes or spec.metrics:
            return False
        variants = spec.compared(workload)
        if any(spec.undoing(workload, variant) for variant in variants) or spec.opens_connections(workload):
            return False
        if facts.http is not None:
            return facts.http.on_close == "reconnect" and all(
                (own := spec.variants[variant].http) is None or own.on_close in {None, "reconnect"}
                for variant in variants
            )
        known = [arm for arm in arms(spec, workload) if spec.engine(arm.variant) == POSTGRESQL]
        cpus = {self._server.target(*self._placements.of(cell, arm)).cpu for arm in known}
        return len(cpus) == 1 and spec.engine(spec.baseline) == POSTGRESQL

    def parted(self, block: Block) -> tuple[Block, Block]:
        """Return the trials of a block that take turns, and those on engines other than PostgreSQL."""
        spec = self._spec
        ours = tuple(trial for trial in block if spec.engine(trial.arm.variant) == POSTGRESQL)
        return ours, tuple(trial for trial in block if trial not in ours)

    def writes(self, pair: Pair) -> bool:
        """Return whether a workload that takes turns is known to change its data in a cell."""
        fit = self._fits.get(pair)
        return fit is not None and fit.pilot.writes

    def fit(self, block: Block) -> Fit:
        """Return how a block's workload is measured; a first, unrecorded block determines it.

        Raises:
            LoadError, ServerCrash: see `Load.run_block`.
        """
        pair = block[0].comparison_key
        fit, present = self._fits.get(pair), tuple(trial.arm for trial in block)
        if fit is None or not set(present) <= set(fit.arms):
            fit = self._fits[pair] = self._first_fit(block)
        elif present != fit.arms:  # in another order, or some have left
            known = dict(zip(fit.arms, fit.pilot.operation_ns, strict=True))
            times = tuple(known[arm] for arm in present)
            fit = self._fits[pair] = self._fit_to(block, times, fit.pilot.rows_each, fit.operations)
        return fit

    def _first_fit(self, block: Block) -> Fit:
        facts = self._spec.workloads[block[0].workload]
        self.clean(self._homes_of(block))
        requests = [self.request(trial)[0] for trial in block]
        asked = min(facts.warmup_operations, 1)
        # One operation of one client is enough: with several, each is assumed to wait for all the others.
        crowd = self._clients(block)
        pilot = _PILOT if crowd == 1 else SliceSize(operations=1)
        sizes, warmups = (pilot,) * len(block), [asked] * len(block)
        measured = self._run(block, requests, sizes, warmups, cycles=1, limit_ns=None)
        counters = [arm.counters or Counters(0) for arm in measured.arms]
        rows = None
        if facts.state == "reset" and any(
            counter.wal_records is None or counter.wal_records > _WRITING * counter.operations
            for counter in counters
        ):
            self.mark_dirty(self._homes_of(block))
            rows = max(arm.rows / max(arm.started, 1) for arm in measured.arms)
        pool = self._pool(block)
        if facts.http is not None:
            pool = min(pool or ROWS_FOR_A_DURATION, ROWS_FOR_A_DURATION)
        allowed = None if rows is None else changes_allowed(rows, self._rows_there(block), pool)
        times = tuple(_operation_ns(arm, 1) * crowd for arm in measured.arms)
        return self._fit_to(block, times, rows, allowed)

    def _fit_to(
        self,
        block: Block,
        operation_ns: tuple[float, ...],
        rows: float | None,
        allowed: int | None,
        limit_ns: float | None = None,
    ) -> Fit:
        facts = self._spec.workloads[block[0].workload]
        clients = self._clients(block)
        pilot = Pilot(operation_ns, rows)
        rate = None if facts.http is None else facts.http.rate
        usual, short = (
            slice_sizes(pilot, clients=clients, rate=rate, most=allowed, time_ns=time_ns)
            for time_ns in (limit_ns, 0.0)
        )
        longest = None
        if rate is None and facts.metric != "success":
            longest = lengthened(short, pilot, allowed)
        return Fit(
            tuple(trial.arm for trial in block),
            pilot,
            usual,
            cycle_ns(pilot, usual, clients),
            cycle_ns(pilot, short, clients),
            None if longest is None else cycle_ns(pilot, longest, clients),
            allowed,
        )

    def _rows_there(self, block: Block) -> int | None:
        """Return the row count of the largest table, in the placement where it is smallest, if known."""
        found = []
        for home in dict.fromkeys(self._homes_of(block)):
            rows = [
                relation.rows
                for relation in self._server.relations(*home)
                if relation.kind == "table" and relation.rows
            ]
            found.append(int(max(rows, default=0)))
        return min(found) or None

    def _pool(self, block: Block) -> int | None:
        """Return the number of different values of a parameter that must not repeat."""
        sources = self._spec.workloads[block[0].workload].sources
        pools = self._preparation.pools(block[0].cell, block[0].workload, block[0].arm.variant)
        sizes = [
            len(pools[name])
            for name, source in sources.items()
            if source.pick == "permutation" and name in pools
        ]
        return min(sizes, default=None)

    def block(self, block: Block, *, limit_ns: int, long: bool = False) -> Measured:
        """Run a block in turns: as many pairs of cycles as fit `limit_ns`, but at least one cycle.

        If `long` is set and long slices are possible, slices are long.

        Raises:
            LoadError, ServerCrash: see `Load.run_block`.
        """
        pair, placements = block[0].comparison_key, self._homes_of(block)
        known = self.fit(block)
        fit = self._fit_to(block, known.pilot.operation_ns, known.pilot.rows_each, known.operations, limit_ns)
        if long and (longer := lengthened(fit.sizes, fit.pilot, fit.operations)) is not None:
            long_ns = cycle_ns(fit.pilot, longer, self._clients(block))
            fit = replace(fit, sizes=longer, cycle_ns=long_ns, least_ns=long_ns)
        each = fit.sizes[0].operations or 1
        changes = self._changes.get(pair)
        if fit.operations is None or changes is None:
            self.clean(placements)
        elif changes.operations + CYCLES_TOGETHER * each > fit.operations:
            self.mark_dirty(placements)
            self.clean(placements)
        cycles = min(int(2 * limit_ns / fit.cycle_ns) + CYCLES_TOGETHER, _MOST_CYCLES)
        if fit.operations is None:
            requests = [self.request(trial)[0] for trial in block]
            warmups = [self._warmup(block, operation_ns) for operation_ns in fit.pilot.operation_ns]
        else:
            changes = self._changes.setdefault(pair, _Changes(block[0]))
            cycles = min(cycles, max(fit.operations - changes.operations, 0) // each)
            cycles = max(cycles - cycles % CYCLES_TOGETHER, CYCLES_TOGETHER)
            warmups = [self._warmup(block, max(fit.pilot.operation_ns))] * len(block)
            requests = self._going_on(block, changes, cycles * each + warmups[0], fit.operations)
            # Values of HTTP requests start again in each block, so the next block needs restored data.
            by_http = any(isinstance(request, HttpTrial) for request in requests)
            changes.operations += fit.operations if by_http else cycles * each + warmups[0]
        together = 1 if CYCLES_TOGETHER * fit.least_ns > limit_ns else CYCLES_TOGETHER
        # A block ends after the group of cycles that reaches its limit; stopping half a group early
        # compensates for that on average.
        stop_ns = max(int(limit_ns - together * fit.cycle_ns / 2), 1)
        measured = self._run(
            block, requests, fit.sizes, warmups, cycles=cycles, limit_ns=stop_ns, together=together
        )
        apart_ns = self._apart_ns.get(pair, 0.0)
        if (
            block[0].block == 1
            and len(set(placements)) < len(placements)
            and apart_ns <= _APART_SHARE * limit_ns
        ):
            begun_ns = self._clock.monotonic_ns()
            measured = replace(measured, arms=self._counted_apart(block, requests, fit, measured.arms))
            self._apart_ns[pair] = float(self._clock.monotonic_ns() - begun_ns)
        if all(arm.outcome == Outcome.COMPLETE for arm in measured.arms):
            times = self._times(block, measured.arms)
            self._fits[pair] = self._fit_to(block, times, fit.pilot.rows_each, fit.operations)
        kind = None if fit.long_ns is None else long
        return [
            (trial, replace(arm, long_slices=kind)) for trial, arm in zip(block, measured.arms, strict=True)
        ]

    def _counted_apart(
        self, block: Block, requests: Sequence[TrialRequest], fit: Fit, measured: Sequence[Measurement]
    ) -> tuple[Measurement, ...]:
        """Return measurements with counters for arms that share a database, and therefore its counters.

        A few untimed operations of each arm alone provide them: in the first round, and once in each later
        round if that takes a small part of its time.
        """
        found = []
        for place, (trial, measurement) in enumerate(zip(block, measured, strict=True)):
            if (
                measurement.outcome != Outcome.COMPLETE
                or self._homes_of(block).count(self._homes_of([trial])[0]) == 1
            ):
                found.append(measurement)
                continue
            size = SliceSize(operations=max(1, int(SLICE_NS / fit.pilot.operation_ns[place])))
            seen = self._run((trial,), [requests[place]], (size,), [0], cycles=1, limit_ns=None)
            found.append(replace(measurement, counters=seen.arms[0].counters))
        return tuple(found)

    def _going_on(self, block: Block, changes: _Changes, needed: int, allowed: int) -> list[TrialRequest]:
        """Return requests whose parameters continue where the previous block stopped."""
        found = []
        for trial in block:
            first = replace(trial, round=changes.first.round, block=changes.first.block)
            request, _ = self.request(first, rows=changes.operations + max(needed, allowed))
            if isinstance(request, LoadRequest):
                begin = changes.operations
                columns = [column[begin : begin + needed] for column in request.parameters]
                request = replace(request, parameters=columns)
            found.append(request)
        return found

    def _run(
        self,
        block: Block,
        requests: Sequence[TrialRequest],
        sizes: tuple[SliceSize, ...],
        warmups: Sequence[int],
        *,
        cycles: int,
        limit_ns: int | None,
        together: int = CYCLES_TOGETHER,
    ) -> BlockMeasurement:
        """Run slices between two readings of every arm's counters, and note whose data has changed."""
        spec, placements = self._spec, self._homes_of(block)
        served = [self._served(trial) for trial in block]
        deadline_ns = (limit_ns or 0) + spec.stop.trial_timeout
        request = BlockRequest(
            arms=tuple(
                replace(request, warmup_operations=warmup, deadline_ns=deadline_ns)
                for request, warmup in zip(requests, warmups, strict=True)
            ),
            sizes=sizes,
            cycles=cycle_order(len(block), cycles, _stream(spec, block[0])),
            together=together,
            limit_ns=limit_ns,
        )
        updates = any(reads_updates(request) for request in requests)
        before = [self._server.snapshot(*home, updates=updates) for home in placements]
        used = [self._manager.cpu_ns(service) for service in served]
        measured = self._load.run_block(request)
        found = [
            self._manager.examined(arm, service) for arm, service in zip(measured.arms, served, strict=True)
        ]
        if any(measurement.outcome == Outcome.CONNECTION_LOST for measurement in found):
            return replace(measured, arms=tuple(found))
        after = [self._server.snapshot(*home, updates=updates) for home in placements]
        now = [self._manager.cpu_ns(service) for service in served]
        for place, measurement in enumerate(found):
            alone = placements.count(placements[place]) == 1
            operations = measurement.started + warmups[place] + measurement.settling
            count = counted(before[place], after[place], operations) if alone else Counters(operations)
            count = with_service_cost(count, used[place], now[place])
            wrote = not (count.wal_records == 0 and count.shared_dirtied == 0)
            if spec.workloads[block[0].workload].state == "reset" and alone and wrote:
                self._dirty.add(placements[place])
            touched = disturbances(before[place], after[place], measurement)
            found[place] = replace(measurement, counters=count, disturbances=touched)
        slices = without_bursts(measured.slices)
        for place, measurement in enumerate(found):
            found[place] = replace(measurement, slices=tuple(part for part in slices if part.arm == place))
        return BlockMeasurement(tuple(found), slices)

    def _homes_of(self, block: Iterable[Trial]) -> list[Placement]:
        return [self._placements.of(trial.cell, trial.arm) for trial in block]

    def _clients(self, block: Block) -> int:
        return self._spec.clients(block[0].workload, dict(block[0].cell.levels))

    def _warmup(self, block: Block, operation_ns: float) -> int:
        return warmup_operations(self._spec.workloads[block[0].workload].warmup_operations, operation_ns)

    def _times(self, block: Block, measured: Iterable[Measurement]) -> tuple[float, ...]:
        clients = self._clients(block)
        return tuple(_operation_ns(measurement, clients) for measurement in measured)

    def _served(self, trial: Trial) -> Served | None:
        return self._manager.served(trial.cell, trial.arm) if self._manager.runs_for(trial.workload) else None


def without_bursts(slices: Sequence[Slice]) -> tuple[Slice, ...]:
    """Return the slices of a block, with cycles that other programs disturbed marked as set aside."""
    cycles: dict[int, list[Slice]] = {}
    for piece in slices:
        cycles.setdefault(piece.cycle, []).append(piece)
    delays = [[piece.waited_ns for piece in cycle] for cycle in cycles.values()]
    if any(None in delay for delay in delays):
        return tuple(slices)
    weights = cycle_weights(
        [sum(number or 0 for number in delay) for delay in delays],
        [sum(piece.elapsed_ns for piece in cycle) for cycle in cycles.values()],
    )
    aside = {number for number, weight in zip(cycles, weights, strict=True) if not weight}
    return tuple(replace(piece, aside=piece.cycle in aside) for piece in slices)


def _stream(spec: Spec, trial: Trial) -> str:
    return f"{spec.experiment.seed}/slices/{trial.round}/{trial.block}/{trial.cell.name}/{trial.workload}"


def _operation_ns(measured: Measurement, clients: int) -> float:
    """Return the mean time of an operation, from a measurement of a few."""
    if measured.operation is not None and measured.operation.executions:
        return max(measured.operation.sum_ns / measured.operation.executions, 1.0)
    return max(measured.elapsed_ns * clients / max(measured.started, 1), 1.0)


# ---- what the server and the machine did during a trial, from two readings of their counters ----


STEAL_SHARE = 0.01
"""A trial is marked as affected by steal if the hypervisor took more than this fraction of it."""

MEMORY_SHARE = 0.01
"""A trial is marked as affected by memory pressure if tasks waited for memory for more than this fraction of
it."""

OTHERS_SHARE = 0.05
OTHERS_NS = 100_000_000
"""A trial is marked as affected by other programs if they took more than `OTHERS_SHARE` of all processors and
more than this time: the kernel counts it in steps of 10 ms per processor."""

_UPDATE: Final = re.compile(r"\b(update|merge)\b", re.IGNORECASE)


def reads_updates(request: TrialRequest) -> bool:
    """Return whether a load has statements that may update rows, so that their counters are worth reading.

    A service keeps its connections, whose counters would arrive after the trial.
    """
    return isinstance(request, LoadRequest) and any(
        _UPDATE.search(statement.sql) for statement in request.statements
    )


def counted(before: Snapshot, after: Snapshot, operations: int) -> Counters:
    """Return the differences of the server's counters between two readings."""

    def between(start: int | None, end: int | None) -> int | None:
        # The server evicts statements when it has seen too many, together with their costs.
        return None if start is None or end is None or end < start else end - start

    blocks = between(before.temp_blocks, after.temp_blocks)
    return Counters(
        operations=operations,
        shared_hit=between(before.shared_hit, after.shared_hit),
        shared_read=between(before.shared_read, after.shared_read),
        shared_dirtied=between(before.shared_dirtied, after.shared_dirtied),
        temp_bytes=None if blocks is None else blocks * 8192,
        wal_bytes=between(before.wal_bytes, after.wal_bytes),
        wal_records=between(before.wal_records, after.wal_records),
        queries=between(before.queries, after.queries),
        updated=between(before.updated, after.updated),
        hot_updated=between(before.hot_updated, after.hot_updated),
    )


def disturbances(before: Snapshot, after: Snapshot, measurement: Measurement) -> frozenset[Disturbance]:
    """Return what else happened on the machine during the measurement."""
    found = set()
    if before.checkpoint != after.checkpoint:
        found.add(Disturbance.CHECKPOINT)
    if before.autovacuum_workers or after.autovacuum_workers:
        found.add(Disturbance.AUTOVACUUM)
    if measurement.steal_ns > STEAL_SHARE * measurement.elapsed_ns:
        found.add(Disturbance.STEAL)
    if measurement.throttled_ns:
        found.add(Disturbance.THROTTLING)
    if measurement.strain is not None:
        found |= set(_strained(measurement.strain))
    return frozenset(found)


def _strained(strain: Strain) -> Iterator[Disturbance]:
    if (strain.memory or 0.0) > MEMORY_SHARE:
        yield Disturbance.MEMORY
    others = strain.others or 0.0
    if others > OTHERS_SHARE and others * strain.processors_ns > OTHERS_NS:
        yield Disturbance.OTHERS
