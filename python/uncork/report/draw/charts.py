"""Charts and their axes as inline SVG, in the page's colours for light and dark.

uncork draws them itself: a page then takes a few milliseconds, whereas a program for charts takes most of a
second to start. `tests/unit/report/test_charts.py` measures the drawings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final

from uncork.model.units import format_duration
from uncork.model.verdict import Verdict
from uncork.report.blocks import Chart, DotChart, ForestChart, ForestMark, Layer, Line, LineChart, StackChart
from uncork.report.draw.marks import (
    BAND,
    GRID,
    INK,
    PAGE,
    SOFT,
    Palette,
    colour,
    cut,
    group,
    line,
    number,
    polyline,
    rect,
    symbol,
    text,
    text_width,
)
from uncork.report.words import effect_text


def draw(chart: Chart, palette: Palette, id: str) -> str:
    """Return the chart as an `<svg>` element for a page; `id` must be unique in the page."""
    if isinstance(chart, ForestChart):
        plot, body = _draw_forest(chart, palette)
    elif isinstance(chart, DotChart):
        plot, body = _draw_dots(chart, palette)
    elif isinstance(chart, StackChart):
        plot, body = _draw_stack(chart)
    else:
        plot, body = _draw_lines(chart, palette)
    width, height = number(plot.outer_width), number(plot.outer_height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-labelledby="{id}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<title id="{id}">{escape(chart.title)}. {escape(chart.description)}</title>'
        f'<g fill="none" transform="translate({number(plot.left)},{number(plot.top)})">{body}</g></svg>'
    )


_WIDTH: Final = 340
_LABEL_WIDTH: Final = 110
_FAR: Final = 20.0
"""Values that differ by more than this factor get a logarithmic axis."""
_ROW: Final = 9
"""Height of a variant in a row, in pixels."""


def _draw_dots(chart: DotChart, palette: Palette) -> tuple[Plot, str]:
    labels = list(dict.fromkeys(mark.label for mark in chart.marks))
    names = list(chart.variants)
    axis = dot_axis(chart)
    height = len(labels) * max(26, _ROW * len(names) + 8)
    plot = plot_within(axis, [cut(label, _LABEL_WIDTH) for label in labels], _WIDTH, inner=height)
    rows, row = bands(len(labels), height, inner=0.2, outer=0.1)
    within, step = bands(len(names), row, outer=0.3)
    x = plot.x(axis)
    lines, symbols = [], []
    for mark in chart.marks:
        y = rows[labels.index(mark.label)] + within[names.index(mark.variant)] + step / 2
        colour = palette.colour(mark.variant)
        if mark.low is not None and mark.high is not None:
            lines.append(line(x(mark.low), y, x(mark.high), y, colour, 1.6))
        facts = f'fill="{colour}" stroke="{colour}" stroke-width="1.2"'
        symbols.append(symbol(palette.shape(mark.variant), x(mark.value), y, 34, facts))
    edges = (round(height * place / len(labels)) + 0.5 for place in range(len(labels)))
    parts = [
        x_axis(axis, plot),
        group("rule", (line(0.5, y, plot.width + 0.5, y, GRID) for y in edges)),
        y_labels(labels, [start + row / 2 for start in rows], _LABEL_WIDTH),
        group("rule", lines),
        group("symbol", symbols),
    ]
    return plot, "".join(parts)


def dot_axis(chart: DotChart) -> Axis:
    """Return the axis of a chart's values."""
    logarithmic, (low, high) = _reach(chart)
    ticks = log_ticks(low, high) if logarithmic else even_ticks(low, high)
    return Axis(low, high, ticks, [_label(tick, chart.unit) for tick in ticks], logarithmic, padding=6)


def _reach(chart: DotChart) -> tuple[bool, tuple[float, float]]:
    """Return whether the axis is logarithmic, and its ends. Shares always run from 0 to 1."""
    if chart.unit == "share":
        return False, (0.0, 1.0)
    low = min(mark.value if mark.low is None else mark.low for mark in chart.marks)
    high = max(mark.value if mark.high is None else mark.high for mark in chart.marks)
    if low <= 0 or high <= low * _FAR:
        return False, (0.0, 1.05 * high or 1.0)
    room = math.exp(0.04 * math.log(high / low))
    return True, (low / room, high * room)


def _label(value: float, unit: str) -> str:
    return f"{value * 100:g} %" if unit == "share" else value_label(value, unit)


