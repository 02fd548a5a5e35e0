"""Where, along a numeric factor, the best variant changes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from uncork.model.verdict import Judgement, Verdict
from uncork.stats.compare import Better, Effect

__all__ = ["Crossover", "Level", "crossovers"]

_SHOWN = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True)
class Level:
    """One level of the factor, with the effect and the judgement of each variant there.

    The baseline is not listed: its ratio is 1. A variant that was refused, skipped or not measured is left
    out of `effects`, or of `judgements`, or judged so; it is then no candidate at this level.
    """

    value: float
    effects: Mapping[str, Effect]
    judgements: Mapping[str, Judgement]


@dataclass(frozen=True, slots=True)
class Crossover:
    """The best variant changes from one to the other between two levels.

    ``low_level <= estimate <= high_level``. Where supported, `from_variant` is shown to be better at
    `low_level` and `to_variant` at `high_level`: the claim is that they cross between, and the estimate only
    says about where. Otherwise the change of best may be noise, and the levels are the adjacent two.
    """

    from_variant: str
    to_variant: str
    low_level: float
    high_level: float
    estimate: float
    supported: bool


def crossovers(levels: Sequence[Level], *, baseline: str, better: Better) -> list[Crossover]:
    """Return every change of the best variant along the factor, in rising order of level.

    The best at a level is the one with the best estimated ratio. Between adjacent levels with different
    bests, the estimate is where the log of the two variants' ratio, drawn straight over the log of the level,
    is zero (straight over the level itself, where a level is zero or less).

    To be supported, the two must differ clearly on both sides. If one is the baseline, that is a verdict of
    faster or slower; else their intervals must be apart, which is stricter than needed, since both stand
    against the same baseline. The sides may be farther out than the adjacent levels, as long as the same
    variant is best up to there: near a crossing the difference is small, and no number of rounds shows it.

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
    """Return the best variant of a level; the baseline wins ties, then the order of the variants."""
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
    """Return the nearest level, going outward while `winner` is best, where it is shown to beat `loser`."""
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
    """Return where a straight line over the log of the level crosses zero; clamped to the two levels."""
    share = at_low / (at_low - at_high) if at_low != at_high else 0.5
    share = min(max(share, 0.0), 1.0)
    if low > 0.0:
        return min(max(math.exp(math.log(low) + share * math.log(high / low)), low), high)
    return low + share * (high - low)
