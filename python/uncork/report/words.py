"""Words and numbers for effects, intervals, cells, verdicts, times, rates and the values of metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal

from uncork.model.units import format_bytes, format_count, format_duration, format_percent
from uncork.model.verdict import Direction, Verdict
from uncork.report.blocks import Tone

if TYPE_CHECKING:
    from uncork.model.results.experiment import Comparison, FactorFacts, Levels

SYMBOLS: Final = {
    Verdict.FASTER: "✓",
    Verdict.SLOWER: "✗",
    Verdict.NO_PRACTICAL_DIFFERENCE: "=",
    Verdict.NOT_ENOUGH_EVIDENCE: "?",
    Verdict.REFUSED: "!",
    Verdict.SKIPPED: "–",
}
"""A sign for each verdict, so that no verdict depends on colour alone."""
TONES: Final[dict[Verdict, Tone]] = {
    Verdict.FASTER: "faster",
    Verdict.SLOWER: "slower",
    Verdict.NO_PRACTICAL_DIFFERENCE: "same",
    Verdict.NOT_ENOUGH_EVIDENCE: "unsure",
    Verdict.REFUSED: "refused",
    Verdict.SKIPPED: "skipped",
}

_BUDGETS_MIN: Final = (1, 2, 3, 5, 10, 15, 20, 30, 45, 60)

MEASURED: Final = frozenset(
    {Verdict.FASTER, Verdict.SLOWER, Verdict.NO_PRACTICAL_DIFFERENCE, Verdict.NOT_ENOUGH_EVIDENCE}
)
"""Verdicts that are based on a measured effect."""

_SUCCEED: Final = {"faster": "more succeed", "slower": "fewer succeed"}

_TIMES_ABOVE: Final = 3.0
"""Above this ratio "×6.2" reads better than "+520 %"; below the next one "÷890" better than "−99.9 %"."""
_TIMES_BELOW: Final = 0.1

_WIDEST: Final = 100.0
"""The factor between the ends of an interval above which they are not shown."""
_LOOSE: Final = re.compile(r"(?<=\d) (?=\d{3}(?!\d)|%|[nµm]?s\b|min\b|[kMGT]?B\b)")
_BRACKETS: Final = re.compile(r"\[[^\[\]\n]{1,30}\]")


def baseline_text(name: str) -> str:
    """Return the name of the baseline, marked as such: ``char (baseline)``."""
    return name if name == "baseline" else f"{name} (baseline)"


def effect_text(ratio: float) -> str:
    """Format an effect in a few characters: ``−46 %``, ``+5.2 %``, ``×6.2``, ``÷890``."""
    if ratio >= _TIMES_ABOVE:
        return f"×{times_number(ratio)}"
    if 0 < ratio <= _TIMES_BELOW:
        return f"÷{times_number(1 / ratio)}"
    return format_percent(ratio)


def is_useless(low: float | None, high: float | None) -> bool:
    """Return whether an interval is wider than a factor of 100, so that its ends say nothing."""
    return low is not None and high is not None and high > _WIDEST * low


def interval_text(low: float | None, high: float | None) -> str:
    """Format an interval for tables: ``[−48, −44]``, ``[unknown]`` if wider than a factor of 100."""
    if low is None and high is None:
        return "[no bounds yet]"
    if is_useless(low, high):
        return "[unknown]"
    left, right = (end.removesuffix(" %") for end in interval_bounds(low, high))
    return f"[{left}, {right}]"


def effect_with_interval(ratio: float, low: float | None, high: float | None) -> str:
    """Format an effect and its interval: ``−46 % [−48, −44]``, ``×6.2 [×5.8, ×6.7]``, ``÷890 [÷920, ÷850]``.

    An effect has the form of a factor only if both ends of its interval have it: ``−93 % [−96, −78]``, not
    ``÷14 [−96, −78]``.
    """
    ends = interval_text(low, high)
    factors = "×" in ends or "÷" in ends or (low is None and high is None) or is_useless(low, high)
    return f"{effect_text(ratio) if factors else format_percent(ratio)} {ends}"


def interval_ends(low: float | None, high: float | None) -> str:
    """Format an interval in a sentence: ``−48 % to −44 %``, ``unknown`` if wider than a factor of 100."""
    if low is None and high is None:
        return "no bounds yet"
    if is_useless(low, high):
        return "unknown"
    return " to ".join(interval_bounds(low, high))


def interval_bounds(low: float | None, high: float | None) -> tuple[str, str]:
    """Format both ends of an interval as effects; a missing bound is unbounded.

    Both ends have the same form: ``−90 %`` and ``−85 %``, not ``÷10`` and ``−85 %``; ``×2.9`` and ``×3.3``,
    not ``+190 %`` and ``×3.3``.
    """
    right = "∞" if high is None else effect_text(high)
    if low is None:
        return "−100 %", right
    left = effect_text(low)
    if left.startswith("÷") and high is not None and not right.startswith("÷"):
        left = format_percent(low)
    if right.startswith("×") and not left.startswith("×") and high is not None:
        centre = math.sqrt(low * high)  # near the effect itself, whose form the ends have
        return (f"×{times_number(low)}", right) if centre >= _TIMES_ABOVE else (left, format_percent(high))
    return left, right


def ratio_span(low: float, high: float, direction: Callable[[float], str], *, fractions: bool) -> str:
    """Format an interval of a ratio in a sentence: ``44 % to 48 %`` if both ends point the same way.

    Otherwise each end has its `direction`: ``3.0 % faster to 2.0 % slower``. Small ratios are `fractions`,
    such as ``1/3.1 to 1/2.9``, or else the times of the inverse ratio.
    """
    ends = interval_bounds(low, high)
    bare = [end.lstrip("+−±×÷") for end in ends]
    signs = {end[0] for end in ends}
    if signs == {"×"}:
        return f"{bare[0]} to {bare[1]} times"
    if signs == {"÷"}:
        return f"1/{bare[0]} to 1/{bare[1]}" if fractions else f"{bare[1]} to {bare[0]} times"
    if signs & {"×", "÷"}:
        return f"{ends[0]} to {ends[1]}"
    if low > 1 or high < 1:
        return " to ".join(bare if low > 1 else bare[::-1])
    return " to ".join(
        "0 %" if end.startswith("±") else f"{text} {direction(ratio)}"
        for end, text, ratio in zip(ends, bare, (low, high), strict=True)
    )


def sentence(text: str) -> str:
    """Return a statement with a full stop, and a capital letter if it begins with "the"."""
    text = f"T{text[1:]}" if text.startswith("the ") else text
    return f"{text.removesuffix('.')}."


def capitalised(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return f"{text[:1].upper()}{text[1:]}"


def floor_text(floor: float) -> str:
    """Format a noise floor: ``±2.4 %``, ``±12 %``; from a factor of 2 on, ``a factor of 2.4``."""
    if floor >= 1:
        return f"a factor of {1 + floor:.2g}"
    return f"±{floor * 100:.0f} %" if floor >= 0.095 else f"±{floor * 100:.2g} %"


def has_effect(comparison: Comparison) -> bool:
    """Return whether a comparison has an effect: a ratio, or a difference between shares of success."""
    return comparison.ratio is not None or comparison.difference is not None


def figures_text(comparison: Comparison) -> str:
    """Format an effect with its interval: ``−46 % [−48, −44]``, ``+1.1 points [+0.6, +1.8]``; or empty."""
    if comparison.difference is not None:
        low, high = comparison.difference_low, comparison.difference_high
        ends = "no bounds yet" if low is None or high is None else f"{points_text(low)}, {points_text(high)}"
        return f"{points_text(comparison.difference)} points [{ends}]"
    if comparison.ratio is None:
        return ""
    return effect_with_interval(comparison.ratio, comparison.low, comparison.high)


def exact_share_text(share: float) -> str:
    """Format a share: ``98.9 %``. Near 100 % it has as many decimals as it takes to differ from 100 %."""
    for decimals in (1, 2, 3, 4):
        text = f"{share * 100:.{decimals}f}"
        if float(text) < 100 or share == 1:
            return f"{'100' if share == 1 else text} %"
    return "over 99.9999 %"


def enough_budget(seconds: float) -> str | None:
    """Return the smallest usual budget that is enough, as an option has it: ``15min``; None above an hour."""
    return next((f"{minutes}min" for minutes in _BUDGETS_MIN if seconds <= 60 * minutes), None)


def known_so_far(comparison: Comparison) -> Direction | None:
    """Return the direction of a comparison without a verdict; None if it has a verdict or no direction."""
    return comparison.direction if comparison.verdict is Verdict.NOT_ENOUGH_EVIDENCE else None


def verdict_word(comparison: Comparison) -> str:
    """Return a verdict in words; if only its direction is known: ``faster so far``."""
    known = known_so_far(comparison)
    word = comparison.verdict.value if known is None else known
    if comparison.difference is not None:
        word = _SUCCEED.get(word, word)
    return word if known is None else f"{word} so far"


def verdict_text(comparison: Comparison) -> str:
    """Format a verdict with its sign: ``✓ faster``."""
    return f"{SYMBOLS[comparison.verdict]} {verdict_word(comparison)}"


def published_text(comparison: Comparison) -> str:
    """Format the effect published by the source that a case reproduces; empty if there is none."""
    return "" if comparison.published_ratio is None else effect_text(comparison.published_ratio)


def metric_title(metric: str) -> str:
    """Return the title of a metric for an axis or a column."""
    return {
        "latency_mean": "mean time per operation",
        "throughput": "operations a second",
        "success": "share of requests that succeed",
    }.get(metric, metric.replace("latency_", "").replace("_", " ") + " latency")


def metric_unit(metric: str) -> Literal["ns", "number"]:
    """Return the unit of a metric in charts: nanoseconds, or a number (operations a second, a share)."""
    return "number" if metric in ("throughput", "success") else "ns"


def with_option(command: str, option: str) -> str:
    """Return a command with one option, such as ``--budget 30min``, added or replaced."""
    name = option.partition(" ")[0]
    return f"{re.sub(rf' {name}[ =][^ ]+', '', command)} {option}"


def hold_together(text: str) -> str:
    """Put no-break spaces within numbers, units and intervals, so that no line breaks there."""
    text = _LOOSE.sub("\N{NO-BREAK SPACE}", text)
    return _BRACKETS.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def level_text(level: str, numeric: bool) -> str:
    """Format a factor's level; whole numbers get a space between thousands."""
    return format_count(int(level)) if numeric and level.isdigit() else level


