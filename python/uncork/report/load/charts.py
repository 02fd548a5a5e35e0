"""The charts of a load: throughput, percentiles, statuses and failures over time; latency by percentile."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Literal

from uncork.model.results.load import Distribution, LoadResult, SecondFacts
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Line, LineChart
from uncork.report.load.words import operation_word

SUCCEEDED, FAILED, HALF, MOST, ALL = "succeeded", "failed", "p50", "p99", "max"
INTENDED, SERVICE = "from the intended start", "service time"
SERIES: Final = (SUCCEEDED, FAILED, HALF, MOST, ALL, INTENDED, SERVICE)
"""Names of the lines, in the order of the page's colours; statuses follow them."""

_MOST_POINTS: Final = 1_200
"""Most points of a line; more intervals than this are merged."""
_LEAST_NS: Final = 250_000_000
"""A shorter last interval is left out, because its rate would be chance."""


def throughput_chart(result: LoadResult) -> LineChart | None:
    """Return throughput over time, or None when the load was too short."""
    points = throughput_points(result)
    if points is None:
        return None
    word = operation_word(result)
    return _chart(
        "Throughput over time",
        _ends(f"Successful {word}s a second", points, _whole),
        f"{word}s a second",
        [Line(SUCCEEDED, points)],
    )


def throughput_points(result: LoadResult) -> tuple[tuple[float, float], ...] | None:
    """Return successes a second over time, in seconds from the start; None when the load was too short."""
    return _points(_usable(result.series), lambda group: _rate(group, lambda one: one.succeeded))


def p99_points(result: LoadResult) -> tuple[tuple[float, float], ...] | None:
    """Return each interval's p99 latency over time; None when the load was too short."""
    seconds = [second for second in _usable(result.series) if second.succeeded]
    return _points(seconds, partial(_worst, lambda one: one.p99_ns))


def percentiles_chart(result: LoadResult) -> LineChart | None:
    """Return each interval's p50, p99 and maximum latency, or None when the load was too short."""
    seconds = [second for second in _usable(result.series) if second.succeeded]
    readings: tuple[tuple[str, Callable[[SecondFacts], int | None]], ...] = (
        (HALF, lambda one: one.p50_ns),
        (MOST, lambda one: one.p99_ns),
        (ALL, lambda one: one.max_ns),
    )
    lines = []
    for name, read in readings:
        points = _points(seconds, partial(_worst, read))
        if points is None:
            return None
        lines.append(Line(name, points))
    since = " from the intended start" if result.settings.open_loop else ""
    return _chart(
        "Percentiles over time",
        _ends("p99 of each second", lines[1].points, format_duration),
        f"latency{since} of the {operation_word(result)}s that ended in each second",
        lines,
        unit="ns",
    )


def distribution_chart(result: LoadResult) -> LineChart | None:
    """Return latency by percentile, in the form of HdrHistogram's plots; None when nothing succeeded."""
    curves: list[tuple[str, Distribution]] = [(INTENDED, result.operation)]
    if result.settings.open_loop:
        curves.append((SERVICE, result.service))
    else:
        curves = [(SERVICE, result.operation)]
    lines = tuple(Line(name, curve.points) for name, curve in curves if len(curve.points) > 1)
    if not lines:
        return None
    top = result.operation
    return LineChart(
        title="Latency by percentile",
        description=f"Median {format_duration(top.p50_ns or 0)}, "
        f"99 % under {format_duration(top.p99_ns or 0)}, longest {format_duration(top.max_ns or 0)}.",
        axis="quantile",
        x_title="percentile",
        y_title=f"latency; each step to the right has a tenth of the {operation_word(result)}s beyond it",
        unit="ns",
        lines=lines,
        variants=tuple(line.variant for line in lines),
        wide=True,
    )


