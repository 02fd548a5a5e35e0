"""The report on a sweep: its answer and warnings, the document, and the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from rich.console import Console

from uncork.model.results.sweep import (
    FEWEST_ROUNDS,
    LawFacts,
    LevelFacts,
    ObjectiveFacts,
    SweepResult,
    VerifiedFacts,
)
from uncork.model.sweep import STEADY, parse_objectives
from uncork.model.units import count_words, format_duration, format_percent, series_words
from uncork.report.blocks import (
    Block,
    Bullets,
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
from uncork.report.cells import column, header, number, table_of
from uncork.report.findings import careful_last, finding_sections, finding_sentence, finding_steps
from uncork.report.headline import capital, fitting, join_sentences
from uncork.report.load.words import bottleneck_lines, limit_words, resource_title
from uncork.report.words import capitalised, duration_text, part_text, rate_text
from uncork.report.write.terminal_text import write_report
from uncork.stats.load.knee import FLAT
from uncork.stats.load.scalability import scalable_throughput

SUCCEEDED, LAW, HALF, MOST = "measured", "Universal Scalability Law", "p50", "p99"
_CURVE_POINTS: Final = 60


def build_sweep_document(result: SweepResult) -> Document:
    """Return the report on a sweep, the answer first."""
    return Document(
        title=f"Sweep: {', '.join(result.scripts)}",
        question=f"How much load does the server handle, and where is its knee? ({result.run.server})",
        answer=result.answer,
        reasons=(*(finding_sentence(finding) for finding in result.findings), *result.warnings),
        steps=careful_last(_steps(result)),
        facts=tuple(_facts(result)),
        variants=(SUCCEEDED, LAW, HALF, MOST),
        sections=tuple(_sections(result)),
        version=result.run.uncork_version,
    )


def levels_table(result: SweepResult, *, brief: bool = False) -> Table:
    """Return the results of each level; `brief` leaves columns out for a narrow place."""
    rate = "tps" if result.operation == "transaction" else "req/s"
    visible = any(level.server_cpus is not None for level in result.levels)
    whose, who = (
        ("server's", "the server")
        if result.operation == "transaction"
        else ("service's", "the service and its database")
    )
    processors = "cpus" if brief else f"{whose} processors"
    caption = f"Levels: {result.operation}s a second ({rate}), latency, share failed or never sent"
    return table_of(
        f"{caption}, processors used by {who}" if visible else caption,
        result.levels,
        header(result.axis, lambda level: Value(rate_text(level.level), sort=level.level), number=True),
        number(rate, lambda level: _throughput_cell(level, brief)),
        number("p50", lambda level: _time(level.p50_ns)),
        number("p90", lambda level: _time(level.p90_ns), when=not brief),
        number("p99", lambda level: _time(level.p99_ns)),
        number("longest", lambda level: _time(level.max_ns), when=not brief),
        number("failed", lambda level: _wrong(level.wrong, level.works)),
        number(processors, lambda level: _cpus(level.server_cpus), when=visible),
        number("generator's processors", lambda level: _cpus(level.client_cpus), when=not brief),
        number("load steps", lambda level: str(level.steps), when=not brief),
        *(
            column(objective.text, [_held(objective, level.level) for level in result.levels])
            for objective in (() if brief else result.objectives)
        ),
        column("", lambda level: "; ".join(_marks(result, level, brief))),
    )


def _throughput_cell(level: LevelFacts, brief: bool) -> Value:
    interval = ""
    if level.low is not None and level.high is not None and not brief:
        interval = f"{rate_text(level.low)} to {rate_text(level.high)}"
    return Value(rate_text(level.throughput), note=interval, sort=level.throughput)


_HOLDS: Final = Value("holds", tone="faster")
_FAILS: Final = Value("fails", tone="slower")


def _held(objective: ObjectiveFacts, level: float) -> Value:
    if objective.fails is not None and level >= objective.fails:
        return _FAILS
    if objective.holds is not None and level <= objective.holds:
        return _HOLDS
    return Value("not known", tone="unsure")


def _limits(result: SweepResult) -> tuple[tuple[float, str], ...]:
    wanted = (parse_objectives(objective.text)[0] for objective in result.objectives)
    return tuple((objective.limit, objective.text) for objective in wanted if objective.quantity != "errors")


def _shaded(result: SweepResult) -> tuple[float, float] | None:
    held = [objective.holds for objective in result.objectives if objective.holds is not None]
    if not held or len(held) < len(result.objectives):
        return None
    return result.levels[0].level, min(held)


def _shade_note(result: SweepResult) -> str:
    shaded = _shaded(result)
    if shaded is None:
        return ""
    holds = "holds" if len(result.objectives) == 1 else "hold"
    what = series_words(objective.text for objective in result.objectives)
    return f"shaded: {what} {holds}, up to {_level_words(result, shaded[1])}"


def _marks(result: SweepResult, level: LevelFacts, brief: bool) -> Iterator[str]:
    """Yield the remarks on a level; in a `brief` table also those on objectives, which have no columns."""
    if result.knee is not None and result.knee.level == level.level:
        yield "knee" if result.knee.high is not None else "best so far"
    if result.saturation is not None and result.saturation.level == level.level:
        yield "saturated from here on"
    if result.most == level.level:
        yield "peak"
    if not level.works:
        yield "broken"
    for objective in result.objectives if brief else ():
        if objective.holds == level.level:
            yield f"{objective.text} holds"
        if objective.fails == level.level:
            yield f"{objective.text} fails"


def _sections(result: SweepResult) -> Iterator[Section]:
    charts = [chart for chart in (_throughput(result), _latency(result)) if chart is not None]
    if charts:
        drawn = tuple(dict.fromkeys(name for chart in charts for name in chart.variants))
        yield Section("load", "Throughput and latency against load", (Legend(drawn), *charts))
    yield Section("levels", "Results by level", (levels_table(result),))
    if result.verified is not None:
        yield Section("verified", "Below the knee", _verified(result, result.verified))
    if result.bottlenecks:
        yield Section("bottlenecks", "Bottlenecks", (_bottlenecks(result),))
    yield from finding_sections(result.findings)
    if result.law is not None:
        yield Section("law", "How it scales", _law(result, result.law))
    yield Section("method", "How this was found", _method(result))


def _verified(result: SweepResult, found: VerifiedFacts) -> tuple[Block, ...]:
    words = (
        f"One load of {format_duration(found.elapsed_ns)} with arrivals that do not wait for the server; "
        "latency counts from when each was due. One load has no interval: a checkpoint or a vacuum may be "
        "missing from it, or be in it."
    )
    if found.refused:
        words += f" The server refused {count_words(found.refused, 'additional connection')}."
    table = table_of(
        f"{found.share * 100:.0f} % of the throughput at {_level_words(result, found.knee)}",
        [found],
        number("arrivals a second", lambda load: rate_text(load.rate)),
        number("succeeded a second", lambda load: rate_text(load.throughput)),
        number("p50", lambda load: duration_text(load.p50_ns)),
        number("p99", lambda load: duration_text(load.p99_ns)),
        number("longest", lambda load: duration_text(load.max_ns)),
        number("failed", lambda load: _wrong(load.wrong, load.works)),
        *(
            column(
                objective.text,
                [_HOLDS if objective.holds else _FAILS],
            )
            for objective in found.objectives
        ),
    )
    return table, Paragraph(words)


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
        description=f"Most: {rate_text(best.throughput)} a second at {_level_words(result, best.level)}.",
        axis="factor",
        x_title=_axis(result),
        y_title=f"{result.operation}s a second",
        unit="number",
        lines=tuple(lines),
        variants=tuple(line.variant for line in lines),
        note=_shade_note(result),
        wide=True,
        from_zero=True,
        shaded=_shaded(result),
    )


def _latency(result: SweepResult) -> LineChart | None:
    works = [level for level in result.levels if level.works and level.p50_ns and level.p99_ns]
    if len(works) < 2:
        return None
    return LineChart(
        title=f"Latency against {_axis(result)}",
        description=f"p99 goes from {format_duration(works[0].p99_ns or 0)} to "
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
        note=_shade_note(result),
        wide=True,
        limits=_limits(result),
        shaded=_shaded(result),
    )


def _cpus(cpus: float | None) -> str:
    return "" if cpus is None else f"{cpus:.2f}"


def _time(nanoseconds: float | None) -> Value:
    return Value(duration_text(nanoseconds), sort=nanoseconds)


def _wrong(share: float, works: bool) -> Value:
    return Value(part_text(share, 1) if share else "0", tone="plain" if works else "refused")


def _bottlenecks(result: SweepResult) -> Bullets:
    return bottleneck_lines(
        (bottleneck.resource, _level_words(result, bottleneck.level), bottleneck.sentence, bottleneck.remedy)
        for bottleneck in result.bottlenecks
    )


def _axis(result: SweepResult) -> str:
    return AXIS_WORDS[result.axis]


def _law(result: SweepResult, law: LawFacts) -> tuple[Block, ...]:
    contention = (
        f"{law.contention * 100:.3g} % ({law.contention_low * 100:.3g} to {law.contention_high * 100:.3g} %)"
    )
    coherency = f"{law.coherency:.2g} ({law.coherency_low:.2g} to {law.coherency_high:.2g})"
    peak = (
        "throughput never falls"
        if law.peak is None
        else f"highest throughput at {law.peak:.0f} {AXIS_WORDS[result.axis]}"
    )
    if law.peak is not None and law.peak_low is not None:
        high = "any" if law.peak_high is None else f"{law.peak_high:.0f}"
        peak += f" ({law.peak_low:.0f} to {high})"
    items = (
        f"one {'client' if result.axis == 'clients' else 'stream'} alone: {rate_text(law.alone)} "
        f"{result.operation}s a second",
        f"contention (σ), the part of the work that must be done one at a time: {contention}",
        f"coherency (κ), the cost of keeping each other up to date: {coherency}",
        peak,
    )
    believed = (
        "The Universal Scalability Law, fitted to all levels that work:"
        if law.describes
        else f"The Universal Scalability Law misses a level by {law.misfit * 100:.0f} %: ignore this fit."
    )
    return (Paragraph(believed), Bullets(items))


def _method(result: SweepResult) -> tuple[Block, ...]:
    share = f"{result.confidence * 100:g} %"
    rounds = 0 if result.knee is None else result.knee.rounds
    load_steps = sum(level.steps for level in result.levels)
    text = (
        f"{load_steps} load steps of {format_duration(result.step_ns)}. First the level was doubled step by "
        f"step. Then levels near the knee and the limits were measured in {rounds} rounds, in random order "
        f"within each round (seed {result.seed}). The knee is the level with the greatest power, which is "
        "throughput divided by mean latency: beyond it, latency grows faster than throughput (Kleinrock, "
        f"1979). A level is excluded once another is proven to have more power, with {share} confidence over "
        "all levels and at any time; the knee lies between the neighbours of the remaining levels. A level "
        f"is saturated when the throughput of every higher level is proven to be less than {FLAT * 100:.0f} "
        "% above its own."
    )
    return (Paragraph(text),)


def _facts(result: SweepResult) -> Iterator[tuple[str, str]]:
    run = result.run
    yield "run", run.id
    yield "server", run.server
    yield "took", format_duration(run.elapsed_ns)
    yield "started", run.started_at


def _steps(result: SweepResult) -> Iterator[Step]:
    run, knee = result.run, result.knee
    if not any(level.works for level in result.levels):
        yield Step(
            "Fix what already breaks it at the lowest level, or start lower. Sweep again:", run.reproduce
        )
        return
    if run.status != "complete":
        yield Step(f"The sweep is {run.status}. Sweep again:", run.reproduce)
        return
    if knee is None:
        load_step = "-T" if result.operation == "transaction" else "-D"
        yield Step(
            f"Give it more time (--budget), or shorter load steps ({load_step}). Sweep again:", run.reproduce
        )
        return
    at = next(level for level in result.levels if level.level == knee.level)
    if _is_undecided(result):
        yield Step(
            "Give it more time (--budget), so that it finishes five rounds. Sweep again:", run.reproduce
        )
        return
    if knee.high is None:
        yield Step(f"Raise the end of the sweep (--to) above {_level_words(result, result.end)}.")
    yield from finding_steps(result.findings)
    for bottleneck in () if result.findings else result.bottlenecks[:1]:
        yield Step(f"{resource_title(bottleneck.resource)}: {bottleneck.remedy}.")
    if result.verified is not None and not result.verified.sustained:
        yield Step(
            f"Plan for less than {rate_text(result.verified.rate)} {result.operation}s a second: raise the "
            "arrivals step by step (--sweep rate) to find what it sustains."
        )
        return
    steady = STEADY * at.throughput
    minute = "-T 60" if result.operation == "transaction" else "-D 60"
    check = (
        "that it sustains this for a minute with arrivals that do not wait, load it with "
        f"-R {steady:.0f} {minute}."
    )
    yield Step(
        f"Run it below its limit: {STEADY * 100:.0f} % of the throughput at "
        f"{_level_words(result, knee.level)} is {rate_text(steady)} {result.operation}s a second."
        + ("" if result.verified is not None else f" To check {check}")
    )


def render_sweep_terminal(result: SweepResult, console: Console) -> None:
    """Print the report on a sweep: the answer, its warnings, the levels, the next steps."""
    levels = replace(levels_table(result, brief=True), caption="")
    write_report(console, build_sweep_document(result), [levels], question=False)


_AXIS: Final = {
    "clients": ("clients", ""),
    "streams": ("streams", " per connection"),
    "rate": ("arrivals", " a second"),
}
AXIS_WORDS: Final = {axis: noun + of for axis, (noun, of) in _AXIS.items()}
"""The unit of levels, by axis."""
_BUSY: Final = 0.8
"""A thread of the generator busier than this may be the limit."""
_FULL: Final = 0.85
"""Fraction of the machine's processors, used by server and generator, from which on they are the limit."""


