"""Judge whether a load was steady, and compute its metrics over the steady part. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from uncork.load.run import INTERVAL_NS
from uncork.load.sql import merge_histograms
from uncork.model.results.load import SecondFacts, SteadyFacts
from uncork.model.tables.load import LoadInterval
from uncork.stats.steady import find_steady_part

_NOTHING = 0.5
"""A second without success counts as this many successes, because 0 has no logarithm."""


def steady_facts(
    seconds: Sequence[SecondFacts], intervals: Sequence[LoadInterval], *, open_loop: bool
) -> SteadyFacts | None:
    """Return whether a load was steady; None if it has too few whole seconds to judge.

    A closed loop is judged by its throughput. An open loop has the throughput that was asked for, so it is
    judged by the median latency of each second; seconds without success do not count there.
    """
    whole = [second for second in seconds if second.length_ns == INTERVAL_NS]
    if open_loop:
        whole = [second for second in whole if second.p50_ns]
        values = [math.log(second.p50_ns or 1) for second in whole]
    else:
        values = [math.log(second.succeeded or _NOTHING) for second in whole]
    found = find_steady_part(values)
    if found.verdict == "unknown" or not any(second.succeeded for second in whole):
        return None
    start_ns = None if found.start is None else whole[found.start].start_ns
    facts = SteadyFacts(
        verdict=found.verdict,
        metric="p50" if open_loop else "throughput",
        seconds=len(whole),
        start_ns=start_ns,
    )
    if found.verdict != "warm-up" or start_ns is None:
        return facts
    kept = [second for second in whole if second.start_ns >= start_ns]
    if not any(second.succeeded for second in kept):
        return None  # the server went away: what came before was no warm-up
    histograms = [
        interval.histogram for interval in intervals if interval.histogram and interval.start_ns >= start_ns
    ]
    points = merge_histograms(histograms)
    return SteadyFacts(
        verdict="warm-up",
        metric=facts.metric,
        seconds=facts.seconds,
        start_ns=start_ns,
        operations_per_second=sum(second.succeeded for second in kept) / (len(kept) * INTERVAL_NS / 1e9),
        p50_ns=_at(points, 0.5),
        p99_ns=_at(points, 0.99),
    )


def _at(points: Sequence[tuple[float, float]], quantile: float) -> int | None:
    return next((round(value) for q, value in points if q >= quantile), None)
