"""Derive the evidence for a gate from stored trials: effects, levels, exact counts, or a reason. Pure.

Rows have the columns of the table of trials (`model.tables.register.TRIALS`) and belong to one cell and one
workload. The baseline and the candidate are two variants. Only complete trials count.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from uncork.model.measurement import Outcome
from uncork.model.results.experiment import CostItem
from uncork.model.results.gate_metrics import GateMetric, trial_value
from uncork.model.results.guard import Gate, metric_of
from uncork.model.trial import Arm
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.effect import Effect, estimate
from uncork.stats.gates.decision import Evidence, Exact, Unknown
from uncork.stats.level import Level, share_level, value_level
from uncork.stats.proportion import Counted, ShareEffect, estimate_share, share_units
from uncork.stats.sample import Observation, UnitKind, block_units, round_units

Row = Mapping[str, Any]

_BLOCKS: Final = 1_000_000
"""More blocks than a round has."""
_COUNTED: Final = ("cost", "own")
"""Sources whose values may be equal in all trials, and are then compared exactly."""
_ALIKE: Final = 1e-9
"""Counts that differ by less than this fraction are equal: they were divided by different numbers of
operations."""


@dataclass(frozen=True, slots=True)
class GateEvidence:
    """The evidence for a gate in one place, and the values that are shown with it, in the base unit.

    `by_round` holds (round, baseline's value, candidate's value), with the baseline's two trials combined.
    """

    evidence: Evidence
    baseline: float | None = None
    candidate: float | None = None
    by_round: tuple[tuple[int, float | None, float | None], ...] = ()


def gate_evidence(
    gate: Gate,
    rows: Iterable[Row],
    *,
    baseline: str,
    candidate: str,
    confidence: float,
    kind: UnitKind = "round",
    groups: Mapping[UnitKind, Mapping[int, int]] | None = None,
) -> GateEvidence:
    """Return the evidence for a gate from the trials of a cell and workload, estimated at `confidence`.

    Gates on plans and sizes belong to variants and not to trials. The baseline runs twice in each block.
    `kind` is what counts as one independent observation. If several hosts measured the rounds, `groups` has
    the host and the wave of each round: rounds of one host share what is peculiar to it, and rounds of one
    wave what is peculiar to that time. The scope with the widest interval decides, as in an experiment
    (`experiment.run.ledger`); one with fewer than `MINIMUM_ROUNDS` numbers says nothing.
    """
    metric = metric_of(gate)
    complete = _complete(rows, baseline, candidate)
    valued = [(row, value) for row in complete if (value := trial_value(metric.name, row)) is not None]
    shown = _values(metric, valued, baseline, candidate)
    for name, variant in (("candidate", candidate), ("baseline", baseline)):
        if gate.bound == "value" and variant == baseline:
            continue
        if not any(row["variant"] == variant for row in complete):
            return replace(shown, evidence=Unknown(f"the {name} has no complete trial"))
        if not any(row["variant"] == variant for row, _ in valued):
            return replace(shown, evidence=Unknown(metric.missing))
    compared = _Compared(metric, baseline, candidate, confidence, kind)
    found = compared.evidence(gate, valued)
    for unit, numbers in (groups or {}).items():
        if not numbers:
            continue
        grouped = [({**row, **_grouped_place(row, numbers)}, value) for row, value in valued]
        if len({row["round"] for row, _ in grouped}) >= MINIMUM_ROUNDS:
            wider = replace(compared, kind=unit).evidence(gate, grouped)
            found = max(found, wider, key=_width)
    return replace(shown, evidence=found)


def cost_evidence(
    item: CostItem,
    rows: Iterable[Row],
    *,
    baseline: str,
    candidate: str,
    confidence: float,
    kind: UnitKind = "round",
) -> Evidence:
    """Return how a cost of an operation differs between two variants, whether a gate asks for it or not.

    A share has a difference, every other cost a ratio. Unknown if a trial of either side has none of it.
    """
    part, whole = item.columns, item.over
    complete = [
        row
        for row in _complete(rows, baseline, candidate)
        if row.get(whole) and all(row.get(column) is not None for column in part)
    ]
    valued = [(row, math.fsum(row[column] for column in part) / row[whole]) for row in complete]
    if {row["variant"] for row in complete} != {baseline, candidate}:
        return Unknown("it was not measured on both sides")
    unit = "" if item.unit == "share" else item.unit
    metric = GateMetric(item.name, item.name, unit, "lower", "cost")
    compared = _Compared(metric, baseline, candidate, confidence, kind)
    if item.unit == "share":
        counts = [{**row, "succeeded": row[part[0]], "started": row[whole]} for row in complete]
        return compared.share_difference([(row, 0.0) for row in counts])
    if min(value for _, value in valued) <= 0.0:
        return Unknown("some trials have none of it, and a ratio with 0 is undefined")
    return compared.ratio(valued)


def _grouped_place(row: Row, numbers: Mapping[int, int]) -> dict[str, int]:
    """Return a trial's place if its host or wave counts as one round; each block stays one of its own."""
    return {"round": numbers[row["round"]], "block": row["round"] * _BLOCKS + row["block"]}


def _complete(rows: Iterable[Row], baseline: str, candidate: str) -> list[Row]:
    ours = (row for row in rows if row["variant"] in (baseline, candidate))
    return [row for row in ours if row.get("outcome", "complete") == Outcome.COMPLETE]


def _width(evidence: Evidence) -> float:
    """Return how wide an interval is, in the measure of its kind of evidence; 0 without one."""
    if isinstance(evidence, Effect):
        return evidence.half_width
    if isinstance(evidence, ShareEffect) or (isinstance(evidence, Level) and evidence.counts is not None):
        return evidence.high - evidence.low
    if isinstance(evidence, Level):
        return math.inf if evidence.low <= 0.0 else evidence.high / evidence.low
    return 0.0


