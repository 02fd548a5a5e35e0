"""Measure, judge, and measure again what looks broken: the procedure of every guard.

The procedure knows nothing of experiments, loads or history. It is given something that measures and judges,
and calls it at most twice: for all gates, then for those that looked broken and are not acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, replace

from uncork.experiment.guard.acknowledged import Known
from uncork.model.results.guard import GateCheck, GateOutcome
from uncork.stats.gates.decision import Decision, confirm


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a measurement found of one gate in one place.

    `place` identifies the gate in both measurements. `check` builds what a guard reports, from a
    decision and the values of this measurement.
    """

    place: Hashable
    decision: Decision
    check: Callable[[Decision], GateCheck]


MeasureAndJudge = Callable[[Collection[Hashable] | None], Sequence[Judgement]]
"""Measures, and judges the gates in these places; in all places if None."""


def measure_and_confirm(
    measure: MeasureAndJudge,
    acknowledge: Callable[[tuple[GateCheck, ...]], Known],
    notify: Callable[[str], None],
    *,
    twice: bool,
    length: str = "",
) -> tuple[GateCheck, ...]:
    """Measure and judge all gates, and measure once more what looks broken and is not acknowledged.

    A gate is reported broken only if both measurements find it broken. Without `twice`, the first
    decides. `length` says how long the second measurement takes, as a clause. Raises UncorkError or
    KeyboardInterrupt: from `measure`.
    """
    first = measure(None)
    checks = tuple(judgement.check(judgement.decision) for judgement in first)
    known = acknowledge(checks).checks
    broken = [
        judgement
        for judgement, check in zip(first, known, strict=True)
        if check.outcome is GateOutcome.BROKEN
    ]
    if not twice or not broken:
        return checks
    gates = ", ".join(
        dict.fromkeys(f'"{judgement.check(judgement.decision).gate.text}"' for judgement in broken)
    )
    notify(f"looks broken: {gates}; measuring again to confirm{length}")
    places = frozenset(judgement.place for judgement in broken)
    second = {judgement.place: judgement for judgement in measure(places)}
    return tuple(
        _confirmed(judgement, second.get(judgement.place)) if judgement.place in places else check
        for judgement, check in zip(first, checks, strict=True)
    )


def unconfirmed(found: Sequence[Judgement], why: str) -> tuple[GateCheck, ...]:
    """Return what one measurement found, with nothing reported broken, because `why`."""
    return tuple(
        _undecided(judgement, f"it looks broken ({judgement.decision.reason}), but {why}")
        if judgement.decision.outcome is GateOutcome.BROKEN
        else judgement.check(judgement.decision)
        for judgement in found
    )


def _confirmed(first: Judgement, second: Judgement | None) -> GateCheck:
    if second is None:
        # A candidate whose answers were wrong and now are right has no such check in the second measurement.
        why = "a second measurement did not find it"
        return _undecided(first, f"it looked broken ({first.decision.reason}), but {why}")
    decision, holds = confirm(first.decision, second.decision)
    return replace(second.check(decision), confirmed=holds)


def _undecided(judgement: Judgement, reason: str) -> GateCheck:
    decision = replace(judgement.decision, outcome=GateOutcome.UNDECIDED, reason=reason)
    return replace(judgement.check(decision), confirmed=False)
