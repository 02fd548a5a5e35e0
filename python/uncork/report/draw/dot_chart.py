"""Dot charts: values of several variants with their intervals, one row per measured quantity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import altair as alt

from uncork.report.blocks import DotChart
from uncork.report.draw.chart_parts import even_ticks, log_ticks, tick_labels, value_label

__all__ = ["dot_drawing", "dot_rows"]

_FAR: Final = 20.0
"""Values that differ by more than this factor get a logarithmic axis."""
_ROW: Final = 9
"""Height of a variant in a row, in pixels."""


def dot_rows(chart: DotChart) -> list[dict[str, Any]]:
    """Return one row per mark; a mark without an interval has equal ends."""
    return [
        {
            "label": mark.label,
            "variant": mark.variant,
            "x": mark.value,
            "low": mark.value if mark.low is None else mark.low,
            "high": mark.value if mark.high is None else mark.high,
        }
        for mark in chart.marks
    ]


def dot_drawing(
    chart: DotChart,
    rows: Sequence[dict[str, Any]],
    name: str,
    width: int,
    colours: Sequence[str],
    shapes: Sequence[str],
) -> alt.LayerChart | alt.FacetChart:
    """Return the drawing of a chart whose rows are the data set `name`.

    `colours` and `shapes` belong to its variants, in the same order.
    """
    labels = list(dict.fromkeys(mark.label for mark in chart.marks))
    names = list(chart.variants)
    logarithmic, reach = _reach(chart, rows)
    ticks = log_ticks(*reach) if logarithmic else even_ticks(*reach)
    axis = alt.Axis(
        title=None, values=ticks, labelExpr=tick_labels(ticks, [_label(tick, chart.unit) for tick in ticks])
    )
    scale = alt.Scale(
        type="log" if logarithmic else "linear", domain=list(reach), nice=False, zero=False, padding=6
    )
    of_variants = alt.Scale(domain=names, range=list(colours))
    colour = alt.Color("variant:N", scale=of_variants, legend=None)
    shape = alt.Shape("variant:N", scale=alt.Scale(domain=names, range=list(shapes)), legend=None)
    base = alt.Chart(alt.NamedData(name=name)).encode(
        y=alt.Y(
            "label:N",
            sort=labels,
            axis=alt.Axis(title=None, labelLimit=110, grid=True, tickBand="extent"),
            scale=alt.Scale(paddingInner=0.2),
        ),
        yOffset=alt.YOffset("variant:N", sort=names, scale=alt.Scale(domain=names, paddingOuter=0.3)),
    )
    return alt.layer(
        base.mark_rule(strokeWidth=1.6).encode(x=alt.X("low:Q"), x2="high:Q", color=colour),
        base.mark_point(size=34, strokeWidth=1.2, opacity=1).encode(
            x=alt.X("x:Q", scale=scale, axis=axis),
            stroke=alt.Stroke("variant:N", scale=of_variants, legend=None),
            fill=alt.Fill("variant:N", scale=of_variants, legend=None),
            shape=shape,
        ),
    ).properties(
        width=width,
        height=len(labels) * max(26, _ROW * len(names) + 8),
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
    )


def _reach(chart: DotChart, rows: Sequence[dict[str, Any]]) -> tuple[bool, tuple[float, float]]:
    """Return whether the axis is logarithmic, and its ends. Shares always run from 0 to 1."""
    if chart.unit == "share":
        return False, (0.0, 1.0)
    low, high = min(row["low"] for row in rows), max(row["high"] for row in rows)
    if low <= 0 or high <= low * _FAR:
        return False, (0.0, 1.05 * high or 1.0)
    room = math.exp(0.04 * math.log(high / low))
    return True, (low / room, high * room)


def _label(value: float, unit: str) -> str:
    return f"{value * 100:g} %" if unit == "share" else value_label(value, unit)
