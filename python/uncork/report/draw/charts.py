"""Charts as inline SVG in the colours of the page, which its style sheet sets for light and dark.

uncork draws them itself: a page then takes a few milliseconds, whereas a program for charts takes most of a
second to start. `tests/unit/report/test_charts.py` measures the drawings.
"""

from __future__ import annotations

import math
from html import escape
from typing import Final

from uncork.report.blocks import Chart, DotChart, ForestChart, StackChart
from uncork.report.draw.axes import Axis, Plot, bands, plot_within, x_axis, y_labels
from uncork.report.draw.chart_parts import GRID, even_ticks, log_ticks, value_label
from uncork.report.draw.forest_chart import draw_forest
from uncork.report.draw.line_chart import draw_lines
from uncork.report.draw.marks import cut, group, line, number, symbol
from uncork.report.draw.palette import Palette
from uncork.report.draw.stack_chart import draw_stack


def draw(chart: Chart, palette: Palette, id: str) -> str:
    """Return the chart as an `<svg>` element for an HTML page, with a title for screen readers.

    `id` must be unique in the page.
    """
    if isinstance(chart, ForestChart):
        plot, body = draw_forest(chart, palette)
    elif isinstance(chart, DotChart):
        plot, body = draw_dots(chart, palette)
    elif isinstance(chart, StackChart):
        plot, body = draw_stack(chart)
    else:
        plot, body = draw_lines(chart, palette)
    width, height = number(plot.outer_width), number(plot.outer_height)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-labelledby="{id}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<title id="{id}">{escape(chart.title)}. {escape(chart.description)}</title>'
        f'<g fill="none" transform="translate({number(plot.left)},{number(plot.top)})">{body}</g></svg>'
    )


# ---- dot charts ----


_WIDTH: Final = 340
_LABEL_WIDTH: Final = 110
_FAR: Final = 20.0
"""Values that differ by more than this factor get a logarithmic axis."""
_ROW: Final = 9
"""Height of a variant in a row, in pixels."""


def draw_dots(chart: DotChart, palette: Palette) -> tuple[Plot, str]:
    """Return the plot area and what is drawn in it."""
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
