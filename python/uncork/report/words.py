"""Effects, cells and verdicts in words and figures for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from uncork.model.results.experiment import Comparison, FactorFacts, Levels
from uncork.model.units import count_words, format_count, format_percent, series_words
from uncork.model.verdict import Direction, Verdict

__all__ = [
    "MEASURED",
    "SYMBOLS",
    "baseline_text",
    "capitalised",
    "cell_words",
    "change_words",
    "count_words",
    "difference_words",
    "effect_text",
    "figures_text",
    "floor_text",
    "has_effect",
    "hold_together",
    "interval_text",
    "interval_words",
    "known_so_far",
    "level_text",
    "metric_title",
    "metric_unit",
    "points_text",
    "published_text",
    "sentence",
    "series_words",
    "share_text",
    "tally_words",
    "verdict_text",
    "verdict_word",
]

SYMBOLS: Final = {
    Verdict.FASTER: "✓",
    Verdict.SLOWER: "✗",
    Verdict.NO_PRACTICAL_DIFFERENCE: "=",
    Verdict.NOT_ENOUGH_EVIDENCE: "?",
    Verdict.REFUSED: "!",
    Verdict.SKIPPED: "–",
}
"""A sign a verdict, so that none rests on colour alone."""

MEASURED: Final = frozenset(
    {Verdict.FASTER, Verdict.SLOWER, Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.NOT_ENOUGH_EVIDENCE}
)
"""The verdicts that rest on an effect."""

_SUCCEED: Final = {"faster": "more succeed", "slower": "fewer succeed"}

_TIMES_ABOVE: Final = 3.0
"""From three times on, "×6.2" reads better than "+520 %"; below a tenth, "÷890" better than "−99.9 %"."""
_TIMES_BELOW: Final = 0.1

_LOOSE: Final = re.compile(r"(?<=\d) (?=\d{3}(?!\d)|%|[nµm]?s\b|min\b|[kMGT]?B\b)")
_BRACKETS: Final = re.compile(r"\[[^\[\]\n]{1,30}\]")


def baseline_text(name: str) -> str:
    """Name the baseline and say that it is that: ``char (baseline)``."""
    return name if name == "baseline" else f"{name} (baseline)"


def effect_text(ratio: float) -> str:
    """Show an effect in a few characters: ``−46 %``, ``+5.2 %``, ``×6.2``, ``÷890``."""
    if ratio >= _TIMES_ABOVE:
        return f"×{_figure(ratio)}"
    if 0 < ratio <= _TIMES_BELOW:
        return f"÷{_figure(1 / ratio)}"
    return format_percent(ratio)


def interval_text(low: float | None, high: float | None) -> str:
    """Show an interval beside its effect: ``[−48, −44]``; a missing bound is unbounded."""
    if low is None and high is None:
        return "[no bounds yet]"
    left = "−100" if low is None else _low_end(low, high).removesuffix(" %")
    right = "∞" if high is None else effect_text(high).removesuffix(" %")
    return f"[{left}, {right}]"


def _low_end(low: float, high: float | None) -> str:
    """Show the low end of an interval as its high end is shown: ``−90 %`` beside ``−85 %``, not ``÷10``."""
    text = effect_text(low)
    both = not text.startswith("÷") or high is None or effect_text(high).startswith("÷")
    return text if both else format_percent(low)


def sentence(text: str) -> str:
    """Return a statement as a sentence, with a full stop, and a capital if an article begins it.

    A name that begins it stays as it is.
    """
    text = f"T{text[1:]}" if text.startswith("the ") else text
    return f"{text.removesuffix('.')}."


def capitalised(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return f"{text[:1].upper()}{text[1:]}"


def floor_text(floor: float) -> str:
    """Show a noise floor: ``±2.4 %``, ``±12 %``; from twice on ``a factor of 2.4``."""
    if floor >= 1:
        return f"a factor of {1 + floor:.2g}"
    return f"±{floor * 100:.0f} %" if floor >= 0.095 else f"±{floor * 100:.2g} %"


def has_effect(comparison: Comparison) -> bool:
    """Say whether a comparison has an effect: a ratio, or a difference of shares of success."""
    return comparison.ratio is not None or comparison.difference is not None


def figures_text(comparison: Comparison) -> str:
    """Show an effect with its interval: ``−46 % [−48, −44]``, ``+1.1 points [+0.6, +1.8]``; else nothing."""
    if comparison.difference is not None:
        low, high = comparison.difference_low, comparison.difference_high
        ends = "no bounds yet" if low is None or high is None else f"{points_text(low)}, {points_text(high)}"
        return f"{points_text(comparison.difference)} points [{ends}]"
    if comparison.ratio is None:
        return ""
    return f"{effect_text(comparison.ratio)} {interval_text(comparison.low, comparison.high)}"


def share_text(share: float) -> str:
    """Show a share: ``98.9 %``; near the whole with as many decimals as tell it from that."""
    for decimals in (1, 2, 3, 4):
        text = f"{share * 100:.{decimals}f}"
        if float(text) < 100 or share == 1:
            return f"{'100' if share == 1 else text} %"
    return "over 99.9999 %"


def known_so_far(comparison: Comparison) -> Direction | None:
    """Return the direction of a comparison without a verdict; None if it has one, or if none is known."""
    return comparison.direction if comparison.verdict is Verdict.NOT_ENOUGH_EVIDENCE else None


def verdict_word(comparison: Comparison) -> str:
    """Return a verdict in words.

    Of shares of success: ``more succeed`` and ``fewer succeed``. Without a verdict, but with a known
    direction: ``faster so far``.
    """
    known = known_so_far(comparison)
    word = comparison.verdict.value if known is None else known
    if comparison.difference is not None:
        word = _SUCCEED.get(word, word)
    return word if known is None else f"{word} so far"


def verdict_text(comparison: Comparison) -> str:
    """Show a verdict with its sign: ``✓ faster``."""
    return f"{SYMBOLS[comparison.verdict]} {verdict_word(comparison)}"


def published_text(comparison: Comparison) -> str:
    """Show the figure of the source that a case reproduces, or nothing."""
    return "" if comparison.published_ratio is None else effect_text(comparison.published_ratio)


def difference_words(comparison: Comparison) -> str:
    """Say a difference of shares: ``1.1 percentage points more succeed (interval 0.6 to 1.8)``."""
    difference, low, high = (
        comparison.difference or 0.0,
        comparison.difference_low,
        comparison.difference_high,
    )
    amount = f"{_size(difference)} percentage points {'more' if difference > 0 else 'fewer'} succeed"
    if points_text(difference) == "±0":
        amount = "as many succeed"
    if low is None or high is None:
        return f"{amount} (no finite interval yet)"
    if low > 0 or high < 0:
        near, far = sorted((abs(low), abs(high)))
        return f"{amount} (interval {_size(near)} to {_size(far)})"
    return f"{amount} (interval {points_text(low)} to {points_text(high)})"


def change_words(ratio: float, metric: str) -> str:
    """Say an effect in words: ``46 % less time``, ``6.2 times the p99 latency``."""
    noun = _noun(metric)
    if ratio >= _TIMES_ABOVE:
        return f"{_figure(ratio)} times the {noun}"
    if 0 < ratio <= _TIMES_BELOW:
        return f"1/{_figure(1 / ratio)} of the {noun}"
    amount = format_percent(ratio).lstrip("+−")
    if amount.startswith("±"):
        return f"the same {noun} to within 0.1 %"
    return f"{amount} {_comparative(ratio, metric)} {noun}"


def interval_words(comparison: Comparison, metric: str) -> str:
    """Say an interval in words: ``interval 44 to 48 %`` when both ends point one way."""
    low, high = comparison.low, comparison.high
    if low is None or high is None:
        return "no finite interval yet"
    texts = [_low_end(low, high), effect_text(high)]
    plain = all(text.endswith("%") for text in texts)
    if plain and ((low < 1 and high < 1) or (low > 1 and high > 1)):
        near, far = sorted((low, high), key=lambda ratio: abs(ratio - 1))
        ends = [effect_text(near).strip("+−±").removesuffix(" %"), effect_text(far).strip("+−±")]
        return f"interval {ends[0]} to {ends[1]}"
    if plain:
        less = f"{effect_text(low).strip('+−±')} {_comparative(0.5, metric)}"
        more = f"{effect_text(high).strip('+−±')} {_comparative(2.0, metric)}"
        return f"interval {less} to {more}"
    return f"interval {texts[0]} to {texts[1]}"


def metric_title(metric: str) -> str:
    """Name a metric on an axis or over a column."""
    return {
        "latency_mean": "mean time an operation",
        "throughput": "operations a second",
        "success": "share of requests that succeed",
    }.get(metric, metric.replace("latency_", "").replace("_", " ") + " latency")


def metric_unit(metric: str) -> Literal["ns", "number"]:
    """Say in which unit charts show a metric: nanoseconds, or a number (operations a second, a share)."""
    return "number" if metric in ("throughput", "success") else "ns"


def hold_together(text: str) -> str:
    """Return the text with no-break spaces within figures, units and intervals: no line ends there."""
    text = _LOOSE.sub("\N{NO-BREAK SPACE}", text)
    return _BRACKETS.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def level_text(level: str, numeric: bool) -> str:
    """Show a factor's level; whole numbers get their thousands apart."""
    return format_count(int(level)) if numeric and level.isdigit() else level


