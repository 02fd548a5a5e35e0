"""Charts that compare runs: over time, by level, by status, and by cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from uncork.model.results.run_comparison import FigureComparison, RunComparison, RunSeries, SeriesPoint
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Block, DotChart, DotMark, Gallery, Legend, Line, LineChart, Section
from uncork.report.statuses import status_groups
from uncork.report.words import share_text

_AXES: Final = {
    "time": "seconds since the start of each run",
    "clients": "clients",
    "rate": "arrivals a second",
    "streams": "streams",
}
_COSTS: Final = (
    ("ns", "Processor time per operation", "ns"),
    ("B", "Bytes per operation", "number"),
    ("", "Blocks, queries and round trips per operation", "number"),
)
_MOST_DOTS: Final = 24
_LONGEST: Final = 34


def charts_sections(result: RunComparison) -> Iterator[Section]:
    """Yield the sections of charts that compare runs; none without data."""
    drawn = tuple(_over_time(result))
    if drawn:
        timed = result.series[0].axis == "time"
        yield Section("over-time", "Over time" if timed else "By level", (_legend(result), *drawn))
    costs = tuple(_costs(result))
    if costs:
        yield Section("costs", "Costs per operation", (_legend(result), Gallery(costs)))


def _legend(result: RunComparison) -> Legend:
    return Legend((result.before.id, *(pair.after.id for pair in result.pairs)))


# ---- over time ----


def _over_time(result: RunComparison) -> Iterator[Block]:
    axes = {series.axis for series in result.series}
    if len(axes) != 1 or len(result.series) < 2:
        return
    charts = (
        ("Throughput", "successful operations a second", lambda one: one.throughput, "number"),
        (
            "Median latency",
            "half of the operations ending then took longer",
            lambda one: one.p50_ns,
            "ns",
        ),
        (
            "99th percentile",
            "one in a hundred operations ending then took longer",
            lambda one: one.p99_ns,
            "ns",
        ),
    )
    for title, y_title, read, unit in charts:
        chart = _chart(result, title, y_title, read, ns=unit == "ns")
        if chart is not None:
            yield chart
    if any(point.failed for series in result.series for point in series.points):
        failures = _chart(result, "Failures", "failed operations a second", lambda one: one.failed, ns=False)
        if failures is not None:
            yield failures
    over_time = _statuses_over_time(result.series)
    if len(over_time) == 1:
        yield replace(over_time[0], wide=True)
    elif over_time:
        yield Gallery(over_time)
    statuses = _statuses(result)
    if statuses is not None:
        yield statuses


def _chart(
    result: RunComparison,
    title: str,
    y_title: str,
    read: Callable[[SeriesPoint], float | None],
    *,
    ns: bool,
) -> LineChart | None:
    lines = tuple(
        Line(series.run, found) for series in result.series if len(found := _points(series, read)) > 1
    )
    if len(lines) < 2:
        return None
    timed = result.series[0].axis == "time"
    return LineChart(
        title=f"{title} over time" if timed else f"{title} by level",
        description=" ".join(_range_words(line, ns=ns) for line in lines),
        axis="time" if timed else "factor",
        x_title=_AXES[result.series[0].axis],
        y_title=y_title,
        unit="ns" if ns else "number",
        lines=lines,
        variants=tuple(line.variant for line in lines),
        wide=True,
        from_zero=not ns,
    )


def _points(
    series: RunSeries, read: Callable[[SeriesPoint], float | None]
) -> tuple[tuple[float, float], ...]:
    found = ((point.at, read(point)) for point in series.points)
    return tuple((at, value) for at, value in found if value is not None)


def _range_words(line: Line, *, ns: bool) -> str:
    values = [y for _, y in line.points]
    low, high = (format_duration(y) if ns else format_count(round(y)) for y in (min(values), max(values)))
    return f"{line.variant}: from {low} to {high}."


# ---- statuses ----


def _statuses_over_time(series: Sequence[RunSeries]) -> tuple[LineChart, ...]:
    """Return a chart per status other than 2xx: its share of each run's answers, all on one scale.

    The charts show shares, not rates: failing is often faster than answering, so a rate of failures would
    reflect the speed of a run rather than how many users saw failures.
    """
    known = [run for run in series if any(point.statuses for point in run.points)]
    groups = status_groups(
        status
        for run in known
        for point in run.points
        for status in point.statuses
        if not status.startswith("2")
    )
    drawn = {name: _shares(known, members) for name, members in groups.items()}
    most = max((y for lines in drawn.values() for line in lines for _, y in line.points), default=0.0)
    return tuple(
        LineChart(
            title=f"Status {name} over time",
            description=" ".join(map(_share_words, lines)),
            axis="time",
            x_title=_AXES["time"],
            y_title="share of each second's answers",
            unit="share",
            lines=lines,
            variants=tuple(line.variant for line in lines),
            from_zero=True,
            most=most,
        )
        for name, lines in drawn.items()
        if len(lines) > 1
    )


def _shares(series: Sequence[RunSeries], statuses: frozenset[str]) -> tuple[Line, ...]:
    """Return a line per run, without the seconds in which nothing was answered."""
    lines = (
        Line(
            run.run,
            tuple(
                (point.at, sum(point.statuses.get(status, 0.0) for status in statuses) / answers)
                for point in run.points
                if (answers := sum(point.statuses.values()))
            ),
        )
        for run in series
    )
    return tuple(line for line in lines if len(line.points) > 1)


def _share_words(line: Line) -> str:
    came = [x for x, y in line.points if y]
    if not came:
        return f"{line.variant}: none."
    values = [y for _, y in line.points]
    least, most = share_text(min(values)), share_text(max(values))
    return f"{line.variant}: from {least} to {most}, first at {came[0]:g} s."


def _statuses(result: RunComparison) -> DotChart | None:
    """Return a chart of the share of each status in each run's answers; None without statuses."""
    found = sorted({status for series in result.series for status in series.statuses})
    if not found:
        return None
    marks = [
        DotMark(status, series.run, series.statuses.get(status, 0) / total)
        for status in found
        for series in result.series
        if (total := sum(series.statuses.values()))
    ]
    names = tuple(series.run for series in result.series if series.statuses)
    return DotChart(
        title="Status codes of the whole load",
        description="Share of each run's answers that had each status.",
        unit="share",
        marks=tuple(marks),
        variants=names,
    )


