"""Reports that compare runs with one of them: tables, the document, and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from rich.console import Console

from uncork.model.results.run_comparison import (
    FigureComparison,
    RunComparison,
    RunPair,
    RunSeries,
    RunSide,
    RunVerdict,
    SeriesPoint,
)
from uncork.model.units import count_words, format_count, format_duration
from uncork.model.verdict import Verdict
from uncork.report.blocks import (
    Block,
    Bullets,
    Code,
    Document,
    DotChart,
    DotMark,
    Flame,
    Fold,
    ForestChart,
    ForestMark,
    Gallery,
    Legend,
    Line,
    LineChart,
    Section,
    Step,
    Table,
    Tone,
    Value,
    filled_section,
)
from uncork.report.cells import column, header, number, table_if_any, table_of
from uncork.report.load.charts import status_groups
from uncork.report.runs.comparison_answer import (
    SIGNS,
    TONES,
    after_text,
    before_text,
    figure_order,
    side_name,
    statements_table,
    write_changed,
)
from uncork.report.words import effect_text, exact_share_text, interval_text, is_useless
from uncork.report.write.terminal_text import TerminalPart, write_report

_VERDICTS: Final = {RunVerdict.FASTER: Verdict.FASTER, RunVerdict.SLOWER: Verdict.SLOWER}
_MOST_ROWS: Final = 40
"""Metrics of a pair that the terminal lists at most, if all of them differ."""
_MOST_SHORT: Final = 12
"""Metrics of a pair that are listed even if none of them differs."""
_MOST_MARKS: Final = 24
_MOST_GLANCED: Final = 30


def render_runs_terminal(result: RunComparison, console: Console) -> None:
    """Print the comparison: the answer, the caveats, the metrics, and how to compare the runs properly."""
    parts: Iterator[TerminalPart] = (
        partial(write_changed, pair) if pair.changed else _figures_table(result.before, pair)
        for pair in result.pairs
    )
    write_report(console, build_runs_document(result), parts)


def build_runs_document(result: RunComparison, flames: Sequence[Flame] = ()) -> Document:
    """Return the report that compares runs with one of them, with the drawn `flames`."""
    runs = tuple(pair.after.id for pair in result.pairs)
    return Document(
        title=f"{', '.join(runs)} compared with {result.before.id}",
        question="",
        answer=result.answer,
        reasons=result.reasons,
        steps=tuple(Step(step.text, step.command) for step in result.steps),
        facts=tuple(_facts(result)),
        variants=(result.before.id, *runs),
        baseline=result.before.id,
        sections=tuple(_sections(result, flames)),
        version=result.uncork_version,
    )


def _facts(result: RunComparison) -> Iterator[tuple[str, str]]:
    for title, side in (("before", result.before), *(("after", pair.after) for pair in result.pairs)):
        yield title, f"{side_name(side)}, {side.started_at[:16].replace('T', ' ')}"
    yield "confidence", f"{result.confidence * 100:g} %"
    yield "practical", f"{result.practical * 100:g} %"


def _sections(result: RunComparison, flames: Sequence[Flame]) -> Iterator[Section]:
    many = len(result.pairs) > 1
    if many:
        yield Section("glance", "At a glance", (_glance(result),))
    for place, pair in enumerate(result.pairs, start=1):
        statements = statements_table(result.before, pair)
        blocks: list[Block] = [
            *([] if statements is None else [statements]),
            *_figures_blocks(result.before, pair),
        ]
        chart = _chart(result, pair)
        if chart is not None:
            blocks = [Legend((pair.after.id,)), chart, *blocks]
        title = side_name(pair.after) if many else "Metrics"
        yield Section(f"figures-{place}" if many else "figures", title, tuple(blocks))
    drawn = tuple(_over_time(result))
    if drawn:
        timed = result.series[0].axis == "time"
        yield Section("over-time", "Over time" if timed else "By level", (_legend(result), *drawn))
    costs = tuple(_costs(result))
    if costs:
        yield Section("costs", "Costs per operation", (_legend(result), Gallery(costs)))
    yield from filled_section("stacks", "Where processor time goes", *flames)
    for place, pair in enumerate(result.pairs, start=1):
        of = f": {side_name(pair.after)}" if many else ""
        if pair.plans:
            folds = tuple(
                Fold(f"{plan.statement} of {plan.subject}", (Code(plan.difference, "diff"),))
                for plan in pair.plans
            )
            yield Section(f"plans-{place}", f"Plans that differ{of}", folds)
        yield Section(f"surroundings-{place}", f"Other differences{of}", tuple(_surroundings(pair)))
    yield Section("runs", "The runs", (_runs_table(result),))


def _surroundings(pair: RunPair) -> Iterator[Block]:
    yield table_if_any(
        "Known differences",
        pair.differences,
        header("of", lambda difference: difference.section),
        header("what", lambda difference: difference.name),
        column("before", lambda difference: difference.before or "–"),
        column("after", lambda difference: difference.after or "–"),
    ) or Bullets(("No known difference in machine, server, settings or options.",))
    alone = [
        f"Only in the run {when}: {', '.join(names)}."
        for when, names in (("before", pair.only_before), ("after", pair.only_after))
        if names
    ]
    if alone:
        yield Bullets(tuple(alone))


def _runs_table(result: RunComparison) -> Table:
    return table_of(
        "The runs",
        (result.before, *(pair.after for pair in result.pairs)),
        header("run", side_name),
        column("started", lambda side: side.started_at[:19].replace("T", " ")),
        column("status", lambda side: side.status),
        column("server", lambda side: side.server),
        column("commit", lambda side: Value((side.commit or "")[:12], code=True)),
        column("command", lambda side: Value(side.command, code=True)),
    )


def _glance(result: RunComparison) -> Table:
    found = [{(figure.subject, figure.name): figure for figure in pair.figures} for pair in result.pairs]
    first = {key: figure for figures in reversed(found) for key, figure in figures.items()}
    ordered = sorted(first.values(), key=figure_order)
    shown = [
        comparison
        for comparison in ordered
        if not comparison.name.endswith(" each") and comparison.scale != "exact"
    ][:_MOST_GLANCED]
    return table_of(
        "Each run compared with the first",
        shown,
        header("metric", lambda comparison: Value(comparison.name, note=comparison.subject)),
        number(side_name(result.before), before_text),
        *(
            number(
                side_name(pair.after),
                [_glanced(figures.get((comparison.subject, comparison.name))) for comparison in shown],
            )
            for pair, figures in zip(result.pairs, found, strict=True)
        ),
    )


def _glanced(comparison: FigureComparison | None) -> Value:
    if comparison is None:
        return Value("–", tone="muted")
    change = " ".join(filter(None, (_change(comparison), _interval(comparison))))
    return Value(after_text(comparison), note=change, more=_verdict(comparison), tone=_tone(comparison))


def _tone(comparison: FigureComparison) -> Tone:
    return TONES.get(comparison.verdict, "plain")


def _verdict(comparison: FigureComparison) -> str:
    return f"{SIGNS[comparison.verdict]} {comparison.verdict.value}"


def _figures_blocks(before: RunSide, pair: RunPair) -> Iterator[Block]:
    """Yield the metrics that differ, and the others in a fold; all in one table if there are few."""
    ordered = _ordered(pair)
    decided = sum(_rank(comparison) == 0 for comparison in ordered)
    if decided and len(ordered) > _MOST_SHORT:
        yield _table(before, pair, ordered[:decided])
        rest = count_words(len(ordered) - decided, "metric")
        yield Fold(f"{rest} without a clear difference", (_table(before, pair, ordered[decided:]),))
    else:
        yield _table(before, pair, ordered)


def _ordered(pair: RunPair) -> list[FigureComparison]:
    return sorted(sorted(pair.figures, key=figure_order), key=_rank)


def _figures_table(before: RunSide, pair: RunPair) -> Table:
    ordered = _ordered(pair)
    decided = sum(_rank(comparison) == 0 for comparison in ordered)
    return _table(before, pair, ordered[: max(_MOST_SHORT, min(decided, _MOST_ROWS))], len(ordered))


def _table(before: RunSide, pair: RunPair, shown: Sequence[FigureComparison], of: int = 0) -> Table:
    left = of - len(shown)
    more = f"; {count_words(left, 'more metric')} in the HTML report" if left > 0 else ""
    return table_of(
        f"{side_name(pair.after)} compared with {side_name(before)}{more}",
        shown,
        header("of", lambda comparison: comparison.subject, when=any(figure.subject for figure in shown)),
        header("metric", lambda comparison: comparison.name),
        number("before", before_text),
        number("after", after_text),
        number("change", lambda comparison: Value(_change(comparison), tone=_tone(comparison))),
        column("interval", _interval, when=any(map(_interval, shown))),
        column("verdict", lambda comparison: Value(_verdict(comparison), tone=_tone(comparison))),
    )


def _rank(comparison: FigureComparison) -> int:
    return 0 if comparison.verdict not in (RunVerdict.NOT_ENOUGH_EVIDENCE, RunVerdict.SAME) else 1


def _change(comparison: FigureComparison) -> str:
    if comparison.ratio is None:
        return "" if comparison.before != comparison.after else "±0 %"
    if comparison.scale == "share":
        return f"odds {effect_text(comparison.ratio)}" if _partial(comparison) else ""
    return effect_text(comparison.ratio)


def _interval(comparison: FigureComparison) -> str:
    if (
        comparison.low is None
        or comparison.high is None
        or (comparison.scale == "share" and not _partial(comparison))
    ):
        return ""
    text = interval_text(comparison.low, comparison.high)
    known = comparison.std_dev is not None or comparison.scale == "effect" or comparison.assumed
    return text if known or is_useless(comparison.low, comparison.high) else f"at least {text}"


def _partial(comparison: FigureComparison) -> bool:
    """Return whether a share is neither 0 nor 1 in both runs; otherwise its odds mean little."""
    return (
        0 < comparison.before_count < comparison.before_of
        and 0 < comparison.after_count < comparison.after_of
    )


def _chart(result: RunComparison, pair: RunPair) -> ForestChart | None:
    timed = [figure for figure in sorted(pair.figures, key=figure_order) if _timed(figure)][:_MOST_MARKS]
    if len(timed) < 2:
        return None
    marks = tuple(
        ForestMark(
            label=f"{comparison.name} · {comparison.subject}" if comparison.subject else comparison.name,
            variant=pair.after.id,
            verdict=_VERDICTS.get(comparison.verdict, Verdict.NOT_ENOUGH_EVIDENCE),
            ratio=comparison.ratio or 1.0,
            low=comparison.low,
            high=comparison.high,
            published=None,
        )
        for comparison in timed
    )
    return ForestChart(
        title=f"Times of {side_name(pair.after)} compared with before",
        description="Ratio of each time to that of the run before, with its interval.",
        marks=marks,
        variants=(pair.after.id,),
        practical=result.practical,
        floor=None,
        better="lower",
    )


def _timed(comparison: FigureComparison) -> bool:
    return (
        comparison.unit == "ns"
        and comparison.ratio is not None
        and comparison.low is not None
        and not is_useless(comparison.low, comparison.high)
    )


# ---- charts that compare runs: over time, by level, by status, and by cost ----

_AXES: Final = {
    "time": "seconds since the start of each run",
    "clients": "clients",
    "rate": "arrivals a second",
    "streams": "streams",
}
_COSTS: Final = (
    ("ns", "Processor time per operation", "ns"),
    ("B", "Bytes per operation", "number"),
    ("", "Blocks, queries and round trips per operation", "number"),
)
_P50: Final = "half of the operations ending then took longer"
_P99: Final = "one in a hundred operations ending then took longer"
_MOST_DOTS: Final = 24
_LONGEST: Final = 34


def _legend(result: RunComparison) -> Legend:
    return Legend((result.before.id, *(pair.after.id for pair in result.pairs)))


def _over_time(result: RunComparison) -> Iterator[Block]:
    axes = {series.axis for series in result.series}
    if len(axes) != 1 or len(result.series) < 2:
        return
    charts: list[tuple[str, str, Callable[[SeriesPoint], float | None], bool]] = [
        ("Throughput", "successful operations a second", lambda point: point.throughput, False),
        ("Median latency", _P50, lambda point: point.p50_ns, True),
        ("99th percentile", _P99, lambda point: point.p99_ns, True),
    ]
    if any(point.failed for series in result.series for point in series.points):
        charts.append(("Failures", "failed operations a second", lambda point: point.failed, False))
    for title, y_title, read, ns in charts:
        chart = _chart_over_time(result, title, y_title, read, ns=ns)
        if chart is not None:
            yield chart
    over_time = _statuses_over_time(result.series)
    if len(over_time) == 1:
        yield replace(over_time[0], wide=True)
    elif over_time:
        yield Gallery(over_time)
    statuses = _statuses(result)
    if statuses is not None:
        yield statuses


def _chart_over_time(
    result: RunComparison,
    title: str,
    y_title: str,
    read: Callable[[SeriesPoint], float | None],
    *,
    ns: bool,
) -> LineChart | None:
    lines = tuple(
        Line(series.run, found) for series in result.series if len(found := _points(series, read)) > 1
    )
    if len(lines) < 2:
        return None
    timed = result.series[0].axis == "time"
    return LineChart(
        title=f"{title} over time" if timed else f"{title} by level",
        description=" ".join(_range_words(line, ns=ns) for line in lines),
        axis="time" if timed else "factor",
        x_title=_AXES[result.series[0].axis],
        y_title=y_title,
        unit="ns" if ns else "number",
        lines=lines,
        variants=tuple(line.variant for line in lines),
        wide=True,
        from_zero=not ns,
    )


def _points(
    series: RunSeries, read: Callable[[SeriesPoint], float | None]
) -> tuple[tuple[float, float], ...]:
    found = ((point.at, read(point)) for point in series.points)
    return tuple((at, value) for at, value in found if value is not None)


def _range_words(line: Line, *, ns: bool) -> str:
    values = [y for _, y in line.points]
    low, high = (format_duration(y) if ns else format_count(round(y)) for y in (min(values), max(values)))
    return f"{line.variant}: from {low} to {high}."


def _statuses_over_time(series: Sequence[RunSeries]) -> tuple[LineChart, ...]:
    """Return each status's share of the answers: a rate would show the speed of a run, not who failed."""
    known = [run for run in series if any(point.statuses for point in run.points)]
    groups = status_groups(
        status
        for run in known
        for point in run.points
        for status in point.statuses
        if not status.startswith("2")
    )
    drawn = {name: _shares(known, members) for name, members in groups.items()}
    most = max((y for lines in drawn.values() for line in lines for _, y in line.points), default=0.0)
    return tuple(
        LineChart(
            title=f"Status {name} over time",
            description=" ".join(map(_share_words, lines)),
            axis="time",
            x_title=_AXES["time"],
            y_title="share of each second's answers",
            unit="share",
            lines=lines,
            variants=tuple(line.variant for line in lines),
            from_zero=True,
            most=most,
        )
        for name, lines in drawn.items()
        if len(lines) > 1
    )


