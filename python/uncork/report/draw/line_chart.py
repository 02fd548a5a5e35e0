"""Line charts: values of a metric along an axis, as points and lines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from uncork.report.blocks import Line, LineChart
from uncork.report.draw.axes import Axis, Plot, plot_within, x_axis, y_lines
from uncork.report.draw.chart_parts import (
    BAND,
    INK,
    PAGE,
    SOFT,
    clock_ticks,
    even_ticks,
    log_ticks,
    short_number,
    value_label,
)
from uncork.report.draw.marks import group, line, polyline, rect, symbol, text
from uncork.report.draw.palette import Palette

_SMALL: Final = (340, 228)
"""Width and height of a small chart with its axes, which fits a page 400 pixels wide."""
WIDE: Final = (960, 270)
"""Size of a wide chart, which the page scales to its width: labels stay between 9 and 14 pixels high."""
_MOST_MARKED: Final = 40
"""Maximum number of points over time that get marks; more would merge into a band."""
_LEAST_SPAN: Final = 1.16
"""Square root of the minimum ratio between the ends of a y axis."""
_DASHES: Final = {"measured": "", "again": "1.5,2.5", "published": "5,3"}

Points = Sequence[tuple[float, float]]


def draw_lines(chart: LineChart, palette: Palette) -> tuple[Plot, str]:
    """Return the plot area and what is drawn in it."""
    lines = [(one, _points(chart, one)) for one in chart.lines]
    across, up = line_axes(chart)
    width, height = WIDE if chart.wide else _SMALL
    plot = plot_within(across, up.labels, width, height=height)
    x, y = plot.x(across), plot.y(up)
    drawn = [(one, [(x(at), y(value)) for at, value in points]) for one, points in lines]
    parts = [y_lines(up, plot), x_axis(across, plot), *_highlights(chart, across, plot)]
    paths = []
    for one, points in drawn:
        dash = f' stroke-dasharray="{_DASHES[one.style]}"' if _DASHES[one.style] else ""
        facts = f'stroke="{palette.colour(one.variant)}" stroke-width="1.8" opacity="0.9"{dash}'
        paths += [polyline(points, facts)] if points else []
    parts.append(group("line", paths))
    several = sum(len(points) for _, points in drawn) > _MOST_MARKED
    if chart.axis != "quantile" and not (chart.axis in ("time", "clock") and several):
        parts += [group("symbol", _symbols(one, points, palette)) for one, points in drawn]
    parts += _limits(chart, up, plot)
    return plot, "".join(parts)


def line_axes(chart: LineChart) -> tuple[Axis, Axis]:
    """Return the horizontal and the vertical axis of a chart."""
    points = [point for one in chart.lines for point in _points(chart, one)] or [(1.0, 1.0)]
    at, values = sorted({x for x, _ in points}), [y for _, y in points]
    ticks, labels = _x_ticks(chart, at)
    highlighted = [*(chart.shaded or ())]
    for point in chart.crossovers:
        highlighted += [point.low, point.estimate, point.high]
    x_log = chart.axis == "factor" and _spread(at) >= 10
    ends = [x for x in (*at, *highlighted) if x > 0 or not x_log]
    across = Axis(
        *(min(ends), max(ends), ticks, labels, x_log),
        padding=8,
        title=chart.x_title,
        grid=False,
        thin=False,
    )
    with_limits = [*values, *(value for value, _ in chart.limits)]
    y_log = not chart.from_zero and _spread(values) >= 3
    most = max(chart.most, *with_limits) if len(with_limits) > 1 else max(chart.most, with_limits[0])
    low, high = (0.0, 1.05 * most or 1.0) if chart.from_zero else _y_reach(with_limits)
    y_ticks = log_ticks(low, high) if y_log else even_ticks(low, high)
    return across, Axis(low, high, y_ticks, [value_label(tick, chart.unit) for tick in y_ticks], y_log)


def _points(chart: LineChart, one: Line) -> Points:
    """Return the points of a line; a quantile's place is the number of nines, so the maximum has none."""
    if chart.axis != "quantile":
        return one.points
    return [(-math.log10(1 - x), y) for x, y in one.points if x < 1]


# ---- marks ----


def _symbols(one: Line, points: Points, palette: Palette) -> Iterator[str]:
    colour = palette.colour(one.variant)
    for x, y in points:
        if one.style == "measured":
            yield symbol(palette.shape(one.variant), x, y, 34, f'fill="{colour}"')
        elif one.style == "published":
            yield symbol("diamond", x, y, 38, f'fill="{PAGE}" stroke="{colour}" stroke-width="1.4"')


def _highlights(chart: LineChart, across: Axis, plot: Plot) -> Iterator[str]:
    """Yield the shaded range, and each crossover: its interval as a band with a line at the estimate."""
    x = plot.x(across)
    ranges: list[tuple[float, float, float | None]] = [] if chart.shaded is None else [(*chart.shaded, None)]
    ranges += [(point.low, point.high, point.estimate) for point in chart.crossovers]
    for low, high, estimate in ranges:
        left = x(max(low, across.low))
        yield group("rect", [rect(left, 0, x(high) - left, plot.height, BAND)])
        if estimate is not None:
            yield group("rule", [line(x(estimate), 0, x(estimate), plot.height, SOFT, 1, "2,2")])


def _limits(chart: LineChart, up: Axis, plot: Plot) -> Iterator[str]:
    """Yield a dashed line across the chart for each limit, with its name above the line's beginning."""
    y = plot.y(up)
    yield group("rule", (line(0, y(at), plot.width, y(at), INK, 1.4, "6,4") for at, _ in chart.limits))
    yield group("text", (text(name, 4, y(at) - 5, INK, "start") for at, name in chart.limits))


# ---- axes ----


def _x_ticks(chart: LineChart, found: list[float]) -> tuple[list[float], list[str]]:
    if chart.axis == "quantile":
        quantiles = [
            q for q in (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999) if -math.log10(1 - q) <= found[-1] + 1e-9
        ]
        return [-math.log10(1 - q) for q in quantiles], [f"p{q * 100:g}" for q in quantiles]
    if chart.axis == "time":
        ticks = even_ticks(found[0], found[-1])
        return ticks, [short_number(tick) for tick in ticks]
    if chart.axis == "clock":
        return clock_ticks(chart.start_s, found[-1])
    if chart.axis == "round":
        step = max(1, math.ceil(len(found) / 10))
        return found[::step], [f"{x:.0f}" for x in found[::step]]
    return found, _apart(found)


def _apart(levels: list[float]) -> list[str]:
    """Return labels for levels, from the last one down; leave out labels that would overlap another."""
    logarithmic = levels[0] > 0 and levels[-1] / levels[0] >= 10
    places = [math.log(x) for x in levels] if logarithmic else levels
    width = (places[-1] - places[0]) or 1.0
    texts, last = [""] * len(levels), math.inf
    for number in reversed(range(len(levels))):
        if (last - places[number]) / width > 0.125:
            texts[number], last = short_number(levels[number]), places[number]
    return texts


def _y_reach(values: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the y axis, at least a third apart, so that noise does not look like an effect."""
    low, high = min(values), max(values)
    if low <= 0:
        return low, max(high, low + 1.0)
    middle, half = math.sqrt(low * high), max(math.sqrt(high / low) * (high / low) ** 0.06, _LEAST_SPAN)
    return middle / half, middle * half


def _spread(values: Sequence[float]) -> float:
    """Return the ratio of the greatest to the least value; 1 if a logarithmic axis cannot show them."""
    return max(values) / min(values) if min(values) > 0 else 1.0
