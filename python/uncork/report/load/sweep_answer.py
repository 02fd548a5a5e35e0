"""The answer of a sweep: the first sentence a reader sees, and the doubts about it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.sweep import FEWEST_ROUNDS, LevelFacts, SweepResult
from uncork.model.units import format_duration, format_percent
from uncork.report.load.words import rate_text

__all__ = [
    "AXIS_WORDS",
    "answer_sweep",
    "is_undecided",
    "level_words",
]

_AXIS: Final = {
    "clients": ("clients", ""),
    "streams": ("streams", " a connection"),
    "rate": ("arrivals", " a second"),
}
AXIS_WORDS: Final = {axis: noun + of for axis, (noun, of) in _AXIS.items()}
"""What levels count."""
_BUSY: Final = 0.8
"""A generator's thread busier than this may be what bends."""
_FULL: Final = 0.85
"""Processors of the machine in use by server and generator, as a part, from which on they are the limit."""


def _compose_sweep_answer(result: SweepResult) -> str:
    """Return what came of a sweep: where it bends, what it bears, up to where it holds what was promised."""
    parts = [_bend(result), *_held_up(result), *_promises(result), *_break(result)]
    text = "; ".join(part for part in parts if part)
    return f"{text[:1].upper()}{text[1:]}."


def _compose_sweep_warnings(result: SweepResult) -> tuple[str, ...]:
    """Return what would make an expert hesitate, one sentence each, the gravest first."""
    return tuple(f"{text[:1].upper()}{text[1:]}." for text in _doubts(result))


def level_words(result: SweepResult, level: float | None) -> str:
    """Name a level: ``12 clients``, ``3 400 arrivals a second``."""
    if level is None:
        return "none"
    one = level == 1 and result.axis != "rate"
    noun, of = _AXIS[result.axis]
    return f"{rate_text(level)} {noun.removesuffix('s') if one else noun}{of}"


def _bend(result: SweepResult) -> str:
    if not any(level.works for level in result.levels):
        return f"nothing worked, not even at {level_words(result, result.levels[0].level)}"
    if result.knee is None:
        return f"{result.run.status} before a round of all levels was finished: where it bends is not known"
    knee, top = result.knee, result.levels[-1].level
    saturation = result.saturation
    if saturation is not None:
        beyond = (
            f"; more {_AXIS[result.axis][0]} only wait: at {level_words(result, saturation.top)} it bears "
            f"{_figures(result, saturation.top)}"
        )
        if knee.low is None and saturation.level == result.levels[0].level:
            lowest = level_words(result, saturation.level)
            return (
                f"it is saturated from {lowest}, the lowest level, on: there it bears "
                f"{_figures(result, saturation.level)}{beyond}"
            )
        beyond = f"; from {level_words(result, saturation.level)} on it is saturated{beyond}"
    else:
        beyond = _most(result, knee.level if knee.high is not None else top)
    if is_undecided(result):
        return (
            f"where it bends is not known yet, as only {knee.rounds} of at least {FEWEST_ROUNDS} rounds were "
            f"finished: at {level_words(result, knee.level)} it bears {_figures(result, knee.level)}, at "
            f"{level_words(result, top)}, the highest level, {_figures(result, top)}"
        )
    if knee.high is None:
        return (
            f"no bend is proven up to {level_words(result, top)}, the highest level: "
            f"there it bears {_figures(result, top)}{beyond}"
        )
    if knee.low is None:
        where = f"below {level_words(result, knee.high)}"
    else:
        where = f"between {rate_text(knee.low)} and {level_words(result, knee.high)}"
    at = level_words(result, knee.level)
    return f"it bends {where}: at {at} it bears {_figures(result, knee.level)}{beyond}"


def is_undecided(result: SweepResult) -> bool:
    """Whether a level below the highest is best so far, in rounds too few to exclude the others."""
    knee = result.knee
    return (
        knee is not None
        and knee.high is None
        and knee.rounds < FEWEST_ROUNDS
        and knee.level < result.levels[-1].level
    )


