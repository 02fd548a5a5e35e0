"""Trials in, effects and judgements out: what has been learned so far, and what still needs trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass

from uncork.experiment.plan import arms, cells
from uncork.experiment.spec import METRICS, Spec
from uncork.model.measurement import Measurement, Outcome
from uncork.model.trial import Arm, Cell, Trial
from uncork.model.verdict import Judgement, Verdict
from uncork.stats.compare import AnyEffect, judge, settled
from uncork.stats.effect import estimate
from uncork.stats.noise import NoiseFloor, noise_floor
from uncork.stats.proportion import Counted, ShareEffect, ShareUnits, estimate_share, share_units
from uncork.stats.sample import Observation, UnitKind, Units, block_units, noise_units, round_units

__all__ = ["Compared", "Judged", "Ledger"]

Compared = tuple[Cell, str, str]
"""A comparison: a cell, a workload, and the variant that stands against the baseline."""

Pair = tuple[Cell, str]
"""A cell and a workload: what one block measures."""

_NOTHING = Judgement(Verdict.NOT_ENOUGH_EVIDENCE, "no complete block was measured", ())


@dataclass(frozen=True, slots=True)
class Judged:
    """One comparison with its effect (None when nothing complete was measured) and its judgement."""

    cell: Cell
    workload: str
    variant: str
    effect: AnyEffect | None
    judgement: Judgement


class Ledger:
    """Collects the metric of every complete trial, and judges.

    Args:
        spec: the experiment.
        unit: what counts as one independent observation: the round where the server restarts between
            rounds, the block where it cannot.
    """

    def __init__(self, spec: Spec, unit: UnitKind) -> None:
        self._spec = spec
        self._unit = unit
        self._observations: dict[Pair, list[Observation]] = defaultdict(list)
        self._counts: dict[Pair, list[Counted]] = defaultdict(list)
        self._rounds: dict[Compared, set[int]] = defaultdict(set)
        self.refused: dict[tuple[Cell, str, str], str] = {}

    def add(self, trial: Trial, measurement: Measurement) -> None:
        """Enter a trial. One that is not complete does not count."""
        metric = self._spec.workloads[trial.workload].metric
        complete = measurement.outcome == Outcome.COMPLETE
        value = measurement.metric(metric) if complete else None
        self.add_value(trial, value, measurement.succeeded, measurement.started)

    def add_value(self, trial: Trial, value: float | None, succeeded: int = 0, started: int = 0) -> None:
        """Enter a trial by the value of its workload's metric, None if it has none, and its counts."""
        place = (trial.round, trial.block, trial.arm.name)
        self._rounds[trial.cell, trial.workload, trial.arm.variant].add(trial.round)
        if value is None:
            return
        if self._spec.workloads[trial.workload].metric == "success":
            if started:
                self._counts[trial.comparison_key].append(Counted(*place, succeeded, started))
        elif value > 0:
            self._observations[trial.comparison_key].append(Observation(*place, value))

    def variants(self, cell: Cell, workload: str) -> list[str]:
        """Return the variants compared with the baseline here: all that were not refused."""
        return [
            arm.variant
            for arm in arms(self._spec, workload)[2:]
            if (cell, workload, arm.variant) not in self.refused
        ]

    def compared(self) -> list[Compared]:
        """Return every comparison of the experiment that was not refused, in the order of the file."""
        return [
            (cell, workload, variant)
            for cell in cells(self._spec)
            for workload in self._spec.workloads
            for variant in self.variants(cell, workload)
        ]

    def settled(self) -> set[Compared]:
        """Return the comparisons that need no more trials; see `stats.compare.settled`.

        It follows from the trials alone: a resumed run leaves out what the run before had left out. A
        comparison that is settled stays so, since it gets no more trials.
        """
        found = self.compared()
        done = settled(
            [self.effect(*one) for one in found],
            precision=[self._spec.precision(workload) for _, workload, _ in found],
            practical=[self._spec.practical(workload) for _, workload, _ in found],
            confidence=self._spec.stop.confidence,
            minimum_rounds=self._spec.stop.minimum_rounds,
        )
        return {one for one, left in zip(found, done, strict=True) if left}

    def nothing_left(self) -> str | None:
        """Return why nothing can be measured, if every comparison was refused or skipped; else None."""
        if not self.refused or self.compared():
            return None
        (cell, workload, variant), reason = next(iter(self.refused.items()))
        return (
            "nothing was measured, as every comparison was refused or skipped; the first, "
            f"{variant} on {workload}{cell.at}: {reason}"
        )

    def open_pairs(self) -> set[Pair]:
        """Return the (cell, workload) pairs in which some comparison needs more trials."""
        left = self.settled()
        return {one[:2] for one in self.compared() if one not in left}

    def widest(self, comparisons: Collection[Compared]) -> tuple[float | None, str]:
        """Return the largest finite half-width among some comparisons, and that comparison's name."""
        found: tuple[float | None, str] = (None, "")
        for cell, workload, variant in comparisons:
            effect = self.effect(cell, workload, variant)
            width = None if effect is None else effect.half_width
            if width is not None and width < 1e6 and (found[0] is None or width > found[0]):
                found = (width, f"{variant} on {workload}{cell.at}")
        return found

    def effect(self, cell: Cell, workload: str, variant: str) -> AnyEffect | None:
        """Return a comparison's effect, or None when no block of it is complete."""
        confidence = self._spec.stop.confidence
        if self._spec.workloads[workload].metric == "success":
            counted = self._share_units((cell, workload), variant)
            return estimate_share(counted, confidence) if len(counted) else None
        units = self._units(cell, workload, variant)
        return estimate(units, confidence) if len(units) else None

    def judgements(self) -> list[Judged]:
        """Judge every comparison that was not refused, all together."""
        stop = self._spec.stop
        compared = [(*one, self.effect(*one)) for one in self.compared()]
        known = [entry for entry in compared if entry[3] is not None]
        judged = judge(
            [effect for *_, effect in known if effect is not None],
            better=[METRICS[self._spec.workloads[workload].metric] for _, workload, _, _ in known],
            practical=[self._spec.practical(workload) for _, workload, _, _ in known],
            confidence=stop.confidence,
            minimum_rounds=stop.minimum_rounds,
        )
        verdicts = {entry[:3]: judgement for entry, judgement in zip(known, judged, strict=True)}
        return [
            Judged(cell, workload, variant, effect, verdicts.get((cell, workload, variant), _NOTHING))
            for cell, workload, variant, effect in compared
        ]

    def noise(self) -> tuple[NoiseFloor | None, list[Pair]]:
        """Return the noise floor from the A/A arms, and the pairs that its effects belong to."""
        baseline = Arm(self._spec.baseline)
        again = Arm(self._spec.baseline, again=True)
        found = []
        for pair, observations in sorted(self._observations.items()):
            units = noise_units(observations, baseline=baseline.name, again=again.name, kind=self._unit)
            if len(units):
                found.append((pair, units))
        if not found:
            return None, []
        floor = noise_floor([units for _, units in found], self._spec.stop.confidence)
        return floor, [pair for pair, _ in found]

    def success_noise(self) -> list[tuple[Pair, ShareEffect]]:
        """Return the difference of the baseline's two shares of success, wherever success is compared."""
        found = []
        for pair in sorted(self._counts):
            units = self._share_units(pair, None)
            if len(units):
                found.append((pair, estimate_share(units, self._spec.stop.confidence)))
        return found

    def _share_units(self, pair: Pair, variant: str | None) -> ShareUnits:
        """Return the counts of a comparison with the baseline; None is its second trial with its first."""
        baseline = self._spec.baseline
        first, again = Arm(baseline).name, Arm(baseline, again=True).name
        rounds = self._rounds[(*pair, baseline if variant is None else variant)]
        return share_units(
            [one for one in self._counts.get(pair, []) if one.round in rounds],
            baseline=first,
            again=None if variant is None else again,
            variant=again if variant is None else Arm(variant).name,
            kind=self._unit,
        )

    def _units(self, cell: Cell, workload: str, variant: str) -> Units:
        baseline = self._spec.baseline
        make = round_units if self._unit == "round" else block_units
        # A variant that has left is missing in later rounds by design: their blocks are not incomplete.
        rounds = self._rounds[cell, workload, variant]
        return make(
            [one for one in self._observations.get((cell, workload), []) if one.round in rounds],
            baseline=Arm(baseline).name,
            again=Arm(baseline, again=True).name,
            variant=Arm(variant).name,
        )
