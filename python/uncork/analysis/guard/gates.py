"""Judge the gates of a guard from a stored run: after every round, and at the end."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uncork.analysis.guard.explanations import plan_differences
from uncork.experiment.guard.experiment import BASELINE, CANDIDATE
from uncork.experiment.guard.gate_evidence import GateEvidence, gate_evidence, size_evidence
from uncork.experiment.plan.order import cells
from uncork.experiment.plan.skip_rules import SKIPPING
from uncork.experiment.spec.gates import gate_workloads
from uncork.experiment.spec.schema import Spec
from uncork.model.records import build_from
from uncork.model.results.experiment import PlanFacts
from uncork.model.results.gate_metrics import OWN_METRIC
from uncork.model.results.guard import Gate, GateCheck, GateOutcome, metric_of
from uncork.model.trial import Cell
from uncork.stats.effect import Effect
from uncork.stats.gates.decision import Decision, GateQuestion, Same, Unknown, decide
from uncork.stats.sample import UnitKind
from uncork.store.query import RunReader
from uncork.store.run_documents import hosts_and_waves

SAME_ANSWER: Final = Gate("same answer", "answer", "unchanged", "=", 1.0)
"""The gate that every guard has: the candidate's answers equal the baseline's. Shown only if it is broken."""

_POINTS: Final = 0.01
"""The difference of shares that matters if the workload sets none."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Place:
    """A gate at one place; gates on sizes have no workload."""

    gate: Gate
    cell: Cell
    workload: str


@dataclass(frozen=True, slots=True)
class Judged:
    """The evidence at that place, and the outcome of the gate."""

    place: Place
    shown: GateEvidence
    decision: Decision


class GateJudge:
    """Judges gates over what a run has stored so far; the runner asks it what still needs trials.

    If several hosts measured the run, its evidence is about hosts like these and other times too:
    see `gate_evidence`.

    Args:
        folder: the run's.
        spec: its experiment, with variants `baseline` and `candidate`.
        gates: the requirements.
        unit: what counts as one independent observation.
        confidence: of the decisions.
        only: the places to judge; None for every place of a gate.
        precise: the half-width at which an undecided gate is given up; None for never.
    """

    reason = "every gate is decided"

    def __init__(
        self,
        folder: Path,
        spec: Spec,
        gates: Sequence[Gate],
        *,
        unit: UnitKind,
        confidence: float,
        only: Collection[Place] | None = None,
        precise: float | None = None,
    ) -> None:
        self._folder = folder
        self._spec = spec
        self._unit: UnitKind = unit
        self._confidence = confidence
        self._precise = precise
        self._places = [
            place
            for gate in gates
            if gate != SAME_ANSWER
            for cell in cells(spec)
            for place in _places_of(gate, spec, cell)
            if only is None or place in only
        ]
        self._only = only

    def open_pairs(self) -> set[tuple[Cell, str]]:
        """Return the cells and workloads in which a gate is undecided and more trials could decide it."""
        rounds: dict[tuple[Cell, str], int] = {}
        found = self.judged(rounds)
        return {
            (judged.place.cell, judged.place.workload)
            for judged in found
            if judged.place.workload
            and judged.decision.outcome is GateOutcome.UNDECIDED
            and not self._hopeless(judged, rounds.get((judged.place.cell, judged.place.workload), 0))
        }

    def judged(self, rounds: dict[tuple[Cell, str], int] | None = None) -> list[Judged]:
        """Judge all gates together; `rounds` receives the number of rounds of each cell and workload.

        Raises:
            StoreError: if the run's files are damaged.
        """
        stored = _Stored(self._folder)
        if rounds is not None:
            rounds |= {
                (cell, name): len({row["round"] for row in stored.trials.get((cell.name, name), ())})
                for cell in cells(self._spec)
                for name in self._spec.workloads
            }
        found = [self._refused(place, stored) for place in self._refusals(stored)]
        refused = {(judged.place.cell, judged.place.workload) for judged in found}
        places = [place for place in self._places if (place.cell, place.workload) not in refused]
        shown = [self._evidence(place, stored) for place in places]
        asked = [
            GateQuestion(place.gate, evidence.evidence, self._practical(place))
            for place, evidence in zip(places, shown, strict=True)
        ]
        decisions = decide(asked, confidence=self._confidence, minimum_rounds=self._spec.stop.verdict_rounds)
        found += [Judged(*one) for one in zip(places, shown, decisions, strict=True)]
        return found

    # ---- what was found ----

    def _refusals(self, stored: _Stored) -> Iterator[Place]:
        for cell in cells(self._spec):
            for name in self._spec.workloads:
                place = Place(SAME_ANSWER, cell, name)
                if (cell.name, name) in stored.refusals and (self._only is None or place in self._only):
                    yield place

    @staticmethod
    def _refused(place: Place, stored: _Stored) -> Judged:
        reason = stored.refusals[place.cell.name, place.workload]
        skipped = reason.startswith(SKIPPING)
        outcome = GateOutcome.UNDECIDED if skipped else GateOutcome.BROKEN
        return Judged(place, GateEvidence(Unknown(reason)), Decision(outcome, reason))

    def _evidence(self, place: Place, stored: _Stored) -> GateEvidence:
        gate, cell, workload = place.gate, place.cell, place.workload
        source = metric_of(gate).source
        if source == "size":
            rows = stored.relations.get(cell.name, ())
            return size_evidence(rows, baseline=BASELINE, candidate=CANDIDATE)
        if source == "plan":
            return GateEvidence(_plan_evidence(stored, cell, workload))
        return gate_evidence(
            gate,
            stored.trials.get((cell.name, workload), ()),
            baseline=BASELINE,
            candidate=CANDIDATE,
            confidence=self._confidence,
            kind=self._unit,
            groups=stored.groups,
        )

    def _practical(self, place: Place) -> float:
        """Return the difference that matters there; for shares the workload's if its metric is a share."""
        if not place.workload:
            return self._spec.stop.practical
        shares = metric_of(place.gate).unit == "share"
        if shares and self._spec.workloads[place.workload].metric != "success":
            return _POINTS
        return self._spec.practical(place.workload)

    def _hopeless(self, judged: Judged, rounds: int) -> bool:
        """Say whether more trials cannot decide a gate: nothing to judge, or precise enough."""
        evidence = judged.shown.evidence
        enough = rounds >= self._spec.stop.verdict_rounds
        if isinstance(evidence, Unknown):
            return enough or judged.place.gate.bound == "unchanged"
        if self._precise is None or not isinstance(evidence, Effect):
            return False
        return enough and evidence.half_width <= self._precise