def size_evidence(relations: Iterable[Row], *, baseline: str, candidate: str) -> GateEvidence:
    """Return the evidence of sizes; `relations` are rows of that table, of one cell."""
    sizes: dict[str, int] = defaultdict(int)
    for row in relations:
        sizes[row["variant"]] += row["bytes"]
    if candidate not in sizes or baseline not in sizes:
        return GateEvidence(Unknown("this engine does not report the sizes of tables and indexes"))
    own, base = float(sizes[candidate]), float(sizes[baseline])
    return GateEvidence(Exact(base, own), base, own)


Valued = Sequence[tuple[Row, float]]


@dataclass(frozen=True, slots=True)
class _Compared:
    """The sides of a comparison; every method takes trials with their values and returns the evidence."""

    metric: GateMetric
    baseline: str
    candidate: str
    confidence: float
    kind: UnitKind

    def evidence(self, gate: Gate, valued: Valued) -> Evidence:
        """Return the evidence for a gate."""
        if self.metric.source == "share":
            find = self.share if gate.bound == "value" else self.share_difference
        else:
            find = self.value if gate.bound == "value" else self.ratio
        return find(valued)

    def ratio(self, valued: Valued) -> Evidence:
        own, base = self._values(valued, self.candidate), self._values(valued, self.baseline)
        if self.metric.source in _COUNTED and _one(own) and _one(base):
            return Exact(base[0], own[0], len({row["round"] for row, _ in valued}))
        if self.metric.source == "own" and min(*own, *base) <= 0.0:
            return Unknown(
                "some trials have a value of 0 or less, which has no ratio; limit the value itself"
            )
        raised, warnings = _raised(self.metric, [*own, *base])
        observations = [
            Observation(*_place(row), value + raised) for row, value in valued if value + raised > 0.0
        ]
        make = block_units if self.kind == "block" else round_units
        units = make(
            observations,
            baseline=Arm(self.baseline).name,
            again=Arm(self.baseline, again=True).name,
            variant=Arm(self.candidate).name,
        )
        if not len(units):
            return Unknown("no block was complete")
        effect = estimate(replace(units, kind=self.kind), self.confidence)
        return replace(effect, warnings=(*effect.warnings, *warnings))

    def value(self, valued: Valued) -> Evidence:
        own = [(row, value) for row, value in valued if row["variant"] == self.candidate]
        values = [value for _, value in own]
        if self.metric.source in _COUNTED and _one(values):
            return Exact(None, values[0], len({row["round"] for row, _ in own}))
        means = [_mean(self.metric, group) for group in _grouped(own, self.kind).values()]
        if min(means) <= 0.0:
            return Unknown("it is 0 in some rounds but not in all, so it has no interval")
        return value_level(means, self.confidence, self.kind)

    def share_difference(self, valued: Valued) -> Evidence:
        counts = [Counted(*_place(row), row["succeeded"], row["started"]) for row, _ in valued]
        units = share_units(
            counts,
            baseline=Arm(self.baseline).name,
            again=Arm(self.baseline, again=True).name,
            variant=Arm(self.candidate).name,
            kind=self.kind,
        )
        return estimate_share(units, self.confidence) if len(units) else Unknown("no block was complete")

    def share(self, valued: Valued) -> Evidence:
        groups: dict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
        for row, _ in valued:
            if row["variant"] == self.candidate:
                place = row["round"], row["block"] if self.kind == "block" else 0
                succeeded, started = groups[place]
                groups[place] = succeeded + row["succeeded"], started + row["started"]
        return share_level([counts for _, counts in sorted(groups.items())], self.confidence, self.kind)

    @staticmethod
    def _values(valued: Valued, variant: str) -> list[float]:
        return [value for row, value in valued if row["variant"] == variant]


def _place(row: Row) -> tuple[int, int, str]:
    return row["round"], row["block"], Arm(row["variant"], bool(row["again"])).name


def _one(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= _ALIKE * max(abs(max(values)), 1e-300)


def _raised(metric: GateMetric, values: Sequence[float]) -> tuple[float, tuple[str, ...]]:
    if metric.source != "cost" or min(values) > 0.0:
        return 0.0, ()
    return metric.grain, (
        f"some trials have a value of 0, so {metric.grain:g} {metric.unit}".rstrip()
        + " was added to all values to form a ratio",
    )


def _grouped(valued: Valued, kind: UnitKind) -> dict[tuple[int, int], list[float]]:
    groups: dict[tuple[int, int], list[float]] = defaultdict(list)
    for row, value in valued:
        groups[row["round"], row["block"] if kind == "block" else 0].append(value)
    return dict(sorted(groups.items()))


def _mean(metric: GateMetric, values: Sequence[float]) -> float:
    """Return the mean of trials: geometric for times and rates, as in effects; arithmetic for others."""
    if metric.source in ("cost", "share", "own"):
        return math.fsum(values) / len(values)
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def _values(metric: GateMetric, valued: Valued, baseline: str, candidate: str) -> GateEvidence:
    sides = []
    zero = metric.source in ("cost", "share", "own")
    for variant in (baseline, candidate):
        ours = [(row, value) for row, value in valued if row["variant"] == variant and (zero or value > 0.0)]
        sides.append({place[0]: _mean(metric, values) for place, values in _grouped(ours, "round").items()})
    base, own = sides
    return GateEvidence(
        evidence=Unknown("nothing was measured"),
        baseline=_mean(metric, list(base.values())) if base else None,
        candidate=_mean(metric, list(own.values())) if own else None,
        by_round=tuple((number, base.get(number), own.get(number)) for number in sorted({*base, *own})),
    )
