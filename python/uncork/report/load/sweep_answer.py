"""The answer of a sweep: the first sentence a reader sees, and the warnings about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.sweep import FEWEST_ROUNDS, LevelFacts, SweepResult
from uncork.model.units import count_words, format_duration, format_percent, series_words
from uncork.report.headline import capital, fitting, join_sentences
from uncork.report.load.bottlenecks import limit_words
from uncork.report.load.words import rate_text, share_text
from uncork.report.words import capitalised

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
    """Return the result of a sweep: what it handles, and then knee, bottleneck, objectives and cliff."""
    headlines = [capital(text) for text in _headlines(result)]
    knee = _top(result) if headlines and headlines[0].startswith("No knee") else _knee(result)
    parts = [knee, *_bottleneck(result), *_objectives(result), *_verified(result), *_break(result)]
    rest = join_sentences(capital(part) for part in parts)
    return fitting((text, rest) for text in headlines) if headlines else rest


def level_words(result: SweepResult, level: float | None) -> str:
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
        where = level_words(result, failed.fails)
        if failed.fails == result.levels[0].level:
            yield f"{failed.text} already fails at {where}, the lowest level{limit}"
        yield f"{failed.text} fails at {where}{limit}"
        yield f"{failed.text} fails at {where}"
    elif held and len(held) == len(result.objectives):
        least = min(objective.holds for objective in held if objective.holds is not None)
        what = series_words(objective.text for objective in held)
        holds = f"{what} {'holds' if len(held) == 1 else 'hold'} up to {level_words(result, least)}"
        rate = f", at {rate_text(_of(result, least).throughput)} {result.operation}s a second"
        yield f"{holds}{rate}{limit}"
        yield f"{holds}{limit}"
        yield holds
    elif is_undecided(result):
        yield f"the knee is not known yet after only {count_words(knee.rounds, 'round')}"
    elif saturation is not None:
        at = level_words(result, saturation.level)
        yield f"{who} is saturated from {at} on, at {_rate(result, saturation.level)}{limit}"
    elif knee.high is None:
        top = result.levels[-1].level
        handles = f"{who} handles {_rate(result, top)}{limit}"
        yield f"no knee is proven up to {level_words(result, top)}, where {handles}"
    else:
        at = level_words(result, knee.level)
        yield f"{who} handles {_rate(result, knee.level)} at its knee of {at}{limit}"


def _who(result: SweepResult) -> str:
    return "the server" if result.operation == "transaction" else "the service"


def _rate(result: SweepResult, level: float) -> str:
    return f"{rate_text(_of(result, level).throughput)} {result.operation}s a second"


def _top(result: SweepResult) -> str:
    """Return what follows a headline that no level is the knee: the latency at the highest level."""
    top = result.levels[-1]
    where = f"at {level_words(result, top.level)}, the highest level"
    p99 = "" if top.p99_ns is None else f", 99 % took under {format_duration(top.p99_ns)}"
    return f"{where}{p99}{_most(result, top.level)}" if p99 else ""


def _knee(result: SweepResult) -> str:
    if not any(level.works for level in result.levels):
        return f"nothing worked, not even at {level_words(result, result.levels[0].level)}"
    if result.knee is None:
        return f"{result.run.status} before the first round of all levels finished. The knee is not known"
    knee, top = result.knee, result.levels[-1].level
    who = _who(result)
    saturation = result.saturation
    if saturation is not None:
        only_wait = (
            f"more {_AXIS[result.axis][0]} only wait (at {level_words(result, saturation.top)} it handles "
            f"{_performance(result, saturation.top)})"
        )
        if knee.low is None and saturation.level == result.levels[0].level:
            lowest = level_words(result, saturation.level)
            return (
                f"{who} is saturated from the lowest level on: at {lowest} it handles "
                f"{_performance(result, saturation.level)}; {only_wait}"
            )
        beyond = f"; from {level_words(result, saturation.level)} on it is saturated: {only_wait}"
    else:
        beyond = _most(result, knee.level if knee.high is not None else top)
    if is_undecided(result):
        return (
            f"the knee is not known yet, because only {knee.rounds} of at least {FEWEST_ROUNDS} rounds "
            f"finished: at {level_words(result, knee.level)} {who} handles "
            f"{_performance(result, knee.level)}, at {level_words(result, top)}, the highest level, "
            f"{_performance(result, top)}"
        )
    if knee.high is None:
        return (
            f"no knee is proven up to {level_words(result, top)}, the highest level: "
            f"there {who} handles {_performance(result, top)}{beyond}"
        )
    if knee.low is None:
        where = f"below {level_words(result, knee.high)}"
    else:
        where = f"between {rate_text(knee.low)} and {level_words(result, knee.high)}"
    at = level_words(result, knee.level)
    return f"the knee is {where}: at {at} {who} handles {_performance(result, knee.level)}{beyond}"


def is_undecided(result: SweepResult) -> bool:
    """Return whether a level below the highest is best so far, in too few rounds to exclude the others."""
    knee = result.knee
    return (
        knee is not None
        and knee.high is None
        and knee.rounds < FEWEST_ROUNDS
        and knee.level < result.levels[-1].level
    )


def _performance(result: SweepResult, level: float) -> str:
    """Return the throughput and latency of a level."""
    at = _of(result, level)
    rate = _rate(result, level)
    return rate if at.p99_ns is None else f"{rate}, 99 % under {format_duration(at.p99_ns)}"


def _most(result: SweepResult, reported: float) -> str:
    """Return the highest throughput and its level, unless the level `reported` has it."""
    if result.most is None or result.most == reported:
        return ""
    top = rate_text(_of(result, result.most).throughput)
    return f"; the most is {top} {result.operation}s a second, at {level_words(result, result.most)}"


def _bottleneck(result: SweepResult) -> Iterator[str]:
    for bottleneck in result.bottlenecks[:1]:
        if result.cliff is None or bottleneck.level != result.cliff.breaks:
            yield f"bottleneck at {level_words(result, bottleneck.level)}: {bottleneck.sentence}"


def _objectives(result: SweepResult) -> Iterator[str]:
    for objective in result.objectives:
        if objective.holds is None and objective.fails is None:
            yield f"it is not known whether {objective.text} holds"
        elif objective.holds is None and objective.fails == result.levels[0].level:
            yield (
                f"{objective.text} already fails at {level_words(result, objective.fails)}, the lowest level"
            )
        elif objective.holds is None:
            yield (
                f"{objective.text} fails at {level_words(result, objective.fails)}; no level is "
                "proven to hold "
                "it"
            )
        elif objective.fails is None:
            held = level_words(result, objective.holds)
            yield f"{objective.text} holds up to {held}, and failed at no level"
        else:
            held = level_words(result, objective.holds)
            yield f"{objective.text} holds up to {held} and fails at {rate_text(objective.fails)}"


def _verified(result: SweepResult) -> Iterator[str]:
    found = result.verified
    if found is None:
        return
    rate = f"{rate_text(found.rate)} arrivals a second for {format_duration(found.elapsed_ns)}"
    p99 = "" if found.p99_ns is None else f", 99 % under {format_duration(found.p99_ns)}"
    where = f"({found.share * 100:.0f} % of the knee{p99})"
    failed = [objective.text for objective in found.objectives if not objective.holds]
    if not found.works:
        wrong = share_text(found.wrong, 1)
        yield f"{_who(result)} does not sustain {rate} {where}: {wrong} failed or were never sent"
    elif failed:
        yield f"{series_words(failed)} failed at {rate} {where}"
    else:
        yield f"{_who(result)} sustains {rate} {where}"


def _break(result: SweepResult) -> Iterator[str]:
    cliff = result.cliff
    if cliff is None:
        return
    yield f"it breaks at {level_words(result, cliff.breaks)}: {cliff.reason.rstrip('. ')}"


def _warnings(result: SweepResult) -> Iterator[str]:
    """Yield the reasons to trust the result less, the gravest first."""
    knee = result.knee
    if result.run.status != "complete" and any(level.works for level in result.levels):
        yield f"the sweep is {result.run.status}: this report covers what was measured until then"
    if knee is not None:
        at = _of(result, knee.level)
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


def _of(result: SweepResult, load: float) -> LevelFacts:
    return next(level for level in result.levels if level.level == load)


def answer_sweep(result: SweepResult) -> SweepResult:
    """Return the result with its answer and warnings."""
    result = replace(result, warnings=tuple(f"{capitalised(text)}." for text in _warnings(result)))
    return replace(result, answer=_compose_sweep_answer(result))