def _compose_sweep_answer(result: SweepResult) -> str:
    headlines = [capital(text) for text in _headlines(result)]
    knee = _top(result) if headlines and headlines[0].startswith("No knee") else _knee(result)
    parts = [knee, *_bottleneck(result), *_objectives(result), *_verified_words(result), *_break(result)]
    rest = join_sentences(capital(part) for part in parts)
    return fitting((text, rest) for text in headlines) if headlines else rest


def _level_words(result: SweepResult, level: float | None) -> str:
    """Return a level with its unit: ``12 clients``, ``3 400 arrivals a second``."""
    if level is None:
        return "none"
    one = level == 1 and result.axis != "rate"
    noun, of = _AXIS[result.axis]
    return f"{rate_text(level)} {noun.removesuffix('s') if one else noun}{of}"


def _headlines(result: SweepResult) -> Iterator[str]:
    """Yield headlines, the fullest first; none if the first sentence of the answer is short already."""
    knee, saturation = result.knee, result.saturation
    if knee is None or not any(level.works for level in result.levels):
        return
    who = _who(result)
    limit = f", limited by {limit_words(result.bottlenecks[0].resource)}" if result.bottlenecks else ""
    held = [objective for objective in result.objectives if objective.holds is not None]
    failed = next(
        (
            objective
            for objective in result.objectives
            if objective.holds is None and objective.fails is not None
        ),
        None,
    )
    if failed is not None:
        where = _level_words(result, failed.fails)
        if failed.fails == result.levels[0].level:
            yield f"{failed.text} already fails at {where}, the lowest level{limit}"
        yield f"{failed.text} fails at {where}{limit}"
        yield f"{failed.text} fails at {where}"
    elif held and len(held) == len(result.objectives):
        least = min(objective.holds for objective in held if objective.holds is not None)
        what = series_words(objective.text for objective in held)
        holds = f"{what} {'holds' if len(held) == 1 else 'hold'} up to {_level_words(result, least)}"
        rate = f", at {rate_text(_level_facts(result, least).throughput)} {result.operation}s a second"
        yield f"{holds}{rate}{limit}"
        yield f"{holds}{limit}"
        yield holds
    elif _is_undecided(result):
        yield f"the knee is not known yet after only {count_words(knee.rounds, 'round')}"
    elif saturation is not None:
        at = _level_words(result, saturation.level)
        yield f"{who} is saturated from {at} on, at {_rate(result, saturation.level)}{limit}"
    elif knee.high is None:
        top = result.levels[-1].level
        handles = f"{who} handles {_rate(result, top)}{limit}"
        yield f"no knee is proven up to {_level_words(result, top)}, where {handles}"
    else:
        at = _level_words(result, knee.level)
        yield f"{who} handles {_rate(result, knee.level)} at its knee of {at}{limit}"