_FOREST_WIDTH: Final = 960
_FOREST_LABEL_WIDTH: Final = 230
_NICE_RATIOS: Final = (
    *(1, 0.5, 2, 0.1, 10, 0.01, 100, 0.001, 1000, 0.2, 5, 0.7, 1.5, 0.8, 1.2, 0.9, 1.1, 0.6, 0.3, 3),
    *(0.95, 1.05, 0.97, 1.03, 0.98, 1.02, 0.99, 1.01),
)
"""Ratios where ticks may be placed, the most preferred first."""


def _draw_forest(chart: ForestChart, palette: Palette) -> tuple[Plot, str]:
    labels = list(dict.fromkeys(mark.label for mark in chart.marks))
    names = [name for name in chart.variants if any(mark.variant == name for mark in chart.marks)]
    axis = _forest_axis(chart)
    alone = len(labels) == len(chart.marks)  # no row has two marks to keep apart
    height = len(labels) * max(26, 11 * (1 if alone else len(names)) + 12)
    plot = plot_within(
        axis, [cut(label, _FOREST_LABEL_WIDTH) for label in labels], _FOREST_WIDTH, inner=height
    )
    rows, row = bands(len(labels), height, inner=0.25, outer=0.2)
    within, step = bands(1 if alone else len(names), row, outer=0.2)
    middle = {
        (label, name): rows[i] + within[0 if alone else j] + step / 2
        for i, label in enumerate(labels)
        for j, name in enumerate(names)
    }
    place, published, marks = plot.x(axis), [], []
    for mark in chart.marks:
        y, colour = middle[mark.label, mark.variant], palette.colour(mark.variant)
        if mark.published:
            facts = f'fill="{PAGE}" stroke="{colour}" stroke-width="1.2"'
            published.append(symbol("diamond", place(math.log(mark.published)), y, 44, facts))
        shape, x = palette.shape(mark.variant), place(math.log(mark.ratio))
        marks.append(symbol(shape, x, y, 46, _look(mark, palette)))
    parts = [
        x_axis(axis, plot),
        y_labels(labels, [start + row / 2 for start in rows], _FOREST_LABEL_WIDTH),
        *_thresholds(chart, axis, plot),
        group("rule", (_interval(mark, axis, plot, middle, palette) for mark in chart.marks)),
        group("symbol", published),
        group("symbol", marks),
    ]
    return plot, "".join(parts)


def _look(mark: ForestMark, palette: Palette) -> str:
    colour = palette.colour(mark.variant)
    fill = colour if mark.verdict in (Verdict.FASTER, Verdict.SLOWER) else PAGE
    return f'fill="{fill}" stroke="{colour}" stroke-width="1.6"'


def _interval(
    mark: ForestMark, axis: Axis, plot: Plot, middle: dict[tuple[str, str], float], palette: Palette
) -> str:
    low = max(axis.low, math.log(mark.low) if mark.low else -math.inf)
    high = min(axis.high, math.inf if mark.high is None else math.log(mark.high))
    y, place = middle[mark.label, mark.variant], plot.x(axis)
    return line(place(low), y, place(high), y, palette.colour(mark.variant), 2)


def _thresholds(chart: ForestChart, axis: Axis, plot: Plot) -> Iterator[str]:
    """Yield the noise floor as a band, and lines at no change and at the practical threshold."""
    place = plot.x(axis)
    if chart.floor:
        edge = math.log1p(chart.floor)
        yield group("rect", [rect(place(-edge), 0, place(edge) - place(-edge), plot.height, BAND)])
    limit = math.log1p(chart.practical)
    yield group(
        "rule",
        (
            line(place(at), 0, place(at), plot.height, SOFT, 1, dash)
            for at, dash in ((-limit, "4,3"), (limit, "4,3"), (0.0, ""))
        ),
    )


def _forest_axis(chart: ForestChart) -> Axis:
    left, right = _forest_reach(chart)
    ticks = _ratio_ticks(left, right)
    return Axis(
        -left,
        right,
        ticks,
        [_ratio_label(math.exp(tick)) for tick in ticks],
        title=f"{chart.axis}; {'left' if chart.better == 'lower' else 'right'} is better",
    )