def _shares(series: Sequence[RunSeries], statuses: frozenset[str]) -> tuple[Line, ...]:
    lines = (
        Line(
            run.run,
            tuple(
                (point.at, sum(point.statuses.get(status, 0.0) for status in statuses) / answers)
                for point in run.points
                if (answers := sum(point.statuses.values()))
            ),
        )
        for run in series
    )
    return tuple(line for line in lines if len(line.points) > 1)


def _share_words(line: Line) -> str:
    came = [x for x, y in line.points if y]
    if not came:
        return f"{line.variant}: none."
    values = [y for _, y in line.points]
    least, most = exact_share_text(min(values)), exact_share_text(max(values))
    return f"{line.variant}: from {least} to {most}, first at {came[0]:g} s."


def _statuses(result: RunComparison) -> DotChart | None:
    found = sorted({status for series in result.series for status in series.statuses})
    if not found:
        return None
    marks = [
        DotMark(status, series.run, series.statuses.get(status, 0) / total)
        for status in found
        for series in result.series
        if (total := sum(series.statuses.values()))
    ]
    names = tuple(series.run for series in result.series if series.statuses)
    return DotChart(
        title="Status codes of the whole load",
        description="Share of each run's answers that had each status.",
        unit="share",
        marks=tuple(marks),
        variants=names,
    )