def _who(result: SweepResult) -> str:
    return "the server" if result.operation == "transaction" else "the service"


def _rate(result: SweepResult, level: float) -> str:
    return f"{rate_text(_level_facts(result, level).throughput)} {result.operation}s a second"


def _top(result: SweepResult) -> str:
    """Return what follows a headline that no level is the knee: the latency at the highest level."""
    top = result.levels[-1]
    where = f"at {_level_words(result, top.level)}, the highest level"
    p99 = "" if top.p99_ns is None else f", 99 % took under {format_duration(top.p99_ns)}"
    return f"{where}{p99}{_most(result, top.level)}" if p99 else ""


def _knee(result: SweepResult) -> str:
    if not any(level.works for level in result.levels):
        return f"nothing worked, not even at {_level_words(result, result.levels[0].level)}"
    if result.knee is None:
        return f"{result.run.status} before the first round of all levels finished. The knee is not known"
    knee, top = result.knee, result.levels[-1].level
    who = _who(result)
    saturation = result.saturation
    if saturation is not None:
        only_wait = (
            f"more {_AXIS[result.axis][0]} only wait (at {_level_words(result, saturation.top)} it handles "
            f"{_performance(result, saturation.top)})"
        )
        if knee.low is None and saturation.level == result.levels[0].level:
            lowest = _level_words(result, saturation.level)
            return (
                f"{who} is saturated from the lowest level on: at {lowest} it handles "
                f"{_performance(result, saturation.level)}; {only_wait}"
            )
        beyond = f"; from {_level_words(result, saturation.level)} on it is saturated: {only_wait}"
    else:
        beyond = _most(result, knee.level if knee.high is not None else top)
    if _is_undecided(result):
        return (
            f"the knee is not known yet, because only {knee.rounds} of at least {FEWEST_ROUNDS} rounds "
            f"finished: at {_level_words(result, knee.level)} {who} handles "
            f"{_performance(result, knee.level)}, at {_level_words(result, top)}, the highest level, "
            f"{_performance(result, top)}"
        )
    if knee.high is None:
        return (
            f"no knee is proven up to {_level_words(result, top)}, the highest level: "
            f"there {who} handles {_performance(result, top)}{beyond}"
        )
    if knee.low is None:
        where = f"below {_level_words(result, knee.high)}"
    else:
        where = f"between {rate_text(knee.low)} and {_level_words(result, knee.high)}"
    at = _level_words(result, knee.level)
    return f"the knee is {where}: at {at} {who} handles {_performance(result, knee.level)}{beyond}"