def _forest_reach(chart: ForestChart) -> tuple[float, float]:
    """Return the extent of the axis below and above no change, limited so that no interval dominates."""
    points = [math.log(mark.ratio) for mark in chart.marks]
    points += [math.log(mark.published) for mark in chart.marks if mark.published]
    limit = max(math.log1p(chart.practical), math.log1p(chart.floor or 0.0)) * 1.3
    left, right = max(limit, *(-p for p in points)), max(limit, *points)
    room = 0.6 * (left + right)
    lows = [-math.log(mark.low) for mark in chart.marks if mark.low]
    highs = [math.log(mark.high) for mark in chart.marks if mark.high]
    left, right = min(left + room, max(left, *lows, 0)), min(right + room, max(right, *highs, 0))
    pad = 0.04 * (left + right)
    return left + pad, right + pad


def _ratio_label(ratio: float) -> str:
    if abs(ratio - 1) < 1e-9:
        return "0 %"
    return effect_text(ratio).replace(".0 %", " %")


def _ratio_ticks(left: float, right: float) -> list[float]:
    chosen: list[float] = []
    apart = (left + right) / 9
    for ratio in _NICE_RATIOS:
        tick = math.log(ratio)
        if -left <= tick <= right and all(abs(tick - other) >= apart for other in chosen):
            chosen.append(tick)
    return sorted(chosen)


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


def _draw_lines(chart: LineChart, palette: Palette) -> tuple[Plot, str]:
    lines = [(one, _points(chart, one)) for one in chart.lines]
    across, up = _line_axes(chart)
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


def _line_axes(chart: LineChart) -> tuple[Axis, Axis]:
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
    y = plot.y(up)
    yield group("rule", (line(0, y(at), plot.width, y(at), INK, 1.4, "6,4") for at, _ in chart.limits))
    yield group("text", (text(name, 4, y(at) - 5, INK, "start") for at, name in chart.limits))


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
    for level in reversed(range(len(levels))):
        if (last - places[level]) / width > 0.125:
            texts[level], last = short_number(levels[level]), places[level]
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


_LEAST_THICK: Final = 0.07
"""Share of the axis that a layer must fill somewhere to show its number."""
REST_OPACITY: Final = 0.4
"""Opacity of the layer for everything without a layer of its own."""


def layer_number(chart: StackChart, layer: Layer) -> int:
    """Return the number of a layer in the chart, its legend and its colour; 0 for the rest."""
    return 0 if layer.rest else 1 + [one for one in chart.layers if not one.rest].index(layer)


def stack_bounds(chart: StackChart) -> list[list[tuple[float, float]]]:
    """Return the lower and upper end of each layer at each step."""
    floor = [0.0] * len(chart.layers[0].values)
    found = []
    for layer in chart.layers:
        tops = [low + value for low, value in zip(floor, layer.values, strict=True)]
        found.append(list(zip(floor, tops, strict=True)))
        floor = tops
    return found


def _draw_stack(chart: StackChart) -> tuple[Plot, str]:
    """Return the plot area and what is drawn in it."""
    bounds = stack_bounds(chart)
    length = len(chart.layers[0].values) * chart.step_s
    most = 1.05 * max(high for ends in bounds for _, high in ends) or 1.0
    ticks, labels = clock_ticks(chart.start_s, length)
    across = Axis(0, length, ticks, labels, title=clock_title(chart.start_s, length), grid=False, thin=False)
    y_ticks = even_ticks(0.0, most)
    up = Axis(0.0, most, y_ticks, [short_number(tick) for tick in y_ticks])
    plot = plot_within(across, up.labels, WIDE[0], height=WIDE[1])
    areas = (
        _area(ends, layer_number(chart, layer), REST_OPACITY if layer.rest else 1, plot, across, up)
        for layer, ends in zip(chart.layers, bounds, strict=True)
    )
    parts = [
        y_lines(up, plot),
        x_axis(across, plot),
        group("area", areas),
        group("text", _numbers(chart, bounds, plot, across, up)),
    ]
    return plot, "".join(parts)


def _area(
    ends: Sequence[tuple[float, float]], layer: int, opacity: float, plot: Plot, across: Axis, up: Axis
) -> str:
    step, y = plot.x(across)(across.high / len(ends)), plot.y(up)
    tops = "".join(f"V{number(y(high))}H{number(step * (at + 1))}" for at, (_, high) in enumerate(ends))
    lows = "".join(f"V{number(y(ends[at][0]))}H{number(step * at)}" for at in reversed(range(len(ends))))
    return (
        f'<path d="M0,{number(y(ends[0][1]))}{tops}{lows}Z" fill="{colour(layer)}" '
        f'fill-opacity="{opacity:g}" stroke="{PAGE}" stroke-width="0.7"/>'
    )


