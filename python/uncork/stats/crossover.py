"""Find where, along a numeric factor, the best variant changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uncork.model.verdict import Judgement, Verdict
from uncork.stats.compare import Better, Effect

_SHOWN = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the factor, with the effect and the judgement of each variant at that level.

    The baseline is not listed; its ratio is 1. A variant that was refused, skipped or not measured is missing
    from `effects` or `judgements`, or has that verdict. It is not a candidate at this level.
    """

    value: float
    effects: Mapping[str, Effect]
    judgements: Mapping[str, Judgement]


@dataclass(frozen=True, slots=True)
class Crossover:
    """A change of the best variant from `from_variant` to `to_variant` between two levels.

    ``low_level <= estimate <= high_level``. If `supported`, the data show that `from_variant` is better at
    `low_level` and `to_variant` at `high_level`. The claim is that they cross in between; the estimate only
    says roughly where. If not `supported`, the change may be noise, and the levels are the two adjacent ones.
    """

    from_variant: str
    to_variant: str
    low_level: float
    high_level: float
    estimate: float
    supported: bool


def crossovers(levels: Sequence[Level], *, baseline: str, better: Better) -> list[Crossover]:
    """Return every change of the best variant along the factor, in rising order of level.

    The best variant of a level has the best estimated ratio. If adjacent levels have different best variants,
    the estimate is where the log of their ratio is zero, interpolated linearly over the log of the level
    (over the level itself if a level is zero or less).

    A crossover is supported if the two variants differ clearly on both sides. If one of them is the baseline,
    "clearly" means a verdict of faster or slower. Otherwise their intervals must not overlap, which is
    stricter than necessary because both are measured against the same baseline. The supporting levels may be
    farther out than the adjacent ones, as long as the same variant is best up to there: near a crossing the
    difference is too small for any number of rounds to show.

    Raises:
        ValueError: Two levels have the same value.
    """
    ordered = sorted(levels, key=lambda level: level.value)
    if any(low.value == high.value for low, high in itertools.pairwise(ordered)):
        raise ValueError("levels of a factor must differ")
    best = [_best(level, baseline=baseline, better=better) for level in ordered]
    found = []
    for i in range(len(ordered) - 1):
        before, after = best[i], best[i + 1]
        low, high = ordered[i], ordered[i + 1]
        if before == after or not (_measured(high, before, baseline) and _measured(low, after, baseline)):
            continue
        below = _nearest_shown(ordered[: i + 1][::-1], best[: i + 1][::-1], before, after, baseline, better)
        above = _nearest_shown(ordered[i + 1 :], best[i + 1 :], after, before, baseline, better)
        supported = below is not None and above is not None
        found.append(
            Crossover(
                from_variant=before,
                to_variant=after,
                low_level=below if supported and below is not None else low.value,
                high_level=above if supported and above is not None else high.value,
                estimate=_interpolate(
                    low.value,
                    high.value,
                    _log_ratio(low, before, baseline) - _log_ratio(low, after, baseline),
                    _log_ratio(high, before, baseline) - _log_ratio(high, after, baseline),
                ),
                supported=supported,
            )
        )
    return found


def _measured(level: Level, variant: str, baseline: str) -> bool:
    if variant == baseline:
        return True
    judgement = level.judgements.get(variant)
    return (
        variant in level.effects
        and judgement is not None
        and judgement.verdict not in (Verdict.REFUSED, Verdict.SKIPPED)
    )


def _log_ratio(level: Level, variant: str, baseline: str) -> float:
    return 0.0 if variant == baseline else math.log(level.effects[variant].ratio)


def _best(level: Level, *, baseline: str, better: Better) -> str:
    """Return the best variant of a level; ties go to the baseline, then to the order of the variants."""
    candidates = [baseline, *(name for name in level.effects if _measured(level, name, baseline))]
    sign = 1.0 if better == "lower" else -1.0
    return min(candidates, key=lambda name: sign * _log_ratio(level, name, baseline))


def _nearest_shown(
    levels: Sequence[Level],
    best: Sequence[str],
    winner: str,
    loser: str,
    baseline: str,
    better: Better,
) -> float | None:
    """Return the nearest level where `winner` clearly beats `loser`, going outward while `winner` is best.

    None if there is no such level.
    """
    for level, leader in zip(levels, best, strict=True):
        if leader != winner:
            return None
        if _measured(level, loser, baseline) and _shown(level, winner, loser, baseline, better):
            return level.value
    return None


def _shown(level: Level, winner: str, loser: str, baseline: str, better: Better) -> bool:
    if loser == baseline:
        return level.judgements[winner].verdict is Verdict.FASTER
    if winner == baseline:
        return level.judgements[loser].verdict is Verdict.SLOWER
    ahead, behind = level.effects[winner], level.effects[loser]
    apart = ahead.high < behind.low if better == "lower" else ahead.low > behind.high
    return apart and any(level.judgements[name].verdict in _SHOWN for name in (winner, loser))


def _interpolate(low: float, high: float, at_low: float, at_high: float) -> float:
    """Return where a straight line over the log of the level crosses zero, clamped to the two levels."""
    share = at_low / (at_low - at_high) if at_low != at_high else 0.5
    share = min(max(share, 0.0), 1.0)
    if low > 0.0:
        return min(max(math.exp(math.log(low) + share * math.log(high / low)), low), high)
    return low + share * (high - low)
