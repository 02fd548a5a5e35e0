"""Charts as inline SVG in the colours of the page, which its style sheet sets for light and dark.

uncork draws them itself: a page then takes a few milliseconds, whereas a program for charts takes most of a
second to start. `tests/unit/report/test_charts.py` measures the drawings.
"""

from __future__ import annotations

from html import escape

from uncork.report.blocks import Chart, DotChart, ForestChart, StackChart
from uncork.report.draw.dot_chart import draw_dots
from uncork.report.draw.forest_chart import draw_forest
from uncork.report.draw.line_chart import draw_lines
from uncork.report.draw.marks import number
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
