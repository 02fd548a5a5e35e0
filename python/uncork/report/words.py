"""Effects, cells and verdicts in words and figures for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from uncork.model.result import Comparison, FactorFacts, Levels
from uncork.model.units import format_count, format_percent
from uncork.model.verdict import Verdict

__all__ = [
    "MEASURED",
    "SYMBOLS",
    "cell_words",
    "change_words",
    "count_words",
    "effect_text",
    "hold_together",
    "interval_text",
    "interval_words",
    "level_text",
    "metric_title",
    "published_text",
    "series_words",
    "tally_words",
    "verdict_text",
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

_TIMES_ABOVE: Final = 3.0
"""From three times on, "×6.2" reads better than "+520 %"; below a tenth, "÷890" better than "−99.9 %"."""
_TIMES_BELOW: Final = 0.1

_LOOSE: Final = re.compile(r"(?<=\d) (?=\d{3}(?!\d)|%|[nµm]?s\b|min\b|[kMGT]?B\b)")
_BRACKETS: Final = re.compile(r"\[[^\[\]\n]{1,30}\]")


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
    left = "−100" if low is None else effect_text(low).removesuffix(" %")
    right = "∞" if high is None else effect_text(high).removesuffix(" %")
    return f"[{left}, {right}]"


def verdict_text(comparison: Comparison) -> str:
    """Show a verdict with its sign: ``✓ faster``."""
    return f"{SYMBOLS[comparison.verdict]} {comparison.verdict.value}"


def published_text(comparison: Comparison) -> str:
    """Show the figure of the source that a case reproduces, or nothing."""
    return "" if comparison.published_ratio is None else effect_text(comparison.published_ratio)


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
    texts = [effect_text(low), effect_text(high)]
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
    }.get(metric, metric.replace("latency_", "").replace("_", " ") + " latency")


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


def series_words(words: Iterable[str], last: str = "and") -> str:
    """Join words as a person would: ``a, b and c``."""
    items = list(words)
    return f" {last} ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def count_words(number: int, noun: str) -> str:
    """Count things: ``1 comparison``, ``12 comparisons``."""
    return f"{format_count(number)} {noun}{'' if number == 1 else 's'}"


def tally_words(comparisons: Iterable[Comparison]) -> str:
    """Count verdicts: ``faster in 8, no practical difference in 20, not enough evidence in 2``."""
    found = [comparison.verdict for comparison in comparisons]
    return ", ".join(f"{verdict.value} in {found.count(verdict)}" for verdict in SYMBOLS if verdict in found)


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
