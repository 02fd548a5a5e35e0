"""What a comparison shows, in the words of a sentence: its effect, its metric and its interval. Pure."""

from __future__ import annotations

from typing import Final

from uncork.model.results.experiment import Comparison
from uncork.report.words import effect_text, interval_bounds, points_text, times_number

_NOUNS: Final = {"latency_mean": "mean time", "throughput": "throughput", "success": ""}


def claim_words(comparison: Comparison, metric: str, most: str = "") -> tuple[str, str]:
    """Return an effect as a verb phrase and the word that joins the baseline: ``is 46 % faster``, ``than``.

    `most` goes before the amount: ``up to ``.
    """
    if comparison.difference is not None:
        return _share_claim(comparison.difference, most)
    ratio = comparison.ratio
    text = "" if ratio is None else effect_text(ratio)
    if ratio is None or not ratio > 0:
        return "has no computable effect", "against"
    if text.startswith(("×", "÷")):
        return _times_claim(ratio, most, rate=metric == "throughput"), "as"
    amount = text.lstrip("+−")
    if amount.startswith("±"):
        return "is as fast to within 0.1 %", "as"
    return f"is {most}{amount} {_direction(ratio, metric)}", "than"


def _times_claim(ratio: float, most: str, *, rate: bool) -> str:
    if ratio > 1:
        amount = f"{most}{times_number(ratio)} times as"
        return f"is {amount} fast" if rate else f"takes {amount} long"
    if rate:
        return f"is only 1/{times_number(1 / ratio)} as fast"
    return f"is {most}{times_number(1 / ratio)} times as fast"


def _share_claim(difference: float, most: str) -> tuple[str, str]:
    amount = points_text(difference).lstrip("+−")
    if amount.startswith("±"):
        return "lets as many requests succeed", "as"
    which = "more" if difference > 0 else "fewer"
    return f"lets {most}{amount} percentage points {which} requests succeed", "than"


def interval_words(comparison: Comparison, metric: str, confidence: float) -> str:
    """Return an interval in words: ``95 % interval: 44 % to 48 %`` if both ends point the same way.

    Otherwise each end has its direction: ``95 % interval: 3.0 % faster to 2.0 % slower``.
    """
    level = f"{confidence * 100:g} % interval"
    shares = comparison.difference is not None
    low, high = (
        (comparison.difference_low, comparison.difference_high)
        if shares
        else (comparison.low, comparison.high)
    )
    if low is None or high is None:
        return f"no finite {level} yet"
    return f"{level}: {_share_ends(low, high) if shares else _ratio_ends(low, high, metric)}"


def _share_ends(low: float, high: float) -> str:
    ends = [points_text(value) for value in (low, high)]
    if low > 0 or high < 0:
        ends = [end.lstrip("+−±") for end in (ends if low > 0 else ends[::-1])]
    return f"{ends[0]} to {ends[1]} points"


def _ratio_ends(low: float, high: float, metric: str) -> str:
    ends = interval_bounds(low, high)
    bare = [end.lstrip("+−±×÷") for end in ends]
    signs = {end[0] for end in ends}
    if signs == {"×"}:
        return f"{bare[0]} to {bare[1]} times"
    if signs == {"÷"}:
        return f"1/{bare[0]} to 1/{bare[1]}" if metric == "throughput" else f"{bare[1]} to {bare[0]} times"
    if signs & {"×", "÷"}:
        return f"{ends[0]} to {ends[1]}"
    if low > 1 or high < 1:
        return " to ".join(bare if low > 1 else bare[::-1])
    words = [
        "0 %" if end.startswith("±") else f"{text} {_direction(ratio, metric)}"
        for end, text, ratio in zip(ends, bare, (low, high), strict=True)
    ]
    return " to ".join(words)


def metric_noun(metric: str) -> str:
    """Return what a metric is called in a sentence: ``mean time``, ``p99 latency``, ``throughput``."""
    known = _NOUNS.get(metric)
    return f"{metric.removeprefix('latency_').replace('_', ' ')} latency" if known is None else known


def _direction(ratio: float, metric: str) -> str:
    return "faster" if (ratio < 1) != (metric == "throughput") else "slower"