def _numbers(
    chart: StackChart, bounds: Sequence[Sequence[tuple[float, float]]], plot: Plot, across: Axis, up: Axis
) -> Iterator[str]:
    """Yield the layers' numbers, each in the middle of its thickest step, if there is room."""
    x, y = plot.x(across), plot.y(up)
    halo = f'font-weight="bold" stroke="{PAGE}" stroke-width="3" paint-order="stroke"'
    for layer, ends in zip(chart.layers, bounds, strict=True):
        shown = layer_number(chart, layer)
        thickness = [high - low for low, high in ends]
        thick = thickness.index(max(thickness))
        if shown and thickness[thick] >= _LEAST_THICK * up.high:
            middle = y(sum(ends[thick]) / 2) + 4
            yield text(str(shown), x((thick + 0.5) * chart.step_s), middle, INK, facts=halo)


# ---- the plot area: where values are on its axes, and the axes with their ticks and labels ----


_PADDING: Final = 6.0
"""Space around a chart, and between an axis and its labels, in pixels."""
_TICK: Final = 5
_LABEL_Y: Final = 16
"""From the x axis down to the baseline of its labels."""
_TITLE_Y: Final = 31
_LABELS_HEIGHT: Final = 19.0
_TITLE_HEIGHT: Final = 34.0
"""Height of what is below the plot area, without and with a title."""
_RISE: Final = 4
"""From the middle of a text down to its baseline."""
_APART: Final = 0.0
"""Least space between two labels of the x axis."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Ticks with their labels, and the values at the ends of the axis.

    `padding` is the space between the ends and the edges of the plot, in pixels. If `thin`, labels that would
    overlap a neighbour are left out.
    """

    low: float
    high: float
    ticks: Sequence[float] = ()
    labels: Sequence[str] = ()
    logarithmic: bool = False
    padding: float = 0.0
    title: str = ""
    grid: bool = True
    thin: bool = True


Scale = Callable[[float], float]
"""Map a value to its coordinate."""


@dataclass(frozen=True, slots=True)
class Plot:
    """The plot area of a chart of `outer_width` × `outer_height` pixels, whose corner is at `left`, `top`."""

    left: float
    top: float
    width: float
    height: float
    outer_width: float
    outer_height: float

    def x(self, axis: Axis) -> Scale:
        """Return the scale of a horizontal axis."""
        return _scale(axis, axis.padding, self.width - axis.padding)

    def y(self, axis: Axis) -> Scale:
        """Return the scale of a vertical axis."""
        return _scale(axis, self.height - axis.padding, axis.padding)


def _scale(axis: Axis, start: float, end: float) -> Scale:
    transform: Scale = math.log if axis.logarithmic else float
    low, high = transform(axis.low), transform(axis.high)
    if high == low:
        return lambda _value: (start + end) / 2
    factor = (end - start) / (high - low)
    return lambda value: start + (transform(value) - low) * factor


def plot_within(
    axis: Axis, labels: Sequence[str], width: float, *, height: float = 0.0, inner: float = 0.0
) -> Plot:
    """Return the plot area that leaves room for the x axis and for the `labels` of the y axis.

    The chart is `width` pixels wide. Its height is `height`, or what a plot `inner` pixels high needs.
    """
    left = math.ceil(_PADDING + max((text_width(label) for label in labels), default=0.0) + _PADDING)
    top, below = _PADDING, (_TITLE_HEIGHT if axis.title else _LABELS_HEIGHT) + _PADDING
    right = _PADDING
    high = height - top - below if height else inner
    for _ in range(3):  # the labels' positions depend on the width, and the width on how far they reach
        plot = Plot(left, top, math.floor(width - left - right), high, width, top + high + below)
        place = plot.x(axis)
        below_plot = [
            (place(tick), text_width(label) / 2)
            for tick, label in zip(axis.ticks, axis.labels, strict=True)
            if label
        ]
        over = max((at + half - plot.width for at, half in below_plot), default=0.0)
        before = max((half - at for at, half in below_plot), default=0.0)
        if over <= right - _PADDING and before <= left - _PADDING:
            break
        right = max(right, _PADDING + over)
        left = max(left, math.ceil(_PADDING + before))
    return plot


