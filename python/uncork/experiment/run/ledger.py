"""The ledger: collect trials, return effects and judgements, and list what still needs trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from statistics import fmean

from uncork.experiment.plan.order import arms, cells
from uncork.experiment.spec.schema import METRICS, Spec
from uncork.model.measurement import Measurement, Outcome
from uncork.model.results.experiment import RankEffect
from uncork.model.trial import Arm, Cell, Trial
from uncork.model.verdict import Judgement, Verdict
from uncork.stats.compare import MINIMUM_ROUNDS, AnyEffect, judge, settled
from uncork.stats.effect import Effect, estimate
from uncork.stats.lengths import is_disturbed, short_to_long
from uncork.stats.noise import NoiseFloor, noise_floor
from uncork.stats.proportion import Counted, ShareEffect, ShareUnits, estimate_share, share_units
from uncork.stats.ranks import rank_effect
from uncork.stats.sample import (
    Observation,
    UnitKind,
    Units,
    block_units,
    grouped_units,
    noise_units,
    round_units,
)

LEAST_HOSTS = MINIMUM_ROUNDS
"""Hosts from which on something can be claimed about others; for waves, about other times."""

Compared = tuple[Cell, str, str]
"""A comparison: a cell, a workload, and the variant that is compared with the baseline."""

Pair = tuple[Cell, str]
"""A cell and a workload: what one block measures."""

_NOTHING = Judgement(Verdict.NOT_ENOUGH_EVIDENCE, "no complete block was measured", ())


@dataclass(frozen=True, slots=True)
class Judged:
    """One comparison with its effect (None if nothing complete was measured) and its judgement."""

    cell: Cell
    workload: str
    variant: str
    effect: AnyEffect | None
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class SliceCheck:
    """How a comparison differs between short and long slices.

    `rounds` is the number of rounds with long slices. `ratio` is the effect from short slices over the effect
    from long ones; None if no round of long slices follows one of short slices.
    """

    cell: Cell
    workload: str
    variant: str
    rounds: int
    ratio: Effect | None


class Ledger:
    """Collects the metric of every complete trial, and judges the comparisons.

    Args:
        spec: the experiment.
        unit: one independent observation: the round if the server restarts between rounds, otherwise the
            block.
        hosts: the host of each round, if rounds were measured on several hosts. From `LEAST_HOSTS` hosts on,
            an effect is that on hosts like these, if its interval is wider than that on these hosts.
        waves: the wave of each round, if hosts measured rounds at the same time. From as many waves on, an
            effect is that at other times, if its interval is the widest.
    """

    def __init__(
        self,
        spec: Spec,
        unit: UnitKind,
        hosts: Mapping[int, int] | None = None,
        waves: Mapping[int, int] | None = None,
    ) -> None:
        self._spec = spec
        self._unit = unit
        self._hosts = hosts or {}
        self._waves = waves or {}
        self._observations: dict[Pair, list[Observation]] = defaultdict(list)
        self._counts: dict[Pair, list[Counted]] = defaultdict(list)
        self._rounds: dict[Compared, set[int]] = defaultdict(set)
        self._lengths: dict[Pair, dict[int, bool]] = defaultdict(dict)
        self._needless: Callable[[Ledger], Collection[Compared]] = lambda _: ()
        self.refused: dict[tuple[Cell, str, str], str] = {}

    @property
    def has_hosts(self) -> bool:
        """Return whether the rounds were measured on several hosts."""
        return bool(self._hosts)

    def stop_early(self, needless: Callable[[Ledger], Collection[Compared]]) -> None:
        """Settle also the comparisons that a rule returns, given this ledger with the trials so far."""
        self._needless = needless

    def add(self, trial: Trial, measurement: Measurement) -> None:
        """Add a trial. An incomplete trial does not count."""
        metric = self._spec.workloads[trial.workload].metric
        complete = measurement.outcome == Outcome.COMPLETE
        value = measurement.metric(metric) if complete else None
        self.add_value(
            trial, value, measurement.succeeded, measurement.started, long_slices=measurement.long_slices
        )

    def add_value(
        self,
        trial: Trial,
        value: float | None,
        succeeded: int = 0,
        started: int = 0,
        *,
        long_slices: bool | None = None,
    ) -> None:
        """Add a trial by the value of its workload's metric, None if it has none, and its counts."""
        place = (trial.round, trial.block, trial.arm.name)
        self._rounds[trial.cell, trial.workload, trial.arm.variant].add(trial.round)
        if value is None:
            return
        if long_slices is not None:
            self._lengths[trial.comparison_key][trial.round] = long_slices
        if self._spec.workloads[trial.workload].metric == "success":
            if started:
                self._counts[trial.comparison_key].append(Counted(*place, succeeded, started))
        elif value > 0:
            self._observations[trial.comparison_key].append(Observation(*place, value))

    def variants(self, cell: Cell, workload: str) -> list[str]:
        """Return the variants that are compared with the baseline here: all except refused ones."""
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

        The result depends on the trials alone, so a resumed run leaves out the same comparisons as the run
        before. A settled comparison stays settled, because it gets no more trials; only the rule of
        `stop_early` may open it again.
        """
        found = self.compared()
        done = settled(
            [self.effect(*pair) for pair in found],
            precision=[self._spec.precision(workload) for _, workload, _ in found],
            practical=[self._spec.practical(workload) for _, workload, _ in found],
            confidence=self._spec.stop.confidence,
            minimum_rounds=self._spec.stop.verdict_rounds,
        )
        return {one for one, left in zip(found, done, strict=True) if left} | set(self._needless(self))

    def nothing_left(self) -> str | None:
        """Return why nothing can be measured if every comparison was refused or skipped; otherwise None."""
        if not self.refused or self.compared():
            return None
        (cell, workload, variant), reason = next(iter(self.refused.items()))
        return (
            "nothing was measured, because every comparison was refused or skipped; the first is "
            f"{variant} on {workload}{cell.at}: {reason}"
        )

    def open_pairs(self) -> set[Pair]:
        """Return the (cell, workload) pairs in which at least one comparison needs more trials."""
        left = self.settled()
        return {pair[:2] for pair in self.compared() if pair not in left}

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
        """Return a comparison's effect, or None if it has no complete block."""
        confidence = self._spec.stop.confidence
        if self._spec.workloads[workload].metric == "success":
            counted = self._share_units((cell, workload), variant)
            return estimate_share(counted, confidence) if len(counted) else None
        place = (cell, workload, variant)
        scopes = (self.these_hosts(*place), self.like_hosts(*place), self.other_times(*place))
        return max(
            (scope for scope in scopes if scope is not None), key=lambda scope: scope.half_width, default=None
        )

    def ranks(self, cell: Cell, workload: str, variant: str) -> RankEffect | None:
        """Return a comparison's effect by ranks; None with too few units, over hosts, and for shares."""
        if self._hosts or self._spec.workloads[workload].metric == "success":
            return None
        return rank_effect(self._units(cell, workload, variant).values, self._spec.stop.confidence)

    def these_hosts(self, cell: Cell, workload: str, variant: str) -> Effect | None:
        """Return a comparison's effect on the hosts that were measured; None without a complete block."""
        units = self._units(cell, workload, variant)
        return estimate(units, self._spec.stop.confidence) if len(units) else None

    def like_hosts(self, cell: Cell, workload: str, variant: str) -> Effect | None:
        """Return a comparison's effect on other hosts of this kind; None below `LEAST_HOSTS` hosts."""
        return self._grouped(cell, workload, variant, self._hosts, "host")

    def other_times(self, cell: Cell, workload: str, variant: str) -> Effect | None:
        """Return a comparison's effect at other times; None below `LEAST_HOSTS` waves."""
        return self._grouped(cell, workload, variant, self._waves, "wave")

    def _grouped(
        self, cell: Cell, workload: str, variant: str, groups: Mapping[int, int], kind: UnitKind
    ) -> Effect | None:
        if not groups or self._spec.workloads[workload].metric == "success":
            return None
        units = grouped_units(self._units(cell, workload, variant), groups, kind)
        return estimate(units, self._spec.stop.confidence) if len(units) >= LEAST_HOSTS else None

    def host_noise(self, host: int) -> list[tuple[Pair, Effect]]:
        """Return the effect of the baseline on itself in the rounds of one host, by cell and workload."""
        arm, again = Arm(self._spec.baseline), Arm(self._spec.baseline, again=True)
        found = []
        for pair in sorted(self._observations):
            own = [
                observation
                for observation in self._counting(pair)
                if self._hosts.get(observation.round) == host
            ]
            units = noise_units(own, baseline=arm.name, again=again.name, kind=self._unit)
            if len(units):
                found.append((pair, estimate(units, self._spec.stop.confidence)))
        return found

    def mean(self, cell: Cell, workload: str, variant: str) -> float | None:
        """Return the mean of a variant's metric over its trials; None if it has none."""
        name = Arm(variant).name
        values = [
            observation.value
            for observation in self._observations.get((cell, workload), [])
            if observation.arm == name
        ]
        return fmean(values) if values else None

    def judgements(self) -> list[Judged]:
        """Judge all comparisons that were not refused, together."""
        stop = self._spec.stop
        compared = [(*pair, self.effect(*pair)) for pair in self.compared()]
        known = [entry for entry in compared if entry[3] is not None]
        judged = judge(
            [effect for *_, effect in known if effect is not None],
            better=[METRICS[self._spec.workloads[workload].metric] for _, workload, _, _ in known],
            practical=[self._spec.practical(workload) for _, workload, _, _ in known],
            confidence=stop.confidence,
            minimum_rounds=stop.verdict_rounds,
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
        for pair in sorted(self._observations):
            units = noise_units(
                self._counting(pair), baseline=baseline.name, again=again.name, kind=self._unit
            )
            if len(units):
                found.append((pair, units))
        if not found:
            return None, []
        floor = noise_floor([units for _, units in found], self._spec.stop.confidence)
        return floor, [pair for pair, _ in found]

    def success_noise(self) -> list[tuple[Pair, ShareEffect]]:
        """Return the difference of the baseline's two success rates, wherever success is compared."""
        found = []
        for pair in sorted(self._counts):
            units = self._share_units(pair, None)
            if len(units):
                found.append((pair, estimate_share(units, self._spec.stop.confidence)))
        return found

    def _share_units(self, pair: Pair, variant: str | None) -> ShareUnits:
        """Return the counts of a comparison; None compares the baseline's second trial with its first."""
        baseline = self._spec.baseline
        first, again = Arm(baseline).name, Arm(baseline, again=True).name
        rounds = self._rounds[(*pair, baseline if variant is None else variant)]
        return share_units(
            [counted for counted in self._counts.get(pair, []) if counted.round in rounds],
            baseline=first,
            again=None if variant is None else again,
            variant=again if variant is None else Arm(variant).name,
            kind=self._unit,
        )

    def slice_checks(self) -> list[SliceCheck]:
        """Return how short slices differ from long ones, for each comparison with rounds of long slices."""
        return [
            SliceCheck(*pair, len(self._long_rounds(pair[:2])), self._short_to_long(pair))
            for pair in self.compared()
            if self._lengths.get(pair[:2])
        ]

    def is_disturbed(self, pair: Pair) -> bool:
        """Return whether short slices of a pair disturb each other, so that only long ones count.

        They do if some comparison has a different effect with short slices than with long ones, and the
        difference exceeds the practical threshold. The evidence of all comparisons together must meet the
        error rate of the experiment (Bonferroni). The result stays true once it is true, because there are no
        more short slices.
        """
        rounds = self._long_rounds(pair)
        if len(rounds) < MINIMUM_ROUNDS:
            return False
        compared = self.compared()
        needed = len(compared) / (1.0 - self._spec.stop.confidence)
        return any(
            is_disturbed(self._short_to_long(one), self._spec.practical(pair[1]), needed)
            for one in compared
            if one[:2] == pair
        )

    def _long_rounds(self, pair: Pair) -> set[int]:
        return {number for number, long in self._lengths.get(pair, {}).items() if long}

    def _short_to_long(self, compared: Compared) -> Effect | None:
        pair, variant = compared[:2], compared[2]
        rounds = self._rounds[compared]
        units = round_units(
            [observation for observation in self._observations.get(pair, []) if observation.round in rounds],
            baseline=Arm(self._spec.baseline).name,
            again=Arm(self._spec.baseline, again=True).name,
            variant=Arm(variant).name,
        )
        found = short_to_long(units, self._long_rounds(pair))
        return estimate(found, self._spec.stop.confidence) if len(found) else None

    def _counting(self, pair: Pair) -> list[Observation]:
        """Return the observations that count: only those of long slices if short ones disturb each other."""
        observations = self._observations.get(pair, [])
        if not self.is_disturbed(pair):
            return observations
        long = self._long_rounds(pair)
        return [observation for observation in observations if observation.round in long]

    def _units(self, cell: Cell, workload: str, variant: str) -> Units:
        baseline = self._spec.baseline
        make = round_units if self._unit == "round" else block_units
        # A settled variant is absent from later rounds by design, so their blocks are not incomplete.
        rounds = self._rounds[cell, workload, variant]
        return make(
            [observation for observation in self._counting((cell, workload)) if observation.round in rounds],
            baseline=Arm(baseline).name,
            again=Arm(baseline, again=True).name,
            variant=Arm(variant).name,
        )
