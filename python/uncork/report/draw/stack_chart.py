"""Stacked charts: parts of a whole over time, each with a number as well as a colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from uncork.report.blocks import Layer, StackChart
from uncork.report.draw.axes import Axis, Plot, plot_within, x_axis, y_lines
from uncork.report.draw.chart_parts import (
    INK,
    PAGE,
    clock_ticks,
    clock_title,
    colour,
    even_ticks,
    short_number,
)
from uncork.report.draw.line_chart import WIDE
from uncork.report.draw.marks import group, number, text

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


def draw_stack(chart: StackChart) -> tuple[Plot, str]:
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
    """Return the area of a layer, which has one step per value."""
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