# ---- costs ----


def _costs(result: RunComparison) -> Iterator[DotChart]:
    """Yield a chart per unit of the costs per operation in each run."""
    for unit, title, shown in _COSTS:
        marks = list(_cost_marks(result, unit))
        if not marks:
            continue
        labels = {mark.label for mark in marks}
        names = tuple(
            name for name in _legend(result).variants if any(mark.variant == name for mark in marks)
        )
        yield DotChart(
            title=title,
            description=f"{', '.join(sorted(labels))} of each run.",
            unit="ns" if shown == "ns" else "number",
            marks=tuple(marks),
            variants=names,
        )


def _cost_marks(result: RunComparison, unit: str) -> Iterator[DotMark]:
    named = [[figure for figure in pair.figures if _is_cost(figure, unit)] for pair in result.pairs]
    labels = list(dict.fromkeys(_label(comparison) for found in named for comparison in found))
    for label in labels[:_MOST_DOTS]:
        first = next(comparison for found in named for comparison in found if _label(comparison) == label)
        yield DotMark(label, result.before.id, first.before)
        for pair, found in zip(result.pairs, named, strict=True):
            for comparison in found:
                if _label(comparison) == label:
                    yield DotMark(label, pair.after.id, comparison.after)


def _is_cost(comparison: FigureComparison, unit: str) -> bool:
    return comparison.name.endswith(" each") and comparison.unit == unit and comparison.scale != "effect"


def _label(comparison: FigureComparison) -> str:
    name = comparison.name.removesuffix(" each").replace("processor time", "CPU")
    label = f"{name}, {comparison.subject}" if comparison.subject else name
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
