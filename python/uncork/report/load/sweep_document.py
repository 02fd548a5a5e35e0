"""From a sweep's result to a neutral document: what the report says, in which order, before any writer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.sweep import LawFacts, LevelFacts, SweepResult
from uncork.model.units import format_duration
from uncork.report.blocks import (
    Block,
    Bullets,
    Column,
    Document,
    Legend,
    Line,
    LineChart,
    Paragraph,
    Section,
    Step,
    Table,
    Value,
)
from uncork.report.load.bottlenecks import bottleneck_lines
from uncork.report.load.sweep_answer import AXIS_WORDS, is_undecided, level_words
from uncork.report.load.words import rate_text, share_text
from uncork.stats.load.knee import FLAT
from uncork.stats.load.scalability import scalable_throughput

__all__ = ["build_sweep_document", "levels_table"]

SUCCEEDED, LAW, HALF, MOST = "measured", "Universal Scalability Law", "p50", "p99"
_CURVE_POINTS: Final = 60
_STEADY: Final = 0.7
"""The part of the bend's throughput at which a server is to be used, by custom."""


def build_sweep_document(result: SweepResult) -> Document:
    """Return the report on a sweep, the answer first."""
    return Document(
        title=f"Sweep: {', '.join(result.scripts)}",
        question=f"How much load does the server bear, and where does it bend? ({result.run.server})",
        answer=result.answer,
        reasons=result.warnings,
        steps=tuple(_steps(result)),
        tally=(),
        facts=tuple(_facts(result)),
        variants=(SUCCEEDED, LAW, HALF, MOST),
        baseline="",
        sections=tuple(_sections(result)),
        version=result.run.uncork_version,
        heading="What to keep in mind",
    )


def levels_table(result: SweepResult, *, brief: bool = False) -> Table:
    """Return what each level bears; in brief for a narrow place."""
    rate = "tps" if result.operation == "transaction" else "req/s"
    columns = [Column(result.axis, header=True, number=True), Column(rate, number=True)]
    quantiles = ("p50", "p99") if brief else ("p50", "p90", "p99", "longest")
    columns += [Column(name, number=True) for name in (*quantiles, "wrong")]
    visible = any(level.server_cpus is not None for level in result.levels)
    if visible:
        whose = "server's" if result.operation == "transaction" else "service's"
        columns.append(Column("cpus" if brief else f"{whose} processors", number=True))
    if not brief:
        columns += [Column("generator's processors", number=True), Column("visits", number=True)]
    columns.append(Column(""))
    caption = f"Levels: {result.operation}s a second ({rate}), latency, what went wrong"
    if visible:
        who = "the server" if result.operation == "transaction" else "the service and its database"
        caption += f", processors that {who} used"
    return Table(caption, tuple(columns), tuple(_row(result, one, visible, brief) for one in result.levels))


def _row(result: SweepResult, level: LevelFacts, visible: bool, brief: bool) -> tuple[Value, ...]:
    times = (
        (level.p50_ns, level.p99_ns) if brief else (level.p50_ns, level.p90_ns, level.p99_ns, level.max_ns)
    )
    interval = ""
    if level.low is not None and level.high is not None and not brief:
        interval = f"{rate_text(level.low)} to {rate_text(level.high)}"
    server = "" if level.server_cpus is None else f"{level.server_cpus:.2f}"
    wrong = share_text(level.wrong, 1) if level.wrong else "0"
    return (
        Value(rate_text(level.level), sort=level.level),
        Value(rate_text(level.throughput), note=interval, sort=level.throughput),
        *(Value("" if value is None else format_duration(value), sort=value) for value in times),
        Value(wrong, tone="plain" if level.works else "refused"),
        *([Value(server)] if visible else []),
        *([] if brief else [Value(f"{level.client_cpus:.2f}"), Value(str(level.visits))]),
        Value("; ".join(_marks(result, level))),
    )


def _marks(result: SweepResult, level: LevelFacts) -> Iterator[str]:
    """Yield what is said of a level."""
    if result.knee is not None and result.knee.level == level.level:
        yield "the bend" if result.knee.high is not None else "best so far"
    if result.saturation is not None and result.saturation.level == level.level:
        yield "saturated from here on"
    if result.most == level.level:
        yield "most"
    if not level.works:
        yield "broken"
    for one in result.objectives:
        if one.holds == level.level:
            yield f"{one.text} holds"
        if one.fails == level.level:
            yield f"{one.text} fails"


def _sections(result: SweepResult) -> Iterator[Section]:
    charts = [chart for chart in (_throughput(result), _latency(result)) if chart is not None]
    if charts:
        drawn = tuple(dict.fromkeys(name for chart in charts for name in chart.variants))
        yield Section("load", "Throughput and latency against load", (Legend(drawn), *charts))
    yield Section("levels", "What each level bears", (levels_table(result),))
    if result.bottlenecks:
        yield Section("bottlenecks", "What gives out", (_bottlenecks(result),))
    if result.law is not None:
        yield Section("law", "How it scales", _law(result, result.law))
    yield Section("method", "How this was found", _method(result))


def _throughput(result: SweepResult) -> LineChart | None:
    works = [level for level in result.levels if level.works]
    if len(works) < 2:
        return None
    lines = [Line(SUCCEEDED, tuple((level.level, level.throughput) for level in works))]
    law = result.law
    if law is not None and law.describes:
        first, last = works[0].level, works[-1].level
        points = [first * (last / first) ** (at / (_CURVE_POINTS - 1)) for at in range(_CURVE_POINTS)]
        lines.append(
            Line(
                LAW,
                tuple(
                    (at, scalable_throughput(at, law.alone, law.contention, law.coherency)) for at in points
                ),
                "published",
            )
        )
    best = max(works, key=lambda level: level.throughput)
    return LineChart(
        title=f"Throughput against {_axis(result)}",
        description=f"Most is {rate_text(best.throughput)} a second at {level_words(result, best.level)}.",
        axis="factor",
        x_title=_axis(result),
        y_title=f"{result.operation}s a second",
        unit="number",
        lines=tuple(lines),
        variants=tuple(line.variant for line in lines),
        wide=True,
        from_zero=True,
    )


