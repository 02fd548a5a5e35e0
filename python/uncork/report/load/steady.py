"""Say whether a load was steady, and what to do if it was not. Pure."""

from __future__ import annotations

import math
from typing import Final

from uncork.model.results.load import LoadResult, SteadyFacts
from uncork.model.units import format_duration
from uncork.report.load.words import operation_word, rate_text

_METRICS: Final = {"throughput": "throughput", "p50": "the median latency"}
_LONGER: Final = 4
"""A load that did not become steady is worth repeating for this many times as long."""


def steady_sentence(result: LoadResult) -> str:
    """Return a sentence if the load was steady from its start; empty otherwise."""
    found = result.steady
    if found is None or found.verdict != "steady":
        return ""
    return f"The load was steady: {_METRICS[found.metric]} shows no warm-up in its {found.seconds} s."


def unsteady_words(result: LoadResult) -> str:
    """Return how a load that was not steady from its start went, and what to do; empty if it was."""
    found = result.steady
    if found is None or found.verdict == "steady":
        return ""
    if found.verdict == "warm-up":
        who = "server" if result.http is None else "service"
        rate = f"{rate_text(found.operations_per_second or 0.0)} {operation_word(result)}s a second"
        p50, p99 = format_duration(found.p50_ns or 0), format_duration(found.p99_ns or 0)
        return (
            f"the load was steady after {_seconds(found)} s: from then on, the {who} handled {rate} with p50 "
            f"{p50} and p99 {p99}; {_warm_up(result, found)} leaves the time before out"
        )
    if found.start_ns is not None:
        return (
            f"the load did not become steady: its first {_seconds(found)} s differ from the rest, which "
            f"is too short to judge; run longer{_length(result)}, or use "
            f"{_warm_up(result, found)}"
        )
    return (
        f"the load did not become steady: {_METRICS[found.metric]} was still changing after half of its "
        f"{found.seconds} s; run longer{_length(result)}, or the figures depend on how long it ran"
    )


def _seconds(found: SteadyFacts) -> int:
    return round((found.start_ns or 0) / 1e9)


def _warm_up(result: LoadResult, found: SteadyFacts) -> str:
    """Return the option that leaves out the beginning, and what was left out already."""
    whole = result.settings.warmup_ns + (found.start_ns or 0)
    return f"--warmup {math.ceil(whole / 1e9)}s"


def _length(result: LoadResult) -> str:
    duration_ns = result.settings.duration_ns
    if duration_ns is None:
        return ""
    option = "-T" if result.http is None else "-D"
    return f" ({option} {_LONGER * math.ceil(duration_ns / 1e9)})"
