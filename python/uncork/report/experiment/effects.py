"""Sections on the effects: verdicts, forest plots, charts along factors, crossovers."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, cast

from uncork.model.results.experiment import CrossoverPoint, FactorFacts, Levels
from uncork.model.units import count_words, format_count
from uncork.report.blocks import (
    Block,
    Fold,
    ForestChart,
    ForestMark,
    Gallery,
    Legend,
    Line,
    LineChart,
    Paragraph,
    Section,
    Table,
    Value,
)
from uncork.report.cells import BoundColumn, column, header, number, table_of
from uncork.report.experiment.view import Place, View
from uncork.report.words import baseline_text, level_text, metric_title, metric_unit, tally_words

_MANY_MARKS: Final = 40
"""Above this number of marks, all forest plots but the first are folded."""
_FAR: Final = 4.0
"""Published values further off than this factor are not drawn: they would flatten the measured lines."""


def effects_sections(view: View) -> Iterable[Section]:
    """Yield the sections on which variant is better, most important first."""
    if not view.places:
        return
    yield Section("verdicts", "Verdicts", (Paragraph(_reading(view)), *verdict_tables(view)))
    forests = tuple(_forest(view, workload) for workload in view.workloads)
    drawn = tuple(chart for chart in forests if chart.marks)
    if drawn:
        note = "Filled marks: faster or slower. Hollow marks: no clear difference."
        blocks: tuple[Block, ...] = drawn
        if sum(len(chart.marks) for chart in drawn) > _MANY_MARKS:
            blocks = (drawn[0], *(Fold(chart.description, (chart,)) for chart in drawn[1:]))
        yield Section("effects", "Effects and their intervals", (Legend(view.others, note), *blocks))
    for factor in view.factors:
        if factor.numeric:
            charts = tuple(_along(view, factor))
            if charts:
                legend = Legend(view.variants, _published_note(charts))
                parts = (legend, Gallery(charts), *_crossovers(view, factor))
                yield Section(f"along-{factor.name}", f"Along {factor.name}", parts)


def verdict_tables(view: View) -> tuple[Table, ...]:
    """Return one table per workload, with a row per cell and a column per variant."""
    tables = []
    for workload in view.workloads:
        places = [place for place in view.places if place[1] == workload]
        own = [c for c in view.result.comparisons if c.workload == workload]
        facts = view.workload(workload)
        title = f"{workload}: {facts.title}. " if facts and facts.title != workload else f"{workload}. "
        tables.append(
            table_of(
                f"{title}{metric_title(view.metric(workload)).capitalize()}: {tally_words(own)}.",
                places,
                *_level_columns(view, places),
                number(baseline_text(view.baseline), [_baseline(view, place) for place in places]),
                *(
                    column(name, [view.effect(view.comparisons.get((*place, name))) for place in places])
                    for name in view.others
                ),
            )
        )
    return tuple(tables)


def _level_columns(view: View, places: Sequence[Place]) -> Iterator[BoundColumn[Place]]:
    for factor in view.table_factors:
        levels = [level_text(dict(place[0]).get(factor.name, ""), factor.numeric) for place in places]
        yield header(factor.name, levels, number=factor.numeric)


def _baseline(view: View, place: Place) -> Value:
    values = (
        comparison.baseline_value
        for name in view.others
        if (comparison := view.comparisons.get((*place, name))) is not None
    )
    known = next((value for value in values if value is not None), None)
    return Value(view.value(known, place[1]), tone="muted")


def _reading(view: View) -> str:
    confidence, share = view.result.confidence * 100, view.result.practical * 100
    return (
        f"Change from {view.baseline} in per cent, with its {confidence:g} % interval in brackets. "
        f"The experiment treats differences under {share:.3g} % as irrelevant.{_of_shares(view)}"
    )


def _of_shares(view: View) -> str:
    own = [workload for workload in view.result.workloads if workload.metric == "success"]
    if not own:
        return ""
    limits = dict.fromkeys(f"{(workload.practical or view.result.practical) * 100:.3g}" for workload in own)
    which = f"under {' or '.join(limits)} points are irrelevant there"
    return f" Shares of requests that succeed are compared in percentage points; differences {which}."


def _forest(view: View, workload: str) -> ForestChart:
    marks = []
    for place in view.places:
        for name in view.others if place[1] == workload else ():
            found = view.comparisons.get((*place, name))
            if found is not None and found.ratio:
                published = found.published_ratio
                label = view.cell(place[0]) if place[0] else workload
                marks.append(
                    ForestMark(label, name, found.verdict, found.ratio, found.low, found.high, published)
                )
    own = [c for c in view.result.comparisons if c.workload == workload]
    return ForestChart(
        title=f"{workload}: effect against {view.baseline}",
        description=f"{workload}, effects with intervals, one line per cell: {tally_words(own)}",
        marks=tuple(marks),
        variants=view.others,
        practical=view.result.practical,
        floor=view.result.noise.floor,
        better=cast("Literal['lower', 'higher']", view.better(workload)),
    )


def _along(view: View, factor: FactorFacts) -> Iterable[LineChart]:
    groups: dict[tuple[str, Levels], list[Place]] = {}
    for place in view.places:
        fixed = tuple(pair for pair in place[0] if pair[0] != factor.name)
        groups.setdefault((place[1], fixed), []).append(place)
    ranked = sorted(groups.items(), key=lambda item: -max(view.weight(place) for place in item[1]))
    for (workload, fixed), places in ranked:
        if len(places) > 1:
            yield _line_chart(view, factor, workload, fixed, places)


def _line_chart(
    view: View, factor: FactorFacts, workload: str, fixed: Levels, places: list[Place]
) -> LineChart:
    lines = []
    for name in view.variants:
        measured, published = _factor_points(view, factor, name, places)
        if measured:
            lines.append(Line(name, measured))
        if published:
            lines.append(Line(name, published, "published"))
    metric, far = view.metric(workload), _far(lines)
    title = view.place((fixed, workload))
    marks = tuple(
        c for c in view.result.crossovers if (c.factor, c.workload, c.fixed) == (factor.name, workload, fixed)
    )
    return LineChart(
        title=title,
        description=f"{metric_title(metric).capitalize()} by {factor.name}: {title}, one line per variant.",
        axis="factor",
        x_title=factor.name,
        y_title=metric_title(metric),
        unit=metric_unit(metric),
        lines=tuple(line for line in lines if not far or line.style != "published"),
        variants=view.variants,
        note="published values are far off this scale; see the table" if far else "",
        crossovers=marks,
        table=_factor_table(view, factor, workload, title, lines),
    )


def _far(lines: list[Line]) -> bool:
    measured = [y for line in lines if line.style == "measured" for _, y in line.points]
    published = [y for line in lines if line.style == "published" for _, y in line.points]
    if not measured or not published:
        return False
    return min(published) > _FAR * max(measured) or max(published) * _FAR < min(measured)


def _factor_points(
    view: View, factor: FactorFacts, name: str, places: list[Place]
) -> tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float], ...]]:
    measured: list[tuple[float, float]] = []
    published: list[tuple[float, float]] = []
    arms = {(m.cell, m.workload, m.variant): m.value for m in view.result.metrics if not m.again}
    for place in places:
        x = _number(dict(place[0]).get(factor.name, ""))
        value = arms.get((*place, name))
        if x is None:
            continue
        if value is not None and value > 0:
            measured.append((x, value))
        figure = _published_value(view, place, name)
        if figure is not None and figure > 0:
            published.append((x, figure))
    return tuple(sorted(measured)), tuple(sorted(published))


def _published_value(view: View, place: Place, name: str) -> float | None:
    if name != view.baseline:
        found = view.comparisons.get((*place, name))
        return found.published_value if found else None
    for other in view.others:
        found = view.comparisons.get((*place, other))
        if found and found.published_value is not None and found.published_ratio:
            return found.published_value / found.published_ratio
    return None


def _factor_table(view: View, factor: FactorFacts, workload: str, title: str, lines: list[Line]) -> Table:
    at = sorted({x for line in lines for x, _ in line.points})
    return table_of(
        f"{title}: the values drawn",
        at,
        header(factor.name, [format_count(x) for x in at], number=True),
        *(
            number(
                line.variant if line.style == "measured" else f"{line.variant}, published",
                [view.value(dict(line.points).get(x), workload) for x in at],
            )
            for line in lines
        ),
    )


def _published_note(charts: tuple[LineChart, ...]) -> str:
    if any(line.style == "published" for chart in charts for line in chart.lines):
        return "Dashed lines with hollow diamonds: published values."
    return ""


def _number(level: str) -> float | None:
    try:
        number = float(level.replace("_", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _crossovers(view: View, factor: FactorFacts) -> list[Block]:
    points = [c for c in view.result.crossovers if c.factor == factor.name]
    if not points:
        return []
    return [
        table_of(
            f"Where the best variant changes: {count_words(len(points), 'crossover')}",
            points,
            header("where", lambda point: view.place((point.fixed, point.workload))),
            column("best below → above", lambda point: f"{point.below} → {point.above}"),
            number(
                f"{factor.name} at crossover", lambda point: f"about {format_count(_rounded(point.estimate))}"
            ),
            number("between", lambda point: f"{format_count(point.low)} to {format_count(point.high)}"),
            column("evidence", _support),
        )
    ]


def _support(point: CrossoverPoint) -> Value:
    if point.supported:
        return Value("clear on both sides")
    return Value("? not clear on both sides", tone="unsure")


def _rounded(number: float) -> float:
    """Round to two significant digits, the best precision of a crossover."""
    if number == 0:
        return 0.0
    return round(number, 1 - math.floor(math.log10(abs(number))))
