"""Time series of stored loads, and levels of stored sweeps, to draw several runs over each other."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncork.analysis.load.result import build_load_result
from uncork.analysis.load.sweep import build_sweep_result
from uncork.model.results.load import LoadResult
from uncork.model.results.run_comparison import RunSeries, SeriesPoint
from uncork.model.results.sweep import SweepResult
from uncork.store.layout import read_manifest

_LEAST_NS: Final = 250_000_000
"""A shorter last interval is left out: its rate would be chance."""


def run_series(folder: Path) -> RunSeries | None:
    """Return the time series of a stored load or sweep; None for a run of another kind.

    Raises:
        StoreError: if its files are damaged, or it has no result.
    """
    kind = read_manifest(folder).kind
    if kind == "load":
        return load_series(build_load_result(folder))
    return sweep_series(build_sweep_result(folder)) if kind == "sweep" else None


def load_series(result: LoadResult) -> RunSeries:
    """Return the time series of a load, second by second."""
    points = tuple(
        SeriesPoint(
            at=one.start_ns / 1e9,
            throughput=one.succeeded * 1e9 / one.length_ns,
            failed=one.failed * 1e9 / one.length_ns,
            p50_ns=one.p50_ns,
            p99_ns=one.p99_ns,
            statuses={status: number * 1e9 / one.length_ns for status, number in one.statuses.items()},
        )
        for one in result.series
        if one.length_ns >= _LEAST_NS
    )
    return RunSeries(result.run.id, "time", points, {} if result.http is None else dict(result.http.statuses))


def sweep_series(result: SweepResult) -> RunSeries:
    """Return the levels of a sweep."""
    points = tuple(
        SeriesPoint(
            at=level.level,
            throughput=level.throughput,
            failed=level.throughput * level.wrong / (1 - level.wrong) if level.wrong < 1 else 0.0,
            p50_ns=level.p50_ns,
            p99_ns=level.p99_ns,
        )
        for level in sorted(result.levels, key=lambda one: one.level)
    )
    return RunSeries(result.run.id, result.axis, points, {})
