"""Which of several scripts is the slowest, in words. Pure."""

from __future__ import annotations

from typing import Final

from uncork.model.results.load import LoadResult, ScriptFacts
from uncork.model.units import format_duration
from uncork.report.quantity_words import share_text

_LEAST: Final = 20
"""Fewest successful executions of a script whose p95 is compared: with fewer, p95 is its maximum."""
_APART: Final = 1.05
"""How many times larger than the next one the largest p95 must be to call its script the slowest."""


def slowest_words(result: LoadResult) -> str:
    """Name the script with the largest p95, and the one that took the most time; "" for a single script."""
    found = [script for script in result.scripts if script.latency.count]
    if len(result.scripts) < 2 or not found:
        return ""
    word = "script" if result.http is None else "request"
    whole = sum(map(_time, found))
    most = max(found, key=_time)
    took = f"{share_text(_time(most) / whole)} of the time of all {word}s" if whole else ""
    ranked = sorted((script for script in found if script.latency.count >= _LEAST), key=_p95, reverse=True)
    if len(ranked) < 2 or _p95(ranked[0]) < _APART * _p95(ranked[1]):
        return f"{most.name} took {took}" if took else ""
    slowest = ranked[0]
    words = f"the slowest {word} is {slowest.name} (95 % under {format_duration(_p95(slowest))}"
    if slowest is most:
        return f"{words}, {took})" if took else f"{words})"
    return f"{words}), but {most.name} took {took}"


def _time(script: ScriptFacts) -> float:
    return script.latency.count * (script.latency.mean_ns or 0.0)


def _p95(script: ScriptFacts) -> float:
    return script.latency.p95_ns or 0.0