def _figures(result: SweepResult, level: float) -> str:
    """Return what a level bears: its own throughput and latency."""
    at = _of(result, level)
    rate = f"{rate_text(at.throughput)} {result.operation}s a second"
    return rate if at.p99_ns is None else f"{rate}, 99 % under {format_duration(at.p99_ns)}"


def _most(result: SweepResult, told: float) -> str:
    """Return the most throughput and its level, unless the level `told` has it."""
    if result.most is None or result.most == told:
        return ""
    top = rate_text(_of(result, result.most).throughput)
    return f"; most is {top}, at {level_words(result, result.most)}"


def _held_up(result: SweepResult) -> Iterator[str]:
    for one in result.bottlenecks[:1]:
        if result.cliff is None or one.level != result.cliff.breaks:
            yield f"what holds it up at {level_words(result, one.level)}: {one.sentence}"


def _promises(result: SweepResult) -> Iterator[str]:
    for one in result.objectives:
        if one.holds is None and one.fails is None:
            yield f"whether {one.text} holds is not known"
        elif one.holds is None and one.fails == result.levels[0].level:
            yield f"{one.text} fails already at {level_words(result, one.fails)}, the lowest level"
        elif one.holds is None:
            yield f"{one.text} fails at {level_words(result, one.fails)}; no level is proven to hold it"
        elif one.fails is None:
            yield f"{one.text} holds up to {level_words(result, one.holds)}; none was seen to fail it"
        else:
            held = level_words(result, one.holds)
            yield f"{one.text} holds up to {held} and fails at {rate_text(one.fails)}"


def _break(result: SweepResult) -> Iterator[str]:
    cliff = result.cliff
    if cliff is None:
        return
    yield f"it breaks at {level_words(result, cliff.breaks)}: {cliff.reason.rstrip('. ')}"


def _doubts(result: SweepResult) -> Iterator[str]:
    knee = result.knee
    if result.run.status != "complete" and any(level.works for level in result.levels):
        yield f"the sweep is {result.run.status}; this is what was seen until then"
    if knee is not None:
        at = _of(result, knee.level)
        if at.busiest_thread > _BUSY:
            busy = f"{at.busiest_thread * 100:.0f} %"
            threads = "-j" if result.operation == "transaction" else "-t"
            yield (
                f"at the bend the generator's busiest thread works {busy} of the time: it may be what bends; "
                f"give it more threads ({threads}) or a machine of its own"
            )
        elif at.server_cpus is not None and at.server_cpus + at.client_cpus > _FULL * result.processors:
            share = at.client_cpus / (at.server_cpus + at.client_cpus)
            yield (
                f"at the bend all {result.processors} processors are busy, and the generator uses "
                f"{share * 100:.0f} % of what is used: on a machine of its own the server would bend later"
            )
        if knee.rounds < FEWEST_ROUNDS:
            yield f"only {knee.rounds} rounds were finished: five are the fewest that can exclude a level"
    law = result.law
    if law is not None and not law.describes:
        yield (
            "the Universal Scalability Law does not describe this server: it misses a level by "
            f"{format_percent(1 + law.misfit).lstrip('+')}, so a limit is hard (a pool, a number of "
            "processors), or the levels were not alike"
        )
    yield from (text.rstrip(".") for text in result.lacks)
    if result.axis != "rate" and any(level.works for level in result.levels):
        yield (
            "in a closed loop clients wait for answers, so that latency beyond the bend is what so many "
            "clients make of it; --sweep rate shows what users who do not wait would see"
        )


def _of(result: SweepResult, wanted: float) -> LevelFacts:
    return next(level for level in result.levels if level.level == wanted)


def answer_sweep(result: SweepResult) -> SweepResult:
    """Return the result with its answer and warnings."""
    result = replace(result, warnings=_compose_sweep_warnings(result))
    return replace(result, answer=_compose_sweep_answer(result))