def cell_words(cell: Levels, factors: Sequence[FactorFacts]) -> str:
    """Return the name of a cell: ``rows 100 000, index none``; without factors the only cell is ``all``."""
    numeric = {factor.name for factor in factors if factor.numeric}
    return ", ".join(f"{name} {level_text(level, name in numeric)}" for name, level in cell) or "all"


def tally_words(comparisons: Iterable[Comparison]) -> str:
    """Count verdicts: ``faster in 8, no practical difference in 20, not enough evidence in 2``."""
    found = sorted(comparisons, key=lambda comparison: known_so_far(comparison) is None)
    words = [
        verdict_word(comparison)
        for verdict in SYMBOLS
        for comparison in found
        if comparison.verdict is verdict
    ]
    return ", ".join(f"{word} in {words.count(word)}" for word in dict.fromkeys(words))


def points_text(difference: float) -> str:
    """Format a difference between shares in percentage points: ``+1.1``, ``−0.04``, ``±0``."""
    points = abs(difference) * 100
    text = f"{points:.0f}" if points >= 9.95 else f"{points:.1f}" if points >= 0.95 else f"{points:.2f}"
    if float(text) == 0:
        return "±0"
    return f"{'+' if difference > 0 else '−'}{text}"


def times_number(number: float) -> str:
    """Format a factor to about three digits: ``6.17``, ``49``, ``1 000``."""
    return (
        format_count(round(number)) if number >= 99.5 else f"{number:.3g}" if number < 10 else f"{number:.0f}"
    )