def _is_undecided(result: SweepResult) -> bool:
    """Return whether a level below the highest is best so far, in too few rounds to exclude the others."""
    knee = result.knee
    return (
        knee is not None
        and knee.high is None
        and knee.rounds < FEWEST_ROUNDS
        and knee.level < result.levels[-1].level
    )


def _performance(result: SweepResult, level: float) -> str:
    at = _level_facts(result, level)
    rate = _rate(result, level)
    return rate if at.p99_ns is None else f"{rate}, 99 % under {format_duration(at.p99_ns)}"


def _most(result: SweepResult, reported: float) -> str:
    if result.most is None or result.most == reported:
        return ""
    top = rate_text(_level_facts(result, result.most).throughput)
    return f"; the most is {top} {result.operation}s a second, at {_level_words(result, result.most)}"


def _bottleneck(result: SweepResult) -> Iterator[str]:
    for bottleneck in result.bottlenecks[:1]:
        if result.cliff is None or bottleneck.level != result.cliff.breaks:
            yield f"bottleneck at {_level_words(result, bottleneck.level)}: {bottleneck.sentence}"


def _objectives(result: SweepResult) -> Iterator[str]:
    for objective in result.objectives:
        if objective.holds is None and objective.fails is None:
            yield f"it is not known whether {objective.text} holds"
        elif objective.holds is None and objective.fails == result.levels[0].level:
            yield (
                f"{objective.text} already fails at {_level_words(result, objective.fails)}, the lowest level"
            )
        elif objective.holds is None:
            yield (
                f"{objective.text} fails at {_level_words(result, objective.fails)}; no level is "
                "proven to hold "
                "it"
            )
        elif objective.fails is None:
            held = _level_words(result, objective.holds)
            yield f"{objective.text} holds up to {held}, and failed at no level"
        else:
            held = _level_words(result, objective.holds)
            yield f"{objective.text} holds up to {held} and fails at {rate_text(objective.fails)}"


