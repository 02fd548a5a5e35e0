"""Forest charts: effects with intervals, one row per cell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from uncork.model.verdict import Verdict
from uncork.report.blocks import ForestChart, ForestMark
from uncork.report.draw.axes import Axis, Plot, bands, plot_within, x_axis, y_labels
from uncork.report.draw.chart_parts import BAND, PAGE, SOFT
from uncork.report.draw.marks import cut, group, line, rect, symbol
from uncork.report.draw.palette import Palette
from uncork.report.words import effect_text

_WIDTH: Final = 960
_LABEL_WIDTH: Final = 230
_NICE_RATIOS: Final = (
    *(1, 0.5, 2, 0.1, 10, 0.01, 100, 0.001, 1000, 0.2, 5, 0.7, 1.5, 0.8, 1.2, 0.9, 1.1, 0.6, 0.3, 3),
    *(0.95, 1.05, 0.97, 1.03, 0.98, 1.02, 0.99, 1.01),
)
"""Ratios where ticks may be placed, the most preferred first."""


def draw_forest(chart: ForestChart, palette: Palette) -> tuple[Plot, str]:
    """Return the plot area and what is drawn in it."""
    labels = list(dict.fromkeys(mark.label for mark in chart.marks))
    names = [name for name in chart.variants if any(mark.variant == name for mark in chart.marks)]
    axis = _axis(chart)
    alone = len(labels) == len(chart.marks)  # no row has two marks to keep apart
    height = len(labels) * max(26, 11 * (1 if alone else len(names)) + 12)
    plot = plot_within(axis, [cut(label, _LABEL_WIDTH) for label in labels], _WIDTH, inner=height)
    rows, row = bands(len(labels), height, inner=0.25, outer=0.2)
    within, step = bands(1 if alone else len(names), row, outer=0.2)
    middle = {
        (label, name): rows[i] + within[0 if alone else j] + step / 2
        for i, label in enumerate(labels)
        for j, name in enumerate(names)
    }
    place = plot.x(axis)
    parts = [
        x_axis(axis, plot),
        y_labels(labels, [start + row / 2 for start in rows], _LABEL_WIDTH),
        *_thresholds(chart, axis, plot),
        group("rule", (_interval(mark, axis, plot, middle, palette) for mark in chart.marks)),
        group(
            "symbol",
            (
                symbol(
                    "diamond",
                    place(math.log(mark.published)),
                    middle[mark.label, mark.variant],
                    44,
                    f'fill="{PAGE}" stroke="{palette.colour(mark.variant)}" stroke-width="1.2"',
                )
                for mark in chart.marks
                if mark.published
            ),
        ),
        group(
            "symbol",
            (
                symbol(
                    palette.shape(mark.variant),
                    place(math.log(mark.ratio)),
                    middle[mark.label, mark.variant],
                    46,
                    _look(mark, palette),
                )
                for mark in chart.marks
            ),
        ),
    ]
    return plot, "".join(parts)


def _look(mark: ForestMark, palette: Palette) -> str:
    """Return the colours of a mark: only clear verdicts are filled."""
    colour = palette.colour(mark.variant)
    fill = colour if mark.verdict in (Verdict.FASTER, Verdict.SLOWER) else PAGE
    return f'fill="{fill}" stroke="{colour}" stroke-width="1.6"'


def _interval(
    mark: ForestMark, axis: Axis, plot: Plot, middle: dict[tuple[str, str], float], palette: Palette
) -> str:
    """Return the line of an interval, which ends where the axis ends."""
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


def _axis(chart: ForestChart) -> Axis:
    left, right = _reach(chart)
    ticks = _ratio_ticks(left, right)
    return Axis(
        -left,
        right,
        ticks,
        [_ratio_label(math.exp(tick)) for tick in ticks],
        title=f"{chart.axis}; {'left' if chart.better == 'lower' else 'right'} is better",
    )


def _reach(chart: ForestChart) -> tuple[float, float]:
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
