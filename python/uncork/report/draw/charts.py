"""Charts as inline SVG, drawn by Vega-Lite when a page is written.

Colours are sentinel values that `draw` replaces with CSS custom properties, so that one drawing serves both
the light and the dark page. Labels are computed here and passed to Vega as data, because its number formats
support neither units nor thin spaces.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Final

import altair as alt
import vl_convert

from uncork.model.verdict import Verdict
from uncork.report.blocks import Chart, DotChart, ForestChart, LineChart, StackChart
from uncork.report.draw.chart_parts import (
    BAND,
    GRID,
    INK,
    PAGE,
    SOFT,
    VARIABLES,
    clock_ticks,
    colour,
    even_ticks,
    log_ticks,
    short_number,
    tick_labels,
    value_label,
)
from uncork.report.draw.dot_chart import dot_drawing, dot_rows
from uncork.report.draw.stack_chart import stack_drawing, stack_rows
from uncork.report.words import effect_text

__all__ = ["Palette", "draw"]

SHAPES: Final = (
    "circle",
    "square",
    "triangle-up",
    "cross",
    "triangle-down",
    "triangle-right",
    "wedge",
    "triangle-left",
)
"""Shapes by their names in Vega; each variant has its own shape as well as its own colour."""

_NICE_RATIOS: Final = (
    *(1, 0.5, 2, 0.1, 10, 0.01, 100, 0.001, 1000, 0.2, 5, 0.7, 1.5, 0.8, 1.2, 0.9, 1.1, 0.6, 0.3, 3),
    *(0.95, 1.05, 0.97, 1.03, 0.98, 1.02, 0.99, 1.01),
)
"""Ratios where ticks may be placed, the most preferred first."""
_FOREST_WIDTH: Final = 960
_SMALL: Final = (340, 228)
"""Width and height of a small chart with its axes, which fits a page 400 pixels wide."""
_WIDE: Final = (960, 270)
"""Size of a wide chart, which the page scales to its width: labels stay between 9 and 14 pixels high."""
_MOST_MARKED: Final = 40
"""Maximum number of points over time that get marks; more would merge into a band."""

_ROWS: Final = "rows"
_LEAST_SPAN: Final = 1.16
"""Square root of the minimum ratio between the ends of a y axis."""
_Drawing = alt.LayerChart | alt.FacetChart
_CONFIG: Final = {
    "aria": False,
    "background": "transparent",
    "font": "DejaVu Sans",  # a wide font for layout: the reader's font needs no more room
    "padding": 6,
    "view": {"stroke": None},
    "axis": {
        "labelColor": SOFT,
        "titleColor": SOFT,
        "domainColor": GRID,
        "tickColor": GRID,
        "gridColor": GRID,
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
    "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
}


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours and shapes of variants: a neutral colour for the baseline, then the others in order."""

    variants: tuple[str, ...]
    baseline: str

    def number(self, variant: str) -> int:
        """Return the number of a variant's colour, 0 for the baseline."""
        others = [name for name in self.variants if name != self.baseline]
        return 0 if variant == self.baseline or variant not in others else 1 + others.index(variant) % 7

    def shape(self, variant: str) -> str:
        """Return the name of a variant's shape in Vega."""
        return SHAPES[self.number(variant)]

    def sentinel(self, variant: str) -> str:
        """Return the placeholder colour of a variant, which a CSS variable replaces."""
        return colour(self.number(variant))


