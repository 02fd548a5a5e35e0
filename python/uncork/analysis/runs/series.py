"""How stored runs went from their beginnings on, and their stacks side by side: what is drawn of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from uncork.analysis.experiment.stored_evidence import stored_evidence
from uncork.analysis.load.result import build_load_result
from uncork.analysis.load.sweep import build_sweep_result
from uncork.analysis.stacks.result import of_measure
from uncork.model.results.load import LoadResult
from uncork.model.results.run_comparison import RunSeries, SeriesPoint
from uncork.model.results.sweep import SweepResult
from uncork.profile.stacks import beside
from uncork.report.blocks import Flame
from uncork.report.draw.flame import flame_svg, labelled
from uncork.store.layout import read_manifest

__all__ = ["compared_flames", "load_series", "run_series", "sweep_series"]

_LEAST_NS: Final = 250_000_000
"""A shorter last interval is left out: its rate would be chance."""
_MOST_FLAMES: Final = 6


def run_series(folder: Path) -> RunSeries | None:
    """Return how a stored load or sweep went; None of a run of another kind.

    Raises:
        StoreError: if its files are damaged, or it has no result.
    """
    kind = read_manifest(folder).kind
    if kind == "load":
        return load_series(build_load_result(folder))
    return sweep_series(build_sweep_result(folder)) if kind == "sweep" else None


def load_series(result: LoadResult) -> RunSeries:
    """Return how a load went, second by second."""
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
    """Return how a sweep went, level by level."""
    points = tuple(
        SeriesPoint(
            at=one.level,
            throughput=one.throughput,
            failed=one.throughput * one.wrong / (1 - one.wrong) if one.wrong < 1 else 0.0,
            p50_ns=one.p50_ns,
            p99_ns=one.p99_ns,
        )
        for one in sorted(result.levels, key=lambda one: one.level)
    )
    return RunSeries(result.run.id, result.axis, points, {})


def compared_flames(before: Path, others: Sequence[Path]) -> tuple[Flame, ...]:
    """Draw what changed in the processor time of variants of which several experiments kept stacks.

    Raises:
        StoreError: if files are damaged.
    """
    if any(read_manifest(folder).kind != "experiment" for folder in (before, *others)):
        return ()
    old = dict(_stacks(before))
    flames = []
    for folder in others if old else ():
        for place, stacks in _stacks(folder):
            if place in old:
                flames.append(_flame(before.name, folder.name, place, old[place], stacks))
    return tuple(flames[:_MOST_FLAMES])


_Place = tuple[str, str]
"""A workload and a variant."""


def _stacks(folder: Path) -> Iterator[tuple[_Place, pa.Table]]:
    for facts, tables in stored_evidence(folder):
        found = of_measure(tables["stacks"], "cpu")
        if facts["method"]["tool"] == "perf" and len(found):
            yield (facts["place"]["workload"], facts["place"]["variant"]), found


def _flame(before: str, after: str, place: _Place, old: pa.Table, new: pa.Table) -> Flame:
    workload, variant = place
    rows = beside(labelled(new), labelled(old))
    svg = flame_svg(rows, title="", subtitle="", unit="samples", alone=False)
    name = f"{variant} on {workload}: {after} beside {before}"
    note = (
        f"Width is share of the server's CPU in {after}; red has grown since {before}, blue has shrunk. "
        "Click a frame to zoom into it, Esc to zoom out; type to search."
    )
    return Flame(name, name, note, svg)
