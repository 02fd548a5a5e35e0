"""Run trials through the ports, round after round, until enough is known or the budget is spent.

The runner computes no statistics and touches nothing outside directly: the ledger judges, the ports act. It
is an iterator of events, so the consumer decides what to show. Closing it, or an exception such as
KeyboardInterrupt, keeps every trial measured so far.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace

from uncork.errors import BudgetTooShort, ServerCrash, ServiceCrash
from uncork.experiment.plan.allotment import (
    OVERHEAD_NS,
    end_of_rounds,
    latest_end,
    reserved_ns,
    round_share,
    shares,
)
from uncork.experiment.plan.evidence_time import evidence_ns, sampling
from uncork.experiment.plan.feasibility import budget_shortage, setup_notice
from uncork.experiment.plan.order import Visit, arms, plan_round
from uncork.experiment.plan.placement import Placement, Placements
from uncork.experiment.plan.slicing import BLOCK_NS, block_count, has_long_slices
from uncork.experiment.ports import Clock, Evidence, Load, Observers, Server, Services, Sink, Until
from uncork.experiment.run.events import (
    BudgetShort,
    Event,
    Evidenced,
    Finished,
    Preparing,
    Recovered,
    RoundEnded,
    RoundStarted,
    TrialEnded,
)
from uncork.experiment.run.evidence_trials import evidence_places
from uncork.experiment.run.http_request import reads_only
from uncork.experiment.run.ledger import Compared, Ledger
from uncork.experiment.run.measuring import Measuring
from uncork.experiment.run.preparation import Preparation
from uncork.experiment.run.request import undo_for
from uncork.experiment.run.service_manager import ServiceManager
from uncork.experiment.spec.schema import Spec
from uncork.model.engine import POSTGRESQL
from uncork.model.measurement import Measurement, Outcome
from uncork.model.trial import Arm, Cell, Trial
from uncork.model.units import count_words, format_duration
from uncork.model.variant_evidence import Sampling

MAXIMUM_CRASHES = 3
"""A run stops after this many crashes of the server, because it then measures the crash, not the question."""

MOST_BLOCKS = 100
"""Maximum number of blocks of one comparison per round: they are short if data must be restored often."""

_STRETCH = 2
"""A block of long slices may take this many times its share of a round."""

Pair = tuple[Cell, str]
"""A cell and a workload: what one block measures."""

_WENT = {False: "the server crashed", True: "a service failed"}


class Runner:
    """One execution of an experiment, or one attempt of an interrupted one.

    Args:
        spec: the experiment.
        server: where its data lives.
        load: sends the trials.
        sink: stores the results.
        clock: measures the budget.
        ledger: what is known; a resumed run includes the trials of its earlier attempts.
        first_round: number of the first round to run: 1, or one past the last round of earlier attempts.
        spent_ns: budget used by earlier attempts.
        observers: run beside the trials of variants that request them.
        evidence: looks at the server in extra trials, after the timed ones.
        services: starts and ends the services beside the server.
        until: decides what still needs trials. Default: the ledger, by the requested precision.
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
        spent_ns: int = 0,
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
        self._rounds_done = first_round - 1
        self._evidence = evidence
        self._until = until
        self._start_ns = clock.monotonic_ns()
        self._spent_ns = spent_ns
        self._before_ns = self._after_ns = self._rounds_end_ns = self._latest_end_ns = 0
        self._placements = Placements(spec)
        self._manager = ServiceManager(spec, server, services, self._placements)
        self._preparation = Preparation(
            spec, server, load, sink, ledger, self._placements, self._manager, clock
        )
        self._measuring = Measuring(
            spec, server, load, self._placements, self._manager, self._preparation, observers, clock
        )
        self._least_ns: dict[Pair, float] = {}
        self._overhead_ns = float(OVERHEAD_NS)
        self._overspent = 1.0
        self._rounds_planned = 0
        self._measured_ns = 0
        self._lengths = Sampling(0, 0)
        self._pending: list[tuple[Trial, Measurement]] = []
        self._done = 0
        self._failed = 0
        self._crashes = 0

    def events(self) -> Iterator[Event]:
        """Run, and yield each step. The budget is for all of it: set-up, rounds, evidence and the report.

        It is exceeded by a tenth at most, for rounds that a verdict needs, and by a step that cannot be
        divided: filling a table, or an operation.

        Raises:
            BudgetTooShort: set-up took all of it.
            SetupError, ConnectError: nothing could be measured.
            ServerCrash: the server does not come back, or crashes repeatedly.
            StoreError: results can no longer be stored.
        """
        try:
            yield from self._prepare()
            self._measuring.mark_dirty(self._unclean())
            yield from self._size_rounds()
            yield from self._divide_budget()
            finished = yield from self._rounds()
            if not self._done and not finished.is_empty and self._until is None:
                budget = format_duration(self._spec.stop.budget)
                raise BudgetTooShort(
                    f"the budget of {budget} ended before the first trial, so nothing was measured; "
                    "raise it with --budget, or measure fewer levels with --set"
                )
            yield from self._evidence_of_all()
            yield replace(finished, elapsed_ns=self._elapsed())
        finally:
            self._flush()

    def _prepare(self) -> Iterator[Event]:
        """Prepare; announce once that set-up takes a large part of the budget, and end if it takes all."""
        is_announced = False
        left_ns = max(self._spec.stop.budget - self._spent_ns, 0)
        for event in self._preparation.events():
            yield event
            if not isinstance(event, Preparing):
                continue
            self._check_setup(event.done, event.total)
            text = setup_notice(left_ns, self._elapsed(), done=event.done, steps=event.total)
            if text and not is_announced:
                is_announced = True
                yield BudgetShort(text)

    def _check_setup(self, done: int = 0, steps: int = 1) -> None:
        """End the first attempt if its set-up, with `done` of similar `steps`, has used all of the budget.

        Raises:
            BudgetTooShort: with what set-up takes.
        """
        if self._first_round == 1 and self._elapsed() > latest_end(self._spec.stop.budget, 0):
            text = setup_notice(self._spec.stop.budget, self._elapsed(), done=done, steps=steps)
            raise BudgetTooShort(f"nothing was measured: {text}")

    def _size_rounds(self) -> Iterator[Event]:
        """Go once through what a round does besides measuring, with a first look at each workload.

        So the first round is planned as well as the later ones, and all of them measure about equally long:
        in the statistics they count alike.
        """
        begun_ns = self._clock.monotonic_ns()
        pairs = {pair for pair in self._open_pairs() if self._measuring.interleaves(*pair)}
        if not pairs:
            return
        yield Preparing("sizing the rounds", 0, 1)
        for visit in plan_round(self._spec, self._first_round, active=pairs, refused=self._ledger.refused):
            try:
                self._begin_visit(visit)
                for block in visit.blocks:
                    if block[0].block == 1:
                        self._check_setup()
                        fitted_ns = self._clock.monotonic_ns()
                        self._measuring.fit(self._measuring.parted(block)[0])
                        took_ns = float(self._clock.monotonic_ns() - fitted_ns)
                        self._least_ns[block[0].comparison_key] = took_ns
                        begun_ns += int(took_ns)
            except ServerCrash as crash:
                yield self._after_crash(visit.cell, crash)
                break
            finally:
                self._manager.end()
        self._overhead_ns += self._clock.monotonic_ns() - begun_ns

    def _divide_budget(self) -> Iterator[Event]:
        """Set when the rounds end, and warn if the budget is too short."""
        spec, stop, refused = self._spec, self._spec.stop, self._ledger.refused
        times = self._preparation.operation_ns
        sampled = (
            0
            if self._evidence is None
            else sum(spec.engine(variant) == POSTGRESQL for _, _, variant in evidence_places(spec, refused))
        )
        self._lengths = sampling(spec.experiment.evidence, sampled, stop.budget)
        gathering_ns = sampled * evidence_ns(self._lengths)
        self._before_ns, self._after_ns = self._elapsed(), reserved_ns(stop.budget, gathering_ns)
        left_ns = max(stop.budget - self._spent_ns, 0)
        self._rounds_end_ns = self._spent_ns + end_of_rounds(
            left_ns, before_ns=self._before_ns, after_ns=self._after_ns
        )
        self._latest_end_ns = self._spent_ns + latest_end(left_ns, self._after_ns)
        if self._first_round == 1 and (
            shortage := budget_shortage(
                spec, times, refused, setup_ns=self._before_ns, evidence_ns=gathering_ns
            )
        ):
            yield BudgetShort(shortage)

    # ---- rounds ----

    def _rounds(self) -> Generator[Event, None, Finished]:
        stop = self._spec.stop
        number = self._first_round
        nothing = self._ledger.nothing_left() if self._until is None else None
        if nothing is not None:
            return Finished(number - 1, 0, 0, nothing, self._elapsed(), is_empty=True)
        reason = f"the maximum number of rounds ({stop.maximum_rounds}) was reached"
        while number < self._first_round + stop.maximum_rounds:
            open_pairs = self._open_pairs()
            if not open_pairs:
                reason = f"every comparison is decided, or as precise as asked (±{stop.precision:.1%})"
                reason = reason if self._until is None else self._until.reason
                break
            if self._fits_no_round(open_pairs):
                reason = f"the budget of {format_duration(stop.budget)} is spent"
                if self._server.restartable and number - 1 < stop.verdict_rounds:
                    held = count_words(number - 1, "round")
                    reason += f"; it was enough for {held}, but a verdict needs {stop.verdict_rounds}"
                break
            begun = self._clock.monotonic_ns()
            if number > self._first_round:
                self._server.restart()
            done = number - self._first_round
            share_ns = self._round_share(done, open_pairs)
            yield from self._round(number, open_pairs, share_ns, begun)
            self._overspent = max((self._clock.monotonic_ns() - begun) / max(share_ns, 1), 1.0)
            self._rounds_done = number
            number += 1
        return Finished(number - 1, self._done, self._failed, reason, self._elapsed())

    def _round_share(self, done: int, open_pairs: set[Pair]) -> int:
        """Return how long the next round may take, including the restart."""
        stop = self._spec.stop
        left_ns = float(max(self._rounds_end_ns - self._used(), 0))
        if done < stop.minimum_rounds:  # if the last round took too long, plan the next ones shorter
            left_ns /= self._overspent
        share_ns = round_share(
            int(left_ns),
            done=done,
            minimum=stop.minimum_rounds,
            maximum=stop.maximum_rounds,
            overhead_ns=self._overhead_ns,
            least_ns=self._least_round_ns(open_pairs),
        )
        if not done:
            self._rounds_planned = self._rounds_done + int(left_ns // max(share_ns, 1))
        return share_ns

    def _least_round_ns(self, open_pairs: set[Pair]) -> float:
        return self._overhead_ns + sum(self._least_ns.get(pair, BLOCK_NS) for pair in open_pairs)

    def _round(self, number: int, open_pairs: set[Pair], time_ns: int, begun_ns: int) -> Iterator[Event]:
        settled = self._settled()
        visits = plan_round(
            self._spec, number, active=open_pairs, refused=self._ledger.refused, settled=settled
        )
        trials = sum(len(block) for visit in visits for block in visit.blocks)
        compared = self._ledger.compared()
        comparisons = sum(pair[:2] in open_pairs and pair not in settled for pair in compared)
        yield RoundStarted(number, trials, comparisons, self._elapsed(), self._used())
        pairs = sorted(open_pairs)
        spent_ns = self._clock.monotonic_ns() - begun_ns
        time_ns -= int(max(self._overhead_ns, spent_ns))
        least = [self._least_ns.get(pair, 0.0) for pair in pairs]
        # A workload with trials of a given length runs all its blocks, if that leaves time for later rounds.
        needed = max(self._spec.stop.minimum_rounds - (number - self._first_round), 1)
        promised_ns = max(self._rounds_end_ns - self._used(), 0) / needed
        allotted = {
            pair: short if self._measuring.interleaves(*pair) else long
            for pair, short, long in zip(
                pairs, shares(time_ns, least), shares(promised_ns, least), strict=True
            )
        }
        self._measured_ns = 0
        for visit in visits:
            if self._over_budget():
                break
            try:
                yield from self._visit(visit, allotted)
            except ServerCrash as crash:
                yield self._after_crash(visit.cell, crash)
                break
            finally:
                self._flush()
                self._manager.end()
        self._overhead_ns = float(self._clock.monotonic_ns() - begun_ns - self._measured_ns)
        if number == self._first_round and self._server.restartable:
            self._overhead_ns += OVERHEAD_NS  # only later rounds begin with a restart
        still_open, settled = self._open_pairs(), self._settled()
        still = [pair for pair in compared if pair[:2] in still_open and pair not in settled]
        widest, name = self._ledger.widest(still)
        done = len(compared) - len(still)
        yield RoundEnded(number, done, len(compared), widest, name, self._elapsed())

    def _settled(self) -> set[Compared]:
        """Return the comparisons to leave out; none if `until` decides what is open."""
        return self._ledger.settled() if self._until is None else set()

    def _open_pairs(self) -> set[Pair]:
        return self._ledger.open_pairs() if self._until is None else self._until.open_pairs()

    def _visit(self, visit: Visit, allotted: Mapping[Pair, float]) -> Iterator[Event]:
        """Run a cell's blocks. A crash of the server ends the round, because a new server process follows."""
        self._begin_visit(visit)
        self._warm_up(visit)
        spent: dict[Pair, float] = defaultdict(float)
        # Workloads that change data come last, so the others find it unchanged.
        for block in sorted(visit.blocks, key=lambda block: self._measuring.writes(block[0].comparison_key)):
            if self._over_budget():
                return
            pair, begun = block[0].comparison_key, self._clock.monotonic_ns()
            if self._measuring.interleaves(*pair):
                yield from self._turns(block, allotted[pair])
            elif block[0].block == 1 or spent[pair] + self._least_ns[pair] <= allotted[pair]:
                yield from self._one_by_one(block)
                self._least_ns[pair] = float(self._clock.monotonic_ns() - begun)
            took_ns = self._clock.monotonic_ns() - begun
            spent[pair] += took_ns
            self._measured_ns += took_ns

    def _begin_visit(self, visit: Visit) -> None:
        """Warm the data of a cell's arms, and start their services."""
        present = {trial.arm for block in visit.blocks for trial in block}
        self._measuring.warm(self._placements.of(visit.cell, arm) for arm in sorted(present))
        self._manager.start(visit)

    def _one_by_one(self, block: tuple[Trial, ...]) -> Iterator[Event]:
        for trial in block:
            measurement = self._measuring.trial(trial)
            yield from self._kept(trial, measurement)

    def _turns(self, block: tuple[Trial, ...], time_ns: float) -> Iterator[Event]:
        """Measure blocks of a workload whose arms take turns, for as long as allowed."""
        begun = self._clock.monotonic_ns()
        pair = block[0].comparison_key
        block, alone = self._measuring.parted(block)
        fit = self._measuring.fit(block)
        overhead_ns = max(self._least_ns.get(pair, 0.0) - fit.least_ns, 0.0)
        blocks = block_count(time_ns, fit.cycle_ns, overhead_ns)
        long = False
        if fit.long_ns is not None:
            # A check may take more than its share after the rounds that a verdict needs.
            stretch = _STRETCH if block[0].round > self._spec.stop.minimum_rounds else 1
            fits = overhead_ns + fit.long_ns <= stretch * time_ns
            disturbed = self._ledger.is_disturbed(pair)
            long = disturbed or (fits and has_long_slices(block[0].round, self._rounds_planned))
        if long and fit.long_ns is not None:
            time_ns = max(time_ns, overhead_ns + fit.long_ns)
            blocks = 1
        number = 1
        while True:
            left_ns = time_ns - (self._clock.monotonic_ns() - begun)
            each_ns = left_ns / max(blocks - number + 1, 1)
            limit_ns = int(max(each_ns - overhead_ns, 1.0))
            started = self._clock.monotonic_ns()
            measured = self._measuring.block(
                tuple(replace(trial, block=number) for trial in block), limit_ns=limit_ns, long=long
            )
            for trial, measurement in measured:
                yield from self._kept(trial, measurement)
            yield from self._one_by_one(tuple(replace(trial, block=number) for trial in alone))
            now = self._clock.monotonic_ns()
            timed_ns = sum(measurement.elapsed_ns for _, measurement in measured)
            overhead_ns = max(now - started - timed_ns, 0.0)
            fit = self._measuring.fit(block)  # as the block showed it
            least_ns = self._least_ns[pair] = overhead_ns + fit.least_ns
            number += 1
            another_ns = max(least_ns, (now - started) / 2)
            if number > MOST_BLOCKS or self._over_budget() or now - begun + another_ns > time_ns:
                return

    def _kept(self, trial: Trial, measurement: Measurement) -> Iterator[Event]:
        """Store a trial and yield its event. Raises ServerCrash if its server is gone."""
        self._keep(trial, measurement)
        yield TrialEnded(trial, measurement, self._done, self._elapsed())
        if measurement.outcome == Outcome.CONNECTION_LOST:
            raise self._crash(trial, measurement.message)

    def _crash(self, trial: Trial, message: str | None) -> ServerCrash:
        kind = ServiceCrash if self._manager.runs_for(trial.workload) else ServerCrash
        return kind(message or "the connection was lost")

    def _warm_up(self, visit: Visit) -> None:
        """Run one trial of each workload with an undo, without storing it, and undo it.

        After the checkpoint of a restart, the first change of a page writes the whole page to the log. If the
        arms share their data, the first trial would pay for all of them.
        """
        order = [arm.variant for arm in arms(self._spec)]
        found: dict[str, Trial] = {}
        for trial in sorted(itertools.chain(*visit.blocks), key=lambda trial: order.index(trial.arm.variant)):
            if self._spec.undoing(trial.workload, trial.arm.variant):
                found[trial.workload] = trial
        for last in found.values():
            measurement = self._measuring.trial(last)
            if measurement.outcome == Outcome.CONNECTION_LOST:
                raise self._crash(last, measurement.message)

    # ---- evidence ----

    def _evidence_of_all(self) -> Iterator[Event]:
        """Collect evidence of each variant, when no timed trials are left to disturb."""
        if self._evidence is None or not self._done:
            return
        for place in evidence_places(self._spec, self._ledger.refused):
            try:
                lack = self._gather(self._evidence, place)
            except ServerCrash as crash:
                lack = f"{_WENT[isinstance(crash, ServiceCrash)]}: {crash}"
                self._bring_back(place[0], crash)
            finally:
                self._manager.end()
            yield Evidenced(*place, lack, self._elapsed())

    def _gather(self, evidence: Evidence, place: tuple[Cell, str, str]) -> str | None:
        cell, workload, variant = place
        trial = Trial(0, 0, 0, cell, workload, Arm(variant))
        home = self._placements.of(cell, trial.arm)
        self._measuring.warm([home])
        request, _ = self._measuring.request(trial)
        lack = evidence.gather(place, self._spec.experiment.evidence, request, self._load, self._lengths)
        undo = undo_for(self._spec, cell, workload, variant)
        if undo:
            self._server.undo(*home, undo)
        elif self._spec.workloads[workload].state == "reset":
            self._measuring.mark_dirty([home])
        return lack

    def _unclean(self) -> set[Placement]:
        """Return the placements that the answer checks have changed permanently."""
        homes = {
            self._placements.of(cell, arm)
            for cell, workload in self._ledger.open_pairs()
            for arm in arms(self._spec, workload)
            if not self._spec.undoing(workload, arm.variant) and not reads_only(self._spec, workload)
        }
        return {home for home in homes if self._preparation.is_changed(home)}

    def _after_crash(self, cell: Cell, crash: ServerCrash) -> Event:
        self._crashes += 1
        went = _WENT[isinstance(crash, ServiceCrash)]
        if self._crashes >= MAXIMUM_CRASHES:
            raise ServerCrash(
                f"{went} {self._crashes} times, most recently{cell.at}: {crash}; results so far are kept"
            ) from crash
        self._bring_back(cell, crash)
        return Recovered(cell, f"{went}{cell.at} and was restarted: {crash}")

    def _bring_back(self, cell: Cell, crash: ServerCrash) -> None:
        """End the services, which restart when needed; recover the server if it is gone."""
        self._manager.end()
        if not isinstance(crash, ServiceCrash) or not self._server.alive:
            self._server.recover()
            self._measuring.mark_dirty(self._placements.in_cell(cell))

    # ---- results ----

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

    def _used(self) -> int:
        """Return the used part of the budget."""
        return self._spent_ns + self._elapsed()

    def _over_budget(self) -> bool:
        if self._needs_rounds():
            return self._used() >= max(self._latest_end_ns, self._rounds_end_ns)
        return self._used() >= self._rounds_end_ns

    def _needs_rounds(self) -> bool:
        """Return whether a verdict needs more rounds; on an existing server, it needs blocks instead."""
        needed = self._spec.stop.verdict_rounds if self._server.restartable else 1
        return self._rounds_done < needed

    def _fits_no_round(self, open_pairs: set[Pair]) -> bool:
        """Return whether the time left is too short for another round."""
        if self._needs_rounds():
            return self._over_budget()
        return self._used() + self._least_round_ns(open_pairs) > self._rounds_end_ns