def draw(chart: Chart, palette: Palette, id: str) -> str:
    """Return the chart as an `<svg>` element for an HTML page, with a title for screen readers.

    `id` must be unique in the page: names inside the drawing use it to avoid clashes with other drawings.
    """
    if isinstance(chart, ForestChart):
        rows = _forest_rows(chart, palette)
        drawing = _forest(chart, palette)
    elif isinstance(chart, DotChart):
        rows = dot_rows(chart)
        names = chart.variants
        colours, shapes = map(palette.sentinel, names), map(palette.shape, names)
        drawing = dot_drawing(chart, rows, _ROWS, _SMALL[0], [*colours], [*shapes])
    elif isinstance(chart, StackChart):
        rows = stack_rows(chart)
        drawing = stack_drawing(chart, rows, _ROWS, _WIDE)
    else:
        rows = _line_rows(chart)
        drawing = _lines(chart, rows, palette)
    # Altair copies its data at every step, so add the rows to the finished specification instead.
    spec = drawing.to_dict(validate=False)
    spec |= {"config": _CONFIG, "datasets": {**spec.get("datasets", {}), _ROWS: rows}}
    svg: str = vl_convert.vegalite_to_svg(json.dumps(spec))
    return _inlined(svg, chart, id)


def _inlined(svg: str, chart: Chart, id: str) -> str:
    for sentinel, variable in VARIABLES.items():
        svg = svg.replace(sentinel, f"var(--{variable})")
    svg = re.sub(r"#0201(\d\d)", lambda match: f"var(--v{int(match[1])})", svg)
    svg = re.sub(r'\bid="(clip|gradient)', rf'id="{id}-\1', svg)
    svg = re.sub(r"url\(#(clip|gradient)", rf"url(#{id}-\1", svg)
    svg = re.sub(r' (?:aria-[a-z]+|role|font-family|pointer-events|xmlns:xlink|version)="[^"]*"', "", svg)
    width, height = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg).groups()  # type: ignore[union-attr]
    body = svg[svg.index(">") + 1 :]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" role="img" aria-labelledby="{id}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<title id="{id}">{escape(chart.title)}. {escape(chart.description)}</title>{body}'
    )


# ---- forest ----