def duration_text(nanoseconds: float | None) -> str:
    """Format a duration; empty for None."""
    return "" if nanoseconds is None else format_duration(nanoseconds)


def instant_text(micros: int | None) -> str:
    """Format a point in time to the second, in UTC; empty for None."""
    if micros is None:
        return ""
    return f"{datetime.fromtimestamp(micros // 1_000_000, UTC):%Y-%m-%d %H:%M:%S}"


def span_text(first_us: int | None, last_us: int | None) -> str:
    """Format a time span; the date appears once if both ends are on the same day."""
    first, last = instant_text(first_us), instant_text(last_us)
    if not first:
        return ""
    if first[:10] == last[:10]:
        return f"{first} to {last[11:]} UTC"
    return f"{first} to {last} UTC"


def step_text(seconds: int) -> str:
    """Format the length of a time bucket: ``30 s``, ``5 min``, ``6 h``."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds % length == 0:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def rate_text(rate: float) -> str:
    """Format a rate per second: ``51 234``, ``12.3``."""
    return format_count(round(rate)) if rate >= 100 else format_count(rate)


def part_text(part: float, whole: float) -> str:
    """Format a part of a whole: ``1.3 %``, ``under 0.01 %``."""
    percent = 100 * part / whole if whole else 0.0
    if 0 < percent < 0.01:
        return "under 0.01 %"
    return f"{percent:.3g} %" if percent < 99.95 or percent == 100 else f"{percent:.2f} %"


def figure_value(value: float, unit: str) -> str:
    """Format the value of a metric with its unit."""
    if unit == "ns":
        return format_duration(value)
    if unit == "B":
        return format_bytes(value)
    if unit == "/s":
        return f"{rate_text(value)}/s"
    if unit == "ratio":
        return effect_text(value)
    if unit == "share":
        return part_text(round(value * 10**9), 10**9)
    return format_count(value)


def number_text(number: float) -> str:
    """Format a number to three significant digits, or as an integer from 100 on."""
    return format_count(round(number)) if number >= 100 else f"{number:.3g}"
