"""Text for gates: their bounds, measured values, and intervals around them."""

from __future__ import annotations

import math

from uncork.model.results.guard import Gate, metric_of
from uncork.model.units import format_bytes, format_count, format_duration

_TIMES = 3.0
"""From this ratio on, text shows the ratio itself and not a change in percent."""
_MANY_TIMES = 10.0
"""The same applies if the interval reaches this far."""


def at_baseline(gate: Gate) -> bool:
    """Return whether a gate requires "no worse than the baseline"."""
    none = {"ratio": 1.0, "difference": 0.0}.get(gate.bound)
    return gate.relation in ("<=", ">=") and gate.limit == none


def asks_for_better(gate: Gate) -> bool:
    """Return whether a gate requires an improvement on the baseline."""
    none = {"ratio": 1.0, "difference": 0.0}.get(gate.bound)
    sign = 1.0 if metric_of(gate).better == "lower" else -1.0
    return none is not None and (
        sign * gate.limit < sign * none or (gate.limit == none and gate.relation in ("<", ">"))
    )


def bound_words(gate: Gate) -> str:
    """Return a gate's bound as text: ``+5 %``, ``20 ms``, ``the baseline``."""
    if gate.bound == "value":
        return number_words(gate, gate.limit)
    none = 1.0 if gate.bound == "ratio" else 0.0
    return "the baseline" if gate.limit == none else change_words(gate, gate.limit - none, signed=True)


def change_words(gate: Gate, change: float, *, signed: bool = False) -> str:
    """Return a change as text: 0.05 is ``5 %``, or ``5 points`` for shares."""
    number = f"{abs(change) * 100:.6g}"
    sign = ("+" if change > 0 else "−") if signed else ""
    points = metric_of(gate).unit == "share"
    return f"{sign}{number} {'point' + 's' * (number != '1') if points else '%'}"


def number_words(gate: Gate, value: float) -> str:
    """Return a value of a gate's metric as text, with its unit."""
    match metric_of(gate).unit:
        case "ns":
            return format_duration(value)
        case "B":
            return format_bytes(value)
        case "share":
            return f"{value * 100:.4g} %"
        case "/s":
            return f"{format_count(round(value) if value >= 100 else value)}/s"
        case _:
            return format_count(value)


def range_words(gate: Gate, estimate: float, low: float, high: float) -> str:
    """Return an estimate and its interval as text.

    Examples: ``+5.2 % (+2.1 to +8.4 %)``, ``18.1 ms (17.0 ms to 19.3 ms)``.
    """
    if gate.bound == "value":
        bounded = math.isfinite(high) and (low > 0.0 or metric_of(gate).unit == "share")
        ends = f"{number_words(gate, low)} to {number_words(gate, high)}" if bounded else "unbounded"
        return f"{number_words(gate, estimate)} ({ends})"
    if gate.bound == "ratio" and (estimate >= _TIMES or (math.isfinite(high) and high >= _MANY_TIMES)):
        times = f"{_times(low)} to {_times(high)}" if math.isfinite(high) and low > 0.0 else "unbounded"
        return f"{_times(estimate)} ({times})"
    none, unit = (1.0, "%") if gate.bound == "ratio" else (0.0, "points")
    bounded = math.isfinite(high) and (low > 0.0 or gate.bound == "difference")
    shown = [_signed((end - none) * 100) for end in ((estimate, low, high) if bounded else (estimate,))]
    return f"{shown[0]} {unit} ({f'{shown[1]} to {shown[2]} {unit}' if bounded else 'unbounded'})"


def _times(ratio: float) -> str:
    return f"×{format_count(round(ratio)) if ratio >= 100 else f'{ratio:.3g}'}"


def _signed(percent: float) -> str:
    digits = 1 if abs(percent) >= 0.995 else 2
    text = f"{abs(percent):.{digits}f}"
    if float(text) == 0.0:
        return "±0"
    return f"{'+' if percent > 0 else '−'}{text}"