def cell_words(cell: Levels, factors: Sequence[FactorFacts]) -> str:
    """Name a cell: ``rows 100 000, index none``; the one cell without factors is ``all``."""
    numeric = {factor.name for factor in factors if factor.numeric}
    return ", ".join(f"{name} {level_text(level, name in numeric)}" for name, level in cell) or "all"


def tally_words(comparisons: Iterable[Comparison]) -> str:
    """Count verdicts: ``faster in 8, no practical difference in 20, not enough evidence in 2``."""
    found = sorted(comparisons, key=lambda one: known_so_far(one) is None)
    words = [verdict_word(one) for verdict in SYMBOLS for one in found if one.verdict is verdict]
    return ", ".join(f"{word} in {words.count(word)}" for word in dict.fromkeys(words))


def _size(difference: float) -> str:
    """Show how large a difference of shares is, in percentage points: ``1.1``, ``100``."""
    return points_text(difference).strip("+−±")


def points_text(difference: float) -> str:
    """Show a difference of shares in percentage points: ``+1.1``, ``−0.04``, ``±0``."""
    points = abs(difference) * 100
    text = f"{points:.0f}" if points >= 9.95 else f"{points:.1f}" if points >= 0.95 else f"{points:.2f}"
    if float(text) == 0:
        return "±0"
    return f"{'+' if difference > 0 else '−'}{text}"


def _noun(metric: str) -> str:
    if metric == "throughput":
        return "operations a second"
    return (
        "time" if metric == "latency_mean" else metric.replace("latency_", "").replace("_", " ") + " latency"
    )


def _comparative(ratio: float, metric: str) -> str:
    if metric == "throughput":
        return "fewer" if ratio < 1 else "more"
    if metric == "latency_mean":
        return "less" if ratio < 1 else "more"
    return "lower" if ratio < 1 else "higher"


def _figure(number: float) -> str:
    return (
        format_count(round(number)) if number >= 99.5 else f"{number:.3g}" if number < 10 else f"{number:.0f}"
    )