def check_of(judged: Judged, decision: Decision | None = None, *, confirmed: bool | None = None) -> GateCheck:
    """Return a guard's check of a gate; `decision` replaces the evidence's own."""
    found = decision or judged.decision
    gate = judged.place.gate
    return build_from(
        GateCheck,
        found,
        gate=gate,
        cell=judged.place.cell.levels,
        workload=judged.place.workload,
        baseline=judged.shown.baseline,
        candidate=judged.shown.candidate,
        unit="" if gate is SAME_ANSWER else metric_of(gate).unit,
        low=None if found.high is not None and math.isinf(found.high) else found.low,
        high=None if found.high is None or math.isinf(found.high) else found.high,
        confirmed=confirmed,
        by_round=judged.shown.by_round,
    )


class _Stored:
    """What a run has stored so far, by cell and workload."""

    def __init__(self, folder: Path) -> None:
        hosts, waves = hosts_and_waves(folder)
        self.groups: dict[UnitKind, dict[int, int]] = {"host": hosts, "wave": waves}
        with closing(RunReader(folder)) as reader:
            self.trials = _by(map(_with_own, reader.trials()), "cell", "workload")
            self.relations = {key[0]: rows for key, rows in _by(reader.relations(), "cell").items()}
            self.plans = _by(reader.plans(), "cell", "workload", "variant")
            self.refusals = {
                (row.cell, row.workload): row.reason for row in reader.refusals() if row.variant == CANDIDATE
            }


def _with_own(row: Row) -> Row:
    own = json.loads(row["own"] or "{}")
    return {**row, **{f"{OWN_METRIC}{name}": value for name, value in own.items()}} if own else row


def _places_of(gate: Gate, spec: Spec, cell: Cell) -> Iterable[Place]:
    if metric_of(gate).source == "size":
        return [Place(gate, cell, "")]
    return [Place(gate, cell, name) for name in gate_workloads(gate, spec)]


def _plan_evidence(stored: _Stored, cell: Cell, workload: str) -> Same | Unknown:
    rows = (stored.plans.get((cell.name, workload, side), ()) for side in (BASELINE, CANDIDATE))
    before, after = (
        [PlanFacts(**{**row, "cell": cell.levels, "difference": ""}) for row in side] for side in rows
    )
    if not before or not after:
        return Unknown("no statement has a plan on both sides: the engine may not report plans")
    differences = plan_differences(before, after)
    changed = [difference.statement for difference in differences if difference.kind == "changed"]
    if not changed:
        return Same(holds=True, reason="the plan is unchanged")
    return Same(holds=False, reason=f"the plan changed for {', '.join(dict.fromkeys(changed))}")


def _by(rows: Iterable[Row], *keys: str) -> dict[tuple[str, ...], list[Row]]:
    found: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        found[tuple(str(row[key]) for key in keys)].append(row)
    return found
