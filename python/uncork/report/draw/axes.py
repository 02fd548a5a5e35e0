"""The plot area of a chart: where values are on its axes, and the axes with their ticks and labels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from uncork.model.units import format_duration
from uncork.report.draw.marks import GRID, SOFT, cut, group, line, text, text_width

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