def x_axis(axis: Axis, plot: Plot) -> str:
    """Return the horizontal axis below the plot: grid, line, ticks, labels and title."""
    place, bottom = plot.x(axis), plot.height + 0.5
    ticks = [(round(place(tick)) + 0.5, label) for tick, label in zip(axis.ticks, axis.labels, strict=True)]
    rules = [line(x, 0.5, x, bottom, GRID) for x, _ in ticks] if axis.grid else []
    rules += [line(x, bottom, x, bottom + _TICK, GRID) for x, _ in ticks]
    rules.append(line(0.5, bottom, plot.width + 0.5, bottom, GRID))
    shown, reach = [], -math.inf
    for x, label in ticks:
        half = text_width(label) / 2
        if label and not (axis.thin and x - half < reach + _APART):
            shown.append(text(label, x, bottom + _LABEL_Y, SOFT))
            reach = x + half
    if axis.title:
        shown.append(text(axis.title, plot.width / 2, bottom + _TITLE_Y, SOFT))
    return group("rule", rules) + group("text", shown)


def y_lines(axis: Axis, plot: Plot) -> str:
    """Return the grid and the labels of a vertical axis, which has no line of its own."""
    place = plot.y(axis)
    rules = []
    for tick in axis.ticks:
        y = round(place(tick)) + 0.5
        rules.append(line(0.5, y, plot.width + 0.5, y, GRID))
    middles = [place(tick) for tick in axis.ticks]
    return group("rule", rules) + y_labels(axis.labels, middles, math.inf)


def y_labels(labels: Sequence[str], middles: Sequence[float], most: float) -> str:
    """Return labels to the left of the plot, each at its middle and at most `most` pixels wide."""
    return group(
        "text",
        (
            text(cut(label, most), -_PADDING, y + _RISE + 0.5, SOFT, "end")
            for label, y in zip(labels, middles, strict=True)
        ),
    )


def bands(number: int, length: float, *, inner: float = 0.0, outer: float) -> tuple[list[float], float]:
    """Divide a length among `number` bands; return where each begins, and how wide each is.

    `inner` and `outer` are the space between bands and at the ends, as a share of the distance from one band
    to the next.
    """
    step = length / (number - inner + 2 * outer)
    return [(outer + place) * step for place in range(number)], step * (1 - inner)


_DAY_S: Final = 86_400
_STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200),
    *(days * _DAY_S for days in (1, 2, 7, 14, 28, 91, 365)),
)
"""Allowed distances between ticks of the time of day, in seconds."""
_MOST_TIMES: Final = 8


def clock_ticks(start_s: float, length_s: float) -> tuple[list[float], list[str]]:
    """Return ticks at round times of day, in seconds since `start_s`, with their labels in UTC.

    Midnight is labelled with the date. Labels have seconds only if ticks are less than a minute apart.
    """
    step = next((step for step in _STEPS_S if length_s / step <= _MOST_TIMES), _STEPS_S[-1])
    ticks = range(math.ceil(start_s / step) * step, math.floor(start_s + length_s) + 1, step)
    times = [datetime.fromtimestamp(tick, UTC) for tick in ticks]
    form = "%H:%M:%S" if step < 60 else "%H:%M"
    labels = [
        f"{time:{form}}" if tick % _DAY_S else f"{time.day} {time:%b}"
        for tick, time in zip(ticks, times, strict=True)
    ]
    return [tick - start_s for tick in ticks], labels


def clock_title(start_s: float, length_s: float) -> str:
    """Return the title of a time-of-day axis, with its date or first date."""
    first, last = (datetime.fromtimestamp(at, UTC).date() for at in (start_s, start_s + length_s))
    return f"{first}, UTC" if first == last else f"UTC, from {first} on"


def log_ticks(low: float, high: float) -> list[float]:
    """Return the ticks of a logarithmic axis."""
    decades = math.log10(high / low)
    steps = (
        (1, 1.5, 2, 3, 4, 5, 7)
        if decades < 0.8
        else (1, 2, 5)
        if decades < 2
        else (1, 3)
        if decades < 3.2
        else (1,)
    )
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]


def even_ticks(low: float, high: float) -> list[float]:
    """Return about five ticks of a linear axis, at round values."""
    if high <= low:
        return [low]
    rough = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= rough)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def value_label(value: float, unit: str) -> str:
    """Format a value of an axis by its `unit`: ns in a suitable unit of time, a share, or a number."""
    if unit == "share":
        return f"{value * 100:g} %"
    if unit != "ns":
        return short_number(value)
    number, _, name = format_duration(value).partition(" ")
    return f"{float(number):g} {name}" if name in ("ns", "µs", "ms", "s") else format_duration(value)


def short_number(number: float) -> str:
    """Format a number in a few characters: ``250k``."""
    for suffix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= scale:
            return f"{number / scale:g}{suffix}"
    return f"{number:g}"