def _latency(result: SweepResult) -> LineChart | None:
    works = [level for level in result.levels if level.works and level.p50_ns and level.p99_ns]
    if len(works) < 2:
        return None
    return LineChart(
        title=f"Latency against {_axis(result)}",
        description=f"The 0.99 quantile goes from {format_duration(works[0].p99_ns or 0)} to "
        f"{format_duration(works[-1].p99_ns or 0)}.",
        axis="factor",
        x_title=_axis(result),
        y_title=f"latency of the {result.operation}s that succeeded",
        unit="ns",
        lines=(
            Line(HALF, tuple((level.level, level.p50_ns or 0.0) for level in works)),
            Line(MOST, tuple((level.level, level.p99_ns or 0.0) for level in works)),
        ),
        variants=(HALF, MOST),
        wide=True,
    )


def _bottlenecks(result: SweepResult) -> Bullets:
    return bottleneck_lines(
        (one.resource, level_words(result, one.level), one.sentence, one.remedy) for one in result.bottlenecks
    )


def _axis(result: SweepResult) -> str:
    return AXIS_WORDS[result.axis]


def _law(result: SweepResult, law: LawFacts) -> tuple[Block, ...]:
    contention = (
        f"{law.contention * 100:.3g} % ({law.contention_low * 100:.3g} to {law.contention_high * 100:.3g} %)"
    )
    coherency = f"{law.coherency:.2g} ({law.coherency_low:.2g} to {law.coherency_high:.2g})"
    peak = (
        "throughput never falls" if law.peak is None else f"most at {law.peak:.0f} {AXIS_WORDS[result.axis]}"
    )
    if law.peak is not None and law.peak_low is not None:
        high = "any" if law.peak_high is None else f"{law.peak_high:.0f}"
        peak += f" ({law.peak_low:.0f} to {high})"
    items = (
        f"one {'client' if result.axis == 'clients' else 'stream'} alone: {rate_text(law.alone)} "
        f"{result.operation}s a second",
        f"contention (σ), the part of the work that only one can do at a time: {contention}",
        f"coherency (κ), the cost of agreeing with each other: {coherency}",
        peak,
    )
    believed = (
        "The Universal Scalability Law, fitted to all levels that work:"
        if law.describes
        else f"The Universal Scalability Law misses a level by {law.misfit * 100:.0f} %: not to be believed."
    )
    return (Paragraph(believed), Bullets(items))


def _method(result: SweepResult) -> tuple[Block, ...]:
    share = f"{result.confidence * 100:g} %"
    rounds = 0 if result.knee is None else result.knee.rounds
    visits = sum(level.visits for level in result.levels)
    text = (
        f"{visits} visits of {format_duration(result.visit_ns)}: levels were explored first, each twice "
        f"the one before, then those around the bend and at edges were visited in {rounds} rounds, in random "
        f"order within each (seed {result.seed}). The bend is where throughput over mean latency, the power, "
        "is greatest: from there on latency grows faster than throughput (Kleinrock, 1979). Levels whose "
        f"power another level is proven to exceed are out, at {share} over all of them, whenever one looks; "
        "the bend lies between the neighbours of the remaining levels. A level is saturated when throughput "
        f"at every higher level is proven to be less than {FLAT * 100:.0f} % above its own."
    )
    return (Paragraph(text),)


def _facts(result: SweepResult) -> Iterator[tuple[str, str]]:
    run = result.run
    yield "run", run.id
    yield "server", run.server
    yield "took", format_duration(run.elapsed_ns)
    yield "begun", run.started_at


def _steps(result: SweepResult) -> Iterator[Step]:
    run, knee = result.run, result.knee
    if not any(level.works for level in result.levels):
        yield Step(
            "Mend what breaks it at the lowest level already, or begin lower. Sweep again:", run.reproduce
        )
        return
    if run.status != "complete":
        yield Step(f"The sweep is {run.status}. Sweep again:", run.reproduce)
        return
    if knee is None:
        visit = "-T" if result.operation == "transaction" else "-D"
        yield Step(f"Give it more time (--budget), or shorter visits ({visit}). Sweep again:", run.reproduce)
        return
    at = next(level for level in result.levels if level.level == knee.level)
    if is_undecided(result):
        yield Step(
            "Give it more time (--budget), so that it finishes five rounds. Sweep again:", run.reproduce
        )
        return
    if knee.high is None:
        yield Step(f"Raise the end of the sweep (--to) above {level_words(result, result.end)}.")
    for one in result.bottlenecks[:1]:
        yield Step(f"{one.resource[:1].upper()}{one.resource[1:]}: {one.remedy}.")
    if result.operation == "transaction":
        yield Step(
            "See what the server does at the bend: load it there, and meanwhile watch it:",
            "uncork profile db",
        )
    steady = _STEADY * at.throughput
    minute = "-T 60" if result.operation == "transaction" else "-D 60"
    yield Step(
        f"Run it below the bend: {_STEADY * 100:.0f} % of what it bears there is {rate_text(steady)} "
        f"{result.operation}s a second. Whether that holds for a minute, with arrivals that do not wait, "
        f"a load with -R {steady:.0f} {minute} shows."
    )
