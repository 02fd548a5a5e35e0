"""Drives trials through the ports, round after round, until enough is known or the budget is spent.

The runner computes no statistics and touches nothing of the world by itself: the ledger judges, the ports
act. It is an iterator of events, so that whoever consumes it decides what to show; closing it, or an
exception such as KeyboardInterrupt, keeps every trial measured so far.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Iterator
from dataclasses import replace

from uncork.errors import ServerCrash, ServiceCrash, SetupError
from uncork.experiment.beside import Beside, with_service_cost
from uncork.experiment.events import (
    Event,
    Evidenced,
    Finished,
    Recovered,
    RoundEnded,
    RoundStarted,
    TrialEnded,
)
from uncork.experiment.evidence import evidence_places
from uncork.experiment.homes import Home, Homes
from uncork.experiment.http_request import http_trial
from uncork.experiment.ledger import Ledger
from uncork.experiment.plan import Visit, arms, plan_round
from uncork.experiment.ports import Clock, Evidence, Load, Observers, Server, Services, Sink, Until
from uncork.experiment.preparation import Preparation
from uncork.experiment.request import trial_request, undo_for
from uncork.experiment.spec import Spec
from uncork.model.http_trial import TrialRequest
from uncork.model.measurement import Counters, Disturbance, Measurement, Outcome
from uncork.model.server import Snapshot
from uncork.model.service import Served
from uncork.model.system import Strain
from uncork.model.trial import Arm, Cell, Trial
from uncork.model.units import format_duration

__all__ = ["MAXIMUM_CRASHES", "Runner"]

MAXIMUM_CRASHES = 3
"""After so many crashes of the server a run stops: it measures the crash, not the question."""

_WENT = {False: "the server crashed", True: "a service went away"}

STEAL_SHARE = 0.01
"""A trial counts as touched by steal when the hypervisor took more than this share of it."""

MEMORY_SHARE = 0.01
"""As touched by pressure on memory, when tasks waited for it in more than this share of its time."""

OTHERS_SHARE = 0.05
OTHERS_NS = 100_000_000
"""As touched by the work of others, when that took more than this share of all processors, and more than this
time: the kernel counts it in steps of 10 ms a processor."""


class Runner:
    """One execution, or one sitting of it.

    Args:
        spec: the experiment.
        server: where its data lives.
        load: what sends the trials.
        sink: where results go.
        clock: tells the budget.
        ledger: what is known; a resumed run brings the trials of its earlier sittings.
        first_round: the number of the first round to run: 1, or one past the last of earlier sittings.
        start_ns: the clock's reading when the budget began to run.
        observers: what watches the trials of variants that say so.
        evidence: what looks at the server in trials of their own, when the timed ones are over.
        services: what starts and ends what runs beside the server.
        until: says what still needs trials; by the ledger, whatever is not as precise as asked, if absent.
    """

    def __init__(
        self,
        spec: Spec,
        server: Server,
        load: Load,
        sink: Sink,
        clock: Clock,
        ledger: Ledger,
        *,
        first_round: int = 1,
        start_ns: int | None = None,
        observers: Observers | None = None,
        evidence: Evidence | None = None,
        services: Services | None = None,
        until: Until | None = None,
    ) -> None:
        self._spec = spec
        self._server = server
        self._load = load
        self._sink = sink
        self._clock = clock
        self._ledger = ledger
        self._first_round = first_round
        self._observers = observers
        self._evidence = evidence
        self._until = until
        self._start_ns = clock.monotonic_ns() if start_ns is None else start_ns
        self._homes = Homes(spec)
        self._beside = Beside(spec, server, services, self._homes)
        self._preparation = Preparation(spec, server, load, sink, ledger, self._homes, self._beside)
        self._dirty: set[Home] = set()
        self._pending: list[tuple[Trial, Measurement]] = []
        self._done = 0
        self._failed = 0
        self._crashes = 0

    def events(self) -> Iterator[Event]:
        """Run, telling each step.

        Raises:
            SetupError, ConnectError: nothing could be measured.
            ServerCrash: the server does not come back, or crashes again and again.
            StoreError: results can no longer be kept.
        """
        try:
            yield from self._preparation.events()
            self._dirty = self._unclean()
            if self._over_budget():
                raise SetupError(
                    f"making the data took {format_duration(self._elapsed())}, which is the whole budget of "
                    f"{format_duration(self._spec.stop.budget)}: no block could be measured; raise it with "
                    "--budget, or measure fewer levels with --set"
                )
            finished = yield from self._rounds()
            yield from self._evidence_of_all()
            yield replace(finished, elapsed_ns=self._elapsed())
        finally:
            self._flush()

    # ---- rounds ----

    def _rounds(self) -> Generator[Event, None, Finished]:
        stop = self._spec.stop
        number = self._first_round
        reason = f"the most rounds asked for ({stop.maximum_rounds}) were run"
        while number < self._first_round + stop.maximum_rounds:
            open_pairs = self._open_pairs()
            if not open_pairs:
                reason = f"every comparison is as precise as asked (±{stop.precision:.1%})"
                reason = reason if self._until is None else self._until.reason
                break
            if self._over_budget():
                reason = f"the budget of {format_duration(stop.budget)} is spent"
                break
            if number > self._first_round:
                self._server.restart()
            yield from self._round(number, open_pairs)
            number += 1
        return Finished(number - 1, self._done, self._failed, reason, self._elapsed())

    def _round(self, number: int, open_pairs: set[tuple[Cell, str]]) -> Iterator[Event]:
        visits = plan_round(self._spec, number, active=open_pairs, refused=self._ledger.refused)
        trials = sum(len(block) for visit in visits for block in visit.blocks)
        comparisons = sum(len(self._ledger.variants(*pair)) for pair in open_pairs)
        yield RoundStarted(number, trials, comparisons, self._elapsed())
        for visit in visits:
            if self._over_budget():
                break
            try:
                yield from self._visit(visit)
            except ServerCrash as crash:
                yield self._after_crash(visit.cell, crash)
                break
            finally:
                self._flush()
                self._beside.end()
        left = self._open_pairs()
        total = sum(
            len(self._ledger.variants(cell, name))
            for cell, name in {_block_key(visit, block) for visit in visits for block in visit.blocks}
        )
        widest, name = self._ledger.widest(left)
        still = sum(len(self._ledger.variants(*pair)) for pair in left)
        yield RoundEnded(number, max(total - still, 0), total, widest, name, self._elapsed())

    def _open_pairs(self) -> set[tuple[Cell, str]]:
        return self._ledger.open_pairs() if self._until is None else self._until.open_pairs()

    def _visit(self, visit: Visit) -> Iterator[Event]:
        """Run a cell's blocks. A crash of the server ends the round: its process is another one after."""
        present = {trial.arm for block in visit.blocks for trial in block}
        for home in dict.fromkeys(self._homes.of(visit.cell, arm) for arm in sorted(present)):
            if home in self._dirty:
                self._beside.restore(home)
                self._dirty.discard(home)
            self._server.warm(*home)
        self._beside.start(visit)
        self._rehearse(visit)
        for block in visit.blocks:
            if self._over_budget():
                return
            for trial in block:
                measurement = self._measure(trial)
                self._keep(trial, measurement)
                yield TrialEnded(trial, measurement, self._done, self._elapsed())
                if measurement.outcome == Outcome.CONNECTION_LOST:
                    raise self._crash(trial, measurement.message)

    def _crash(self, trial: Trial, message: str | None) -> ServerCrash:
        kind = ServiceCrash if self._beside.runs_for(trial.workload) else ServerCrash
        return kind(message or "the connection was lost")

    def _rehearse(self, visit: Visit) -> None:
        """Run one trial of each workload with an undo, not to be kept, and undo it.

        After the checkpoint of a restart the first change of a page writes the whole page to the log. Where
        the arms share their data, the first trial would pay for all of them.
        """
        order = [arm.variant for arm in arms(self._spec)]
        found: dict[str, Trial] = {}
        for trial in sorted(itertools.chain(*visit.blocks), key=lambda trial: order.index(trial.arm.variant)):
            if self._spec.undoing(trial.workload, trial.arm.variant):
                found[trial.workload] = trial
        for last in found.values():
            measurement = self._measure(last)
            if measurement.outcome == Outcome.CONNECTION_LOST:
                raise self._crash(last, measurement.message)

    # ---- evidence ----

    def _evidence_of_all(self) -> Iterator[Event]:
        """Gather evidence of each variant, when no timed trial is left to disturb."""
        if self._evidence is None or not self._done:
            return
        for place in evidence_places(self._spec, self._ledger.refused):
            try:
                lack = self._gather(self._evidence, place)
            except ServerCrash as crash:
                lack = f"{_WENT[isinstance(crash, ServiceCrash)]}: {crash}"
                self._bring_back(place[0], crash)
            finally:
                self._beside.end()
            yield Evidenced(*place, lack, self._elapsed())

    def _gather(self, evidence: Evidence, place: tuple[Cell, str, str]) -> str | None:
        cell, workload, variant = place
        trial = Trial(0, 0, 0, cell, workload, Arm(variant))
        home = self._homes.of(cell, trial.arm)
        if home in self._dirty:
            self._beside.restore(home)
            self._dirty.discard(home)
        self._server.warm(*home)
        request, _ = self._request(trial)
        lack = evidence.gather(place, self._spec.experiment.evidence, request, self._load)
        undo = undo_for(self._spec, cell, workload, variant)
        if undo:
            self._server.undo(*home, undo)
        elif self._spec.workloads[workload].state == "reset":
            self._dirty.add(home)
        return lack

    def _unclean(self) -> set[Home]:
        """Return the homes that the answer checks have changed for good."""
        return {
            self._homes.of(cell, arm)
            for cell, workload in self._ledger.open_pairs()
            for arm in arms(self._spec, workload)
            if not self._spec.undoing(workload, arm.variant)
        }

    def _after_crash(self, cell: Cell, crash: ServerCrash) -> Event:
        self._crashes += 1
        went = _WENT[isinstance(crash, ServiceCrash)]
        if self._crashes >= MAXIMUM_CRASHES:
            raise ServerCrash(
                f"{went} {self._crashes} times, last{cell.at}: {crash}; what was measured is kept"
            ) from crash
        self._bring_back(cell, crash)
        return Recovered(cell, f"{went}{cell.at} and was started again: {crash}")

    def _bring_back(self, cell: Cell, crash: ServerCrash) -> None:
        """End the services, which start again when they are needed; bring the server back if it is gone."""
        self._beside.end()
        if not isinstance(crash, ServiceCrash) or not self._server.alive:
            self._server.recover()
            self._dirty |= set(self._homes.in_cell(cell))

    # ---- one trial ----

    def _measure(self, trial: Trial) -> Measurement:
        home = self._homes.of(trial.cell, trial.arm)
        facts = self._spec.workloads[trial.workload]
        undo = undo_for(self._spec, trial.cell, trial.workload, trial.arm.variant)
        if home in self._dirty:
            self._beside.restore(home)
            self._server.warm(*home)
            self._dirty.discard(home)
        request, served = self._request(trial)
        before, used = self._server.snapshot(*home), self._beside.cpu_ns(served)
        measurement = self._beside.examined(self._observed(trial.arm.variant, request), served)
        if measurement.outcome == Outcome.CONNECTION_LOST:
            return measurement
        after = self._server.snapshot(*home)
        operations = measurement.started + request.warmup_operations
        counters = with_service_cost(_counters(before, after, operations), used, self._beside.cpu_ns(served))
        wrote = not (counters.wal_records == 0 and counters.shared_dirtied == 0)
        if undo:
            self._server.undo(*home, undo)
        elif facts.state == "reset" and wrote:
            self._dirty.add(home)
        return replace(measurement, counters=counters, disturbances=_disturbances(before, after, measurement))

    def _request(self, trial: Trial) -> tuple[TrialRequest, Served | None]:
        """Return what a trial sends, and the service that runs for it, if one does."""
        target = self._server.target(*self._homes.of(trial.cell, trial.arm))
        pools = self._preparation.pools(trial.cell, trial.workload, trial.arm.variant)
        served = self._beside.served(trial.cell, trial.arm) if self._beside.runs_for(trial.workload) else None
        if served is None or self._spec.workloads[trial.workload].http is None:
            return trial_request(self._spec, trial, target, pools), served
        return http_trial(self._spec, trial, target, served, pools), served

    def _observed(self, variant: str, request: TrialRequest) -> Measurement:
        """Carry out a trial, beside the variant's observer if it has one."""
        observer = self._spec.variants[variant].observe
        if observer is None or self._observers is None:
            return self._load.run(request)
        with self._observers.beside(observer, request.target) as watching:
            measurement = self._load.run(request)
        return replace(measurement, observer_ns=watching.cpu_ns)

    def _keep(self, trial: Trial, measurement: Measurement) -> None:
        self._pending.append((trial, measurement))
        self._ledger.add(trial, measurement)
        self._done += 1
        self._failed += measurement.outcome != Outcome.COMPLETE

    def _flush(self) -> None:
        if self._pending:
            self._sink.trials(self._pending)
            self._pending = []

    # ---- time ----

    def _elapsed(self) -> int:
        return self._clock.monotonic_ns() - self._start_ns

    def _over_budget(self) -> bool:
        return self._elapsed() >= self._spec.stop.budget


def _block_key(visit: Visit, block: tuple[Trial, ...]) -> tuple[Cell, str]:
    """Return the cell and workload that a block measures."""
    return (visit.cell, block[0].workload)


def _counters(before: Snapshot, after: Snapshot, operations: int) -> Counters:
    def between(start: int | None, end: int | None) -> int | None:
        # The server forgets statements when it has seen too many, and what they cost with them.
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
    )


def _disturbances(before: Snapshot, after: Snapshot, measurement: Measurement) -> frozenset[Disturbance]:
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