def _costs(result: RunComparison) -> Iterator[DotChart]:
    for unit, title, shown in _COSTS:
        marks = list(_cost_marks(result, unit))
        if not marks:
            continue
        labels = {mark.label for mark in marks}
        names = tuple(
            name for name in _legend(result).variants if any(mark.variant == name for mark in marks)
        )
        yield DotChart(
            title=title,
            description=f"{', '.join(sorted(labels))} of each run.",
            unit="ns" if shown == "ns" else "number",
            marks=tuple(marks),
            variants=names,
        )


def _cost_marks(result: RunComparison, unit: str) -> Iterator[DotMark]:
    named = [[figure for figure in pair.figures if _is_cost(figure, unit)] for pair in result.pairs]
    labels = list(dict.fromkeys(_label(comparison) for found in named for comparison in found))
    for label in labels[:_MOST_DOTS]:
        first = next(comparison for found in named for comparison in found if _label(comparison) == label)
        yield DotMark(label, result.before.id, first.before)
        for pair, found in zip(result.pairs, named, strict=True):
            for comparison in found:
                if _label(comparison) == label:
                    yield DotMark(label, pair.after.id, comparison.after)


def _is_cost(comparison: FigureComparison, unit: str) -> bool:
    return comparison.name.endswith(" each") and comparison.unit == unit and comparison.scale != "effect"


def _label(comparison: FigureComparison) -> str:
    name = comparison.name.removesuffix(" each").replace("processor time", "CPU")
    label = f"{name}, {comparison.subject}" if comparison.subject else name
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