def _verified_words(result: SweepResult) -> Iterator[str]:
    found = result.verified
    if found is None:
        return
    rate = f"{rate_text(found.rate)} arrivals a second for {format_duration(found.elapsed_ns)}"
    p99 = "" if found.p99_ns is None else f", 99 % under {format_duration(found.p99_ns)}"
    where = f"({found.share * 100:.0f} % of the knee{p99})"
    failed = [objective.text for objective in found.objectives if not objective.holds]
    if not found.works:
        wrong = part_text(found.wrong, 1)
        yield f"{_who(result)} does not sustain {rate} {where}: {wrong} failed or were never sent"
    elif failed:
        yield f"{series_words(failed)} failed at {rate} {where}"
    else:
        yield f"{_who(result)} sustains {rate} {where}"


def _break(result: SweepResult) -> Iterator[str]:
    cliff = result.cliff
    if cliff is None:
        return
    yield f"it breaks at {_level_words(result, cliff.breaks)}: {cliff.reason.rstrip('. ')}"


def _warnings(result: SweepResult) -> Iterator[str]:
    knee = result.knee
    if result.run.status != "complete" and any(level.works for level in result.levels):
        yield f"the sweep is {result.run.status}: this report covers what was measured until then"
    if knee is not None:
        at = _level_facts(result, knee.level)
        if at.busiest_thread > _BUSY:
            busy = f"{at.busiest_thread * 100:.0f} %"
            threads = "-j" if result.operation == "transaction" else "-t"
            yield (
                f"at the knee the generator's busiest thread works {busy} of the time: the generator may be "
                f"the limit; give it more threads ({threads}) or a machine of its own"
            )
        elif at.server_cpus is not None and at.server_cpus + at.client_cpus > _FULL * result.processors:
            share = at.client_cpus / (at.server_cpus + at.client_cpus)
            yield (
                f"at the knee all {result.processors} processors are busy, and the generator uses "
                f"{share * 100:.0f} % of that: with the generator on another machine, the knee would be "
                "higher"
            )
        if knee.rounds < FEWEST_ROUNDS:
            yield f"only {count_words(knee.rounds, 'round')} finished; excluding a level takes at least five"
    law = result.law
    if law is not None and not law.describes:
        yield (
            "the Universal Scalability Law does not describe this server: it misses a level by "
            f"{format_percent(1 + law.misfit).lstrip('+')}, so there is a hard limit (a pool, the number of "
            "processors), or conditions changed between levels"
        )
    yield from (text.rstrip(".") for text in result.missing)
    if result.axis != "rate" and any(level.works for level in result.levels):
        yield (
            "in a closed loop clients wait for answers, so latency beyond the knee depends on the number of "
            "clients; --sweep rate shows what users who do not wait would see"
        )


def _level_facts(result: SweepResult, load: float) -> LevelFacts:
    return next(level for level in result.levels if level.level == load)


def answer_sweep(result: SweepResult) -> SweepResult:
    """Return the result with its answer and warnings."""
    result = replace(result, warnings=tuple(f"{capitalised(text)}." for text in _warnings(result)))
    return replace(result, answer=_compose_sweep_answer(result))
