"""Judge the effects of an experiment together, and decide when to stop measuring.

An effect describes one comparison. A judgement also accounts for the other comparisons of the experiment: a
claim must survive e-BH over all of them. Two families of claims are corrected, each at the level ``1 -
confidence``: "it differs" (faster, slower) and "it makes no practical difference".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from uncork.model.units import count_words
from uncork.model.verdict import Direction, Judgement, Verdict
from uncork.stats.effect import Effect, estimate
from uncork.stats.proportion import ShareEffect

__all__ = [
    "MINIMUM_ROUNDS",
    "SIZE_SHARE",
    "AnyEffect",
    "Better",
    "Effect",
    "e_benjamini_hochberg",
    "estimate",
    "judge",
    "precise_enough",
    "settled",
]

Better = Literal["lower", "higher"]

AnyEffect = Effect | ShareEffect
"""An effect that can be judged: a ratio of metrics, or a difference of success rates."""

_SUCCEED = {Verdict.FASTER: "more succeed", Verdict.SLOWER: "fewer succeed"}

MINIMUM_ROUNDS = 5

SIZE_SHARE = 1.0 / 3.0
"""The size of an effect counts as known when the interval's half-width is at most this share of the
estimate's distance from no effect (in log ratios, or points). Example: -41 % is known once it is within -30
and -51 %. Of 1/5, 1/4, 1/3 and 1/2, this is the largest value whose bias from early stopping stays near 1 %
of the effect, at most 2 %."""


def e_benjamini_hochberg(e_values: Sequence[float], alpha: float) -> list[bool]:
    """Return for each e-value whether e-BH keeps it, at a false discovery rate of at most `alpha`.

    With K e-values, e-BH keeps the k largest, for the largest k whose k-th largest is at least ``K /
    (k·alpha)`` (Wang and Ramdas, "False discovery rate control with e-values", 2022). It is valid under any
    dependence between the comparisons. A comparison that it keeps also excludes 1 in its own interval,
    because ``K / k >= 1``.

    Raises:
        ValueError: An e-value is negative or not a number, or `alpha` is not between 0 and 1.
    """
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    if any(math.isnan(e) or e < 0.0 for e in e_values):
        raise ValueError("e-values must be numbers of zero or more")
    bar = _bar(e_values, alpha)
    return [e >= bar for e in e_values]


def judge(
    effects: Sequence[AnyEffect],
    *,
    better: Sequence[Better],
    practical: float | Sequence[float],
    confidence: float,
    minimum_rounds: int = MINIMUM_ROUNDS,
) -> list[Judgement]:
    """Judge all comparisons of an experiment together, and return one judgement per comparison.

    - Faster or slower: the interval excludes 1, and e-BH over all comparisons keeps the claim.
    - No practical difference: the interval lies inside [1/(1 + practical), 1 + practical], and e-BH over the
      evidence of equivalence keeps the claim.
    - If both hold, the verdict is faster or slower, and the reason says that the difference is small.

    Comparisons with fewer than `minimum_rounds` units count in the correction but get neither verdict.

    The direction of a comparison is known, at any number of rounds, once its interval excludes 1 and e-BH
    over the evidence of all comparisons keeps it. Directions are a family of claims of their own, which
    contains the verdicts faster and slower.

    Args:
        effects: Every comparison of the experiment, each estimated at `confidence`.
        better: For each effect, which direction of its metric is good.
        practical: The smallest difference that matters, one for all or one for each: 0.03 is 3 %, or 3
            percentage points of success rates.
        confidence: One minus the false discovery rate of each family of claims.
        minimum_rounds: A verdict needs at least this many units.

    Raises:
        ValueError: Lengths differ, or an effect was estimated at another confidence.
    """
    if len(better) != len(effects):
        raise ValueError(f"{len(effects)} effects but {len(better)} directions")
    if any(effect.confidence != confidence for effect in effects):
        raise ValueError(f"every effect must be estimated at the confidence of the judgement, {confidence}")
    thresholds = [practical] * len(effects) if isinstance(practical, int | float) else list(practical)
    if any(threshold < 0.0 for threshold in thresholds):
        raise ValueError(f"the practical threshold must be zero or more, not {min(thresholds)}")
    alpha = 1.0 - confidence
    enough = [effect.rounds >= minimum_rounds for effect in effects]
    differs = [effect.e_value if known else 0.0 for effect, known in zip(effects, enough, strict=True)]
    alike = [
        effect.evidence_of_equivalence(threshold) if known else 0.0
        for effect, known, threshold in zip(effects, enough, thresholds, strict=True)
    ]
    kept_differs = e_benjamini_hochberg(differs, alpha)
    kept_alike = e_benjamini_hochberg(alike, alpha)
    kept_direction = e_benjamini_hochberg([effect.e_value for effect in effects], alpha)
    return [
        _judgement(
            effect,
            better=direction,
            practical=threshold,
            minimum_rounds=minimum_rounds,
            differs=differs_too and effect.excludes_none,
            alike=alike_too and effect.inside(threshold),
            known=known_too and effect.excludes_none,
            comparisons=len(effects),
        )
        for effect, direction, threshold, differs_too, alike_too, known_too in zip(
            effects, better, thresholds, kept_differs, kept_alike, kept_direction, strict=True
        )
    ]


def precise_enough(effect: AnyEffect, precision: float) -> bool:
    """Return whether the interval's half-width is at most `precision`: 0.03 is ±3 %, or ±3 points."""
    return effect.half_width <= precision


