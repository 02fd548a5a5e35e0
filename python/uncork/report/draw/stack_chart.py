"""Stacked charts: parts of a whole over time, each with a number as well as a colour."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from uncork.report.blocks import Layer, StackChart
from uncork.report.draw.chart_parts import (
    INK,
    PAGE,
    clock_ticks,
    clock_title,
    colour,
    even_ticks,
    short_number,
    tick_labels,
)

__all__ = ["REST_OPACITY", "layer_number", "stack_drawing", "stack_rows"]

_LEAST_THICK: Final = 0.07
"""Share of the axis that a layer must fill somewhere to show its number."""
REST_OPACITY: Final = 0.4
"""Opacity of the layer for everything without a layer of its own."""


def layer_number(chart: StackChart, layer: Layer) -> int:
    """Return the number of a layer in the chart, its legend and its colour; 0 for the rest."""
    return 0 if layer.rest else 1 + [one for one in chart.layers if not one.rest].index(layer)


def stack_rows(chart: StackChart) -> list[dict[str, Any]]:
    """Return the ends of each layer at each step, one row each, with the last step repeated."""
    floor = [0.0] * len(chart.layers[0].values)
    rows: list[dict[str, Any]] = []
    for layer in chart.layers:
        number, opacity = layer_number(chart, layer), REST_OPACITY if layer.rest else 1
        tops = [low + value for low, value in zip(floor, layer.values, strict=True)]
        ends = list(zip(floor, tops, strict=True))
        rows += (
            {"x": place * chart.step_s, "low": low, "high": high, "number": number, "opacity": opacity}
            for place, (low, high) in enumerate([*ends, ends[-1]])
        )
        floor = tops
    return rows


def stack_drawing(
    chart: StackChart, rows: Sequence[dict[str, Any]], name: str, size: tuple[int, int]
) -> alt.LayerChart | alt.FacetChart:
    """Return the drawing of a stack whose rows are the data set `name`, `size` pixels wide and high."""
    length = len(chart.layers[0].values) * chart.step_s
    most = 1.05 * max(row["high"] for row in rows) or 1.0
    x_ticks, x_labels = clock_ticks(chart.start_s, length)
    y_ticks = even_ticks(0.0, most)
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, length], nice=False),
        axis=alt.Axis(
            title=clock_title(chart.start_s, length),
            values=x_ticks,
            labelExpr=tick_labels(x_ticks, x_labels),
            labelOverlap=False,
            grid=False,
        ),
    )
    y_axis = alt.Axis(
        title=None, values=y_ticks, labelExpr=tick_labels(y_ticks, [short_number(tick) for tick in y_ticks])
    )
    y = alt.Y("low:Q", scale=alt.Scale(domain=[0, most], nice=False), axis=y_axis)
    numbers = [layer_number(chart, layer) for layer in chart.layers]
    areas = (
        alt.Chart(alt.NamedData(name=name))
        .mark_area(interpolate="step-after", stroke=PAGE, strokeWidth=0.7)
        .encode(
            x=x,
            y=y,
            y2="high:Q",
            fill=alt.Fill(
                "number:N",
                scale=alt.Scale(domain=numbers, range=[colour(number) for number in numbers]),
                legend=None,
            ),
            fillOpacity=alt.FillOpacity("opacity:Q", scale=None),
        )
    )
    marks = alt.Chart(alt.InlineData(values=_places(chart, rows, most))).encode(
        x="x:Q", y="y:Q", text="text:N"
    )
    return alt.layer(
        areas,
        marks.mark_text(fontSize=12, fontWeight="bold", stroke=PAGE, strokeWidth=3, fill=PAGE),
        marks.mark_text(fontSize=12, fontWeight="bold", fill=INK),
    ).properties(width=size[0], height=size[1], autosize=alt.AutoSizeParams(type="fit", contains="padding"))


def _places(chart: StackChart, rows: Sequence[dict[str, Any]], most: float) -> list[dict[str, Any]]:
    """Return the positions of the layers' numbers: the middle of the thickest step, if there is room."""
    found = []
    for number in range(1, len(chart.layers) + 1):
        steps = [row for row in rows if row["number"] == number][:-1]
        thick = max(steps, key=lambda row: row["high"] - row["low"], default=None)
        if thick is not None and thick["high"] - thick["low"] >= _LEAST_THICK * most:
            middle = (thick["low"] + thick["high"]) / 2
            found.append({"x": thick["x"] + chart.step_s / 2, "y": middle, "text": str(number)})
    return found