def _forest(chart: ForestChart, palette: Palette) -> _Drawing:
    reach = _reach(chart)
    labels = list(dict.fromkeys(mark.label for mark in chart.marks))
    names = [name for name in chart.variants if any(mark.variant == name for mark in chart.marks)]
    base = alt.Chart(alt.NamedData(name=_ROWS)).encode(
        y=alt.Y(
            "label:N",
            sort=labels,
            axis=alt.Axis(title=None, labelLimit=230),
            scale=alt.Scale(paddingInner=0.25),
        ),
        yOffset=alt.YOffset("variant:N", sort=names, scale=alt.Scale(domain=names, paddingOuter=0.2)),
    )
    ticks = _ratio_ticks(reach)
    axis = alt.Axis(
        title=f"change from the baseline; {'left' if chart.better == 'lower' else 'right'} is better",
        values=ticks,
        labelExpr=tick_labels(ticks, [_ratio_label(math.exp(tick)) for tick in ticks]),
    )
    x = alt.X("x:Q", scale=alt.Scale(domain=[-reach[0], reach[1]], nice=False, zero=False), axis=axis)
    colour = alt.Color(
        "variant:N", scale=alt.Scale(domain=names, range=[palette.sentinel(n) for n in names]), legend=None
    )
    shape = alt.Shape(
        "variant:N", scale=alt.Scale(domain=names, range=[palette.shape(n) for n in names]), legend=None
    )
    layers: list[Any] = []
    if chart.floor:
        edge = math.log1p(chart.floor)
        layers.append(_band(-edge, edge))
    limit = math.log1p(chart.practical)
    layers += [_upright(-limit, [4, 3]), _upright(limit, [4, 3]), _upright(0.0, [1, 0])]
    layers.append(base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q"), x2="high:Q", color=colour))
    layers.append(
        base.transform_filter("datum.published != null")
        .mark_point(shape="diamond", size=44, strokeWidth=1.2, fill=PAGE, opacity=1)
        .encode(x=alt.X("published:Q"), stroke=colour)
    )
    fill = alt.Fill("fill:N", scale=None, legend=None)
    layers.append(
        base.mark_point(size=46, strokeWidth=1.6, opacity=1).encode(
            x=x, stroke=colour, shape=shape, fill=fill
        )
    )
    height = len(labels) * max(26, 11 * len(names) + 12)
    return alt.layer(*layers).properties(
        width=_FOREST_WIDTH, height=height, autosize=alt.AutoSizeParams(type="fit-x", contains="padding")
    )


def _forest_rows(chart: ForestChart, palette: Palette) -> list[dict[str, Any]]:
    reach = _reach(chart)
    rows: list[dict[str, Any]] = []
    for mark in chart.marks:
        clear = mark.verdict in (Verdict.FASTER, Verdict.SLOWER)
        rows.append(
            {
                "label": mark.label,
                "variant": mark.variant,
                "x": math.log(mark.ratio),
                "low": max(-reach[0], -math.inf if not mark.low else math.log(mark.low)),
                "high": min(reach[1], math.inf if mark.high is None else math.log(mark.high)),
                "fill": palette.sentinel(mark.variant) if clear else PAGE,
                "published": math.log(mark.published) if mark.published else None,
            }
        )
    return rows


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


def _ratio_ticks(reach: tuple[float, float]) -> list[float]:
    chosen: list[float] = []
    apart = sum(reach) / 9
    for ratio in _NICE_RATIOS:
        tick = math.log(ratio)
        if -reach[0] <= tick <= reach[1] and all(abs(tick - other) >= apart for other in chosen):
            chosen.append(tick)
    return sorted(chosen)


# ---- lines ----


def _lines(chart: LineChart, rows: list[dict[str, Any]], palette: Palette) -> _Drawing:
    names = list(chart.variants)
    x_log = chart.axis == "factor" and min(r["x"] for r in rows) > 0 and _spread(rows, "x") >= 10
    y_log = not chart.from_zero and min(r["y"] for r in rows) > 0 and _spread(rows, "y") >= 3
    x_ticks, x_labels = _x_ticks(chart, rows)
    limits = [{"y": value, "text": name} for value, name in chart.limits]
    most = max(chart.most, *(r["y"] for r in (*rows, *limits)))
    reach = (0.0, 1.05 * most or 1.0) if chart.from_zero else _y_reach([*rows, *limits])
    y_ticks = log_ticks(*reach) if y_log else even_ticks(*reach)
    y_labels = [value_label(tick, chart.unit) for tick in y_ticks]
    base = alt.Chart(alt.NamedData(name=_ROWS)).encode(
        x=alt.X(
            "x:Q",
            scale=alt.Scale(type="log" if x_log else "linear", nice=False, zero=False, padding=8),
            axis=alt.Axis(
                title=chart.x_title,
                values=x_ticks,
                labelExpr=tick_labels(x_ticks, x_labels),
                labelOverlap=False,
                grid=False,
            ),
        ),
        y=alt.Y(
            "y:Q",
            scale=alt.Scale(type="log" if y_log else "linear", domain=list(reach), nice=False, zero=False),
            axis=alt.Axis(title=None, values=y_ticks, labelExpr=tick_labels(y_ticks, y_labels)),
        ),
        color=alt.Color(
            "variant:N",
            scale=alt.Scale(domain=names, range=[palette.sentinel(n) for n in names]),
            legend=None,
        ),
        detail="style:N",
    )
    shape = alt.Shape(
        "variant:N", scale=alt.Scale(domain=names, range=[palette.shape(n) for n in names]), legend=None
    )
    layers: list[Any] = [] if chart.shaded is None else [_band(*chart.shaded)]
    for point in chart.crossovers:
        layers += [_band(point.low, point.high), _upright(point.estimate, [2, 2])]
    dash = alt.StrokeDash(
        "style:N",
        scale=alt.Scale(domain=["measured", "again", "published"], range=[[1, 0], [1.5, 2.5], [5, 3]]),
        legend=None,
    )
    layers.append(base.mark_line(strokeWidth=1.8, opacity=0.9).encode(strokeDash=dash))
    if chart.axis != "quantile" and not (chart.axis in ("time", "clock") and len(rows) > _MOST_MARKED):
        measured = base.transform_filter("datum.style == 'measured'")
        layers.append(measured.mark_point(size=34, filled=True, opacity=1).encode(shape=shape))
        published = base.transform_filter("datum.style == 'published'")
        layers.append(published.mark_point(size=38, shape="diamond", strokeWidth=1.4, fill=PAGE, opacity=1))
    layers += _limit_layers(limits)
    width, height = _WIDE if chart.wide else _SMALL
    return alt.layer(*layers).properties(
        width=width, height=height, autosize=alt.AutoSizeParams(type="fit", contains="padding")
    )


def _limit_layers(limits: list[dict[str, Any]]) -> list[alt.Chart]:
    """Return a dashed line across the chart for each limit, with its name above the line's beginning."""
    if not limits:
        return []
    base = alt.Chart(_data(limits)).encode(y=alt.Y("y:Q"))
    name = base.mark_text(align="left", baseline="bottom", dx=4, dy=-3, fontSize=12, fill=INK)
    return [
        base.mark_rule(color=INK, strokeWidth=1.4, strokeDash=[6, 4]),
        name.encode(text="text:N", x=alt.value(0)),
    ]


def _line_rows(chart: LineChart) -> list[dict[str, Any]]:
    rows = []
    for line in chart.lines:
        for x, y in line.points:
            if chart.axis == "quantile" and x >= 1:
                continue  # an axis of -log(1 - quantile) cannot show the maximum; the table has it
            at = -math.log10(1 - x) if chart.axis == "quantile" else x
            rows.append({"x": at, "y": y, "variant": line.variant, "style": line.style})
    return rows or [{"x": 1, "y": 1, "variant": "", "style": "measured"}]


def _x_ticks(chart: LineChart, rows: list[dict[str, Any]]) -> tuple[list[float], list[str]]:
    found = sorted({row["x"] for row in rows})
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
    """Return labels for levels, from the last one down, without those that would overlap a neighbour."""
    logarithmic = levels[0] > 0 and levels[-1] / levels[0] >= 10
    places = [math.log(x) for x in levels] if logarithmic else levels
    width = (places[-1] - places[0]) or 1.0
    texts, last = [""] * len(levels), math.inf
    for number in reversed(range(len(levels))):
        if (last - places[number]) / width > 0.125:
            texts[number], last = short_number(levels[number]), places[number]
    return texts


def _y_reach(rows: list[dict[str, Any]]) -> tuple[float, float]:
    """Return the ends of the y axis, at least a third apart, so that noise does not look like an effect."""
    low, high = min(row["y"] for row in rows), max(row["y"] for row in rows)
    if low <= 0:
        return low, max(high, low + 1.0)
    middle, half = math.sqrt(low * high), max(math.sqrt(high / low) * (high / low) ** 0.06, _LEAST_SPAN)
    return middle / half, middle * half


# ---- shared ----


def _data(rows: list[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=rows)


def _band(low: float, high: float) -> alt.Chart:
    mark = alt.Chart(_data([{"low": low, "high": high}])).mark_rect(color=BAND, opacity=1)
    band: alt.Chart = mark.encode(x=alt.X("low:Q"), x2="high:Q")
    return band


def _upright(x: float, dash: Sequence[int]) -> alt.Chart:
    mark = alt.Chart(_data([{"x": x}])).mark_rule(color=SOFT, strokeWidth=1, strokeDash=list(dash))
    line: alt.Chart = mark.encode(x=alt.X("x:Q"))
    return line


def _spread(rows: list[dict[str, Any]], key: str) -> float:
    values = [row[key] for row in rows]
    return max(values) / min(values) if min(values) > 0 else math.inf