def settled(
    effects: Sequence[AnyEffect | None],
    *,
    precision: Sequence[float],
    practical: Sequence[float],
    confidence: float,
    minimum_rounds: int = MINIMUM_ROUNDS,
) -> list[bool]:
    """Return for every comparison of an experiment whether it needs no more rounds.

    A comparison with at least `minimum_rounds` is settled when one of these holds:

    * Its interval lies inside the practical threshold, or lies beyond it with a half-width of at most
      `SIZE_SHARE` of the estimate's distance from no effect (or at most `precision`). **And** e-BH keeps the
      claim among the comparisons that leave.
    * Its half-width is at most `precision`, and its interval lies neither inside nor beyond the threshold.

    "Among the comparisons that leave" is stricter than e-BH over all: the claims of the other comparisons
    count as nothing. So a settled comparison stays settled. It gets no more trials, so its own evidence no
    longer changes, and comparisons that left keep each other whatever happens to the rest. The verdict with
    which a comparison leaves is final, and the same trials read again settle the same comparisons. This holds
    as long as the number of comparisons does not grow. So pass all comparisons of the experiment, with None
    for those that have no measurement yet.

    Significance alone is no reason to stop, because effects that stop at their first significance are
    overstated. Stopping at `SIZE_SHARE` overstates them a little too: `tests/calibration/test_settled.py`
    measures by how much.

    Raises:
        ValueError: The lengths differ.
    """
    alpha = 1.0 - confidence
    facts = list(zip(effects, precision, practical, strict=True))
    enough = [effect is not None and effect.rounds >= minimum_rounds for effect, _, _ in facts]
    precise = [effect is not None and precise_enough(effect, width) for effect, width, _ in facts]
    beyond = [effect is not None and effect.beyond(threshold) for effect, _, threshold in facts]
    inside = [effect is not None and effect.inside(threshold) for effect, _, threshold in facts]
    sized = [effect is not None and effect.relative_width <= SIZE_SHARE for effect, _, _ in facts]
    differs = [
        effect.e_value if effect is not None and all(ready) and (narrow or known) else 0.0
        for effect, *ready, narrow, known in zip(effects, enough, beyond, precise, sized, strict=True)
    ]
    alike = [
        effect.evidence_of_equivalence(threshold) if effect is not None and ready and within else 0.0
        for (effect, _, threshold), ready, within in zip(facts, enough, inside, strict=True)
    ]
    decided = [
        any(kept)
        for kept in zip(e_benjamini_hochberg(differs, alpha), e_benjamini_hochberg(alike, alpha), strict=True)
    ]
    return [
        ready and (done or (narrow and not far and not within))
        for ready, done, narrow, far, within in zip(enough, decided, precise, beyond, inside, strict=True)
    ]


def _bar(e_values: Sequence[float], alpha: float) -> float:
    """Return the smallest e-value that e-BH keeps; infinity if it keeps none."""
    bar = math.inf
    for place, e in enumerate(sorted(e_values, reverse=True), start=1):
        if e >= len(e_values) / (place * alpha):
            bar = e
    return bar


def _judgement(
    effect: AnyEffect,
    *,
    better: Better,
    practical: float,
    minimum_rounds: int,
    differs: bool,
    alike: bool,
    known: bool,
    comparisons: int,
) -> Judgement:
    span, none = effect.span, "0" if isinstance(effect, ShareEffect) else "1"
    unit = " points" if isinstance(effect, ShareEffect) else "%"
    threshold = f"the practical threshold of {practical * 100:.3g}{unit}"
    verdict = Verdict.FASTER if effect.rises == (better == "higher") else Verdict.SLOWER
    word = _SUCCEED[verdict] if isinstance(effect, ShareEffect) else str(verdict)
    way: Direction = "faster" if verdict is Verdict.FASTER else "slower"
    if differs:
        if alike:
            reason = f"{word}, but by less than {threshold}: {span}"
        else:
            reason = f"the interval excludes {none}: {span}"
        return Judgement(verdict, reason, effect.warnings, way)
    if alike:
        reason = f"the interval lies within {threshold}: {span}"
        return Judgement(Verdict.NO_PRACTICAL_DIFFERENCE, reason, effect.warnings)
    if known and effect.rounds < minimum_rounds:
        needed = count_words(minimum_rounds, effect.kind)
        reason = f"{word} so far ({span}); the size is not settled after {effect.rounds} of {needed}"
    elif known:
        reason = (
            f"{word} so far ({span}), but the evidence is too weak for a verdict "
            f"after correcting for {comparisons} comparisons"
        )
    elif effect.rounds < minimum_rounds:
        reason = f"only {count_words(effect.rounds, effect.kind)}; a verdict needs {minimum_rounds}"
    elif effect.excludes_none:
        reason = (
            f"the interval {span} excludes {none}, but the evidence is too weak "
            f"after correcting for {comparisons} comparisons"
        )
    elif effect.inside(practical):
        reason = (
            f"the interval {span} lies within {threshold}, but the evidence is too weak "
            f"after correcting for {comparisons} comparisons"
        )
    else:
        reason = f"the interval still contains {none}: {span}"
    return Judgement(Verdict.NOT_ENOUGH_EVIDENCE, reason, effect.warnings, way if known else None)