def failures_chart(result: LoadResult) -> LineChart | None:
    """Return failures a second over time; None when nothing failed."""
    seconds = _usable(result.series)
    if not any(second.failed for second in seconds):
        return None
    points = _points(seconds, lambda group: _rate(group, lambda one: one.failed))
    if points is None:
        return None
    word = operation_word(result)
    return _chart(
        "Failures over time",
        _ends(f"Failed {word}s a second", points, _whole),
        f"failed {word}s a second",
        [Line(FAILED, points)],
    )


def statuses_chart(result: LoadResult) -> LineChart | None:
    """Return answers a second by status; None if all had the same status or only their total is known."""
    seconds = _usable(result.series)
    statuses = {status for second in seconds for status in second.statuses}
    if len(statuses) < 2:
        return None
    lines = []
    for name, members in status_groups(statuses).items():
        points = _points(seconds, partial(_rate_of, members))
        if points is None:
            return None
        lines.append(Line(name, points))
    spans = f"Answers a second: {'; '.join(map(_span, lines))}."
    return _chart("Status codes over time", spans, "answers a second, by their status", lines)


def _chart(
    title: str,
    description: str,
    y_title: str,
    lines: Sequence[Line],
    unit: Literal["ns", "number"] = "number",
) -> LineChart:
    return LineChart(
        title=title,
        description=description,
        axis="time",
        x_title="seconds from the beginning",
        y_title=y_title,
        unit=unit,
        lines=tuple(lines),
        variants=tuple(line.variant for line in lines),
        wide=True,
        from_zero=unit == "number",
    )


def _rate_of(statuses: frozenset[str], group: Sequence[SecondFacts]) -> float:
    return _rate(group, lambda one: sum(one.statuses.get(status, 0) for status in statuses))


def _span(line: Line) -> str:
    """Describe the rate of one status, and when it first and last occurred, unless it always did."""
    came = [x for x, y in line.points if y]
    values = [y for _, y in line.points]
    text = f"{line.variant} from {format_count(round(min(values)))} to {format_count(round(max(values)))}"
    if came[0] > line.points[0][0]:
        text += f", first at {came[0]:g} s"
    if came[-1] < line.points[-1][0]:
        text += f", last at {came[-1]:g} s"
    return text


def _usable(series: Sequence[SecondFacts]) -> list[SecondFacts]:
    return [second for second in series if second.length_ns >= _LEAST_NS]


def _points(
    seconds: Sequence[SecondFacts], value: Callable[[Sequence[SecondFacts]], float]
) -> tuple[tuple[float, float], ...] | None:
    size = max(1, math.ceil(len(seconds) / _MOST_POINTS))
    groups = [seconds[start : start + size] for start in range(0, len(seconds), size)]
    if len(groups) < 2:
        return None
    return tuple((group[0].start_ns / 1e9, value(group)) for group in groups)


def _worst(read: Callable[[SecondFacts], int | None], group: Sequence[SecondFacts]) -> float:
    return float(max(read(second) or 0 for second in group))


def _rate(group: Sequence[SecondFacts], count: Callable[[SecondFacts], int]) -> float:
    return sum(count(second) for second in group) / (sum(second.length_ns for second in group) / 1e9)


def _whole(number: float) -> str:
    return format_count(round(number))


def _ends(what: str, points: Sequence[tuple[float, float]], show: Callable[[float], str]) -> str:
    values = [y for _, y in points]
    return f"{what}: from {show(min(values))} to {show(max(values))}."


_MOST: Final = 6
"""Above this number, statuses are drawn by class, so that each line has its own colour."""


def status_groups(statuses: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the statuses of each group by its name, in order: ``404``, or ``4xx`` with all its statuses."""
    ordered = sorted(set(statuses), key=int)
    names = {text: text if len(ordered) <= _MOST else f"{int(text) // 100}xx" for text in ordered}
    return {
        name: frozenset(text for text in ordered if names[text] == name)
        for name in dict.fromkeys(names.values())
    }
