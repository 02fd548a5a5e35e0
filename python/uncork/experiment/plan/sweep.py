"""Which level a sweep visits next, from what its visits have seen. Pure.

It explores: doubles the level until power has fallen behind its top for two levels and throughput grows no
more (with objectives, until they are missed too), or until the server breaks; then it looks closer, between
the neighbours of the best level and at the edges where an objective or the server gives way. Then it measures
in rounds until all is told that was asked, or time is up.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from uncork.model.results.sweep import FEWEST_ROUNDS
from uncork.model.sweep import Objective, SweepSpec, Visit
from uncork.stats.load.knee import (
    Holds,
    Knee,
    Saturation,
    find_knee,
    find_saturation,
    judge_limit,
    judge_share,
)

__all__ = ["Edge", "SweepFindings", "findings", "next_visit", "stress_level"]

_GROWTH: Final = 1.05
"""A doubled level that brings less throughput than this is taken as bringing none."""
_FINE: Final = 1.5
"""How near, as a ratio, a neighbour of the best level is to lie."""
_EDGE: Final = 1.25
"""How near the two sides of an edge are to lie."""
_PRESSED: Final = 4.0
"""How far beyond the knee, as a ratio, a queue is sure to stand."""
_NEAR: Final = 4.0
"""A knee that lies between two levels this near, as a ratio, is known well enough."""
_MOST_ROUNDS: Final = 12
_BESIDE: Final = 2
"""Levels on either side of the best one that are visited in rounds."""


@dataclass(frozen=True, slots=True)
class Edge:
    """Between which two visited levels something gives way; None on a side that was not seen."""

    holds: float | None
    gives_way: float | None


@dataclass(frozen=True, slots=True)
class SweepFindings:
    """What visits tell.

    `most` is the level of most throughput. `saturation` is where more clients only wait; an open loop has
    none, as its arrivals do not wait. `objectives` says of each, by its text, how levels were judged in
    rounds; `edges` are where each gives way, as single visits saw it while exploring. `cliff` is where the
    server breaks.
    """

    knee: Knee | None
    most: float | None
    saturation: Saturation | None = None
    objectives: Mapping[str, Mapping[float, Holds]] = field(default_factory=dict)
    edges: Mapping[str, Edge] = field(default_factory=dict)
    cliff: Edge = Edge(None, None)


def findings(visits: Sequence[Visit], spec: SweepSpec) -> SweepFindings:
    """Return what visits tell so far."""
    rounds = [visit for visit in visits if visit.round and visit.works]
    ended = _whole_rounds(rounds)
    powers: dict[float, dict[int, float]] = {}
    throughputs: dict[float, dict[int, float]] = {}
    for visit in rounds:
        if visit.round in ended:
            powers.setdefault(visit.level, {})[visit.round] = power(visit)
            throughputs.setdefault(visit.level, {})[visit.round] = math.log(visit.throughput)
    means = _means(visit for visit in visits if visit.works)
    return SweepFindings(
        knee=find_knee(powers, sorted({visit.level for visit in visits}), spec.confidence),
        most=max(means, key=means.__getitem__, default=None),
        saturation=None if spec.axis == "rate" else find_saturation(throughputs, spec.confidence),
        objectives={one.text: _judged(visits, one, spec.confidence) for one in spec.objectives},
        edges={one.text: _edge(visits, partial(_keeps, one)) for one in spec.objectives},
        cliff=_edge(visits, _works),
    )


def power(visit: Visit) -> float:
    """Return the log of throughput over mean latency."""
    return math.log(visit.throughput / max(visit.mean_ns or 0.0, 1.0))


def next_visit(visits: Sequence[Visit], spec: SweepSpec) -> tuple[int, float] | None:
    """Return the round and level of the next visit; None when the sweep has ended.

    Time is not asked here: who visits ends the sweep when its budget is spent.
    """
    explored = _explore(visits, spec)
    if explored is not None:
        return 0, explored
    levels = chosen_levels(visits, spec)
    if not levels:
        return None
    rounds = [visit for visit in visits if visit.round]
    last = max((visit.round for visit in rounds), default=1)
    seen = {visit.level for visit in rounds if visit.round == last}
    if seen >= set(levels):
        if _told(visits, spec, last) or last >= _MOST_ROUNDS:
            return None
        last, seen = last + 1, set()
    order = sorted(levels)
    random.Random(f"{spec.seed} {last}").shuffle(order)
    return last, next(level for level in order if level not in seen)


def chosen_levels(visits: Sequence[Visit], spec: SweepSpec) -> tuple[float, ...]:
    """Return the levels to visit in rounds, from what exploring saw: those around the best, and edges.

    The first level is among them, so that scaling is told from one point on, and that of most throughput.
    """
    explored = [visit for visit in visits if not visit.round]
    works = sorted({visit.level for visit in explored if visit.works})
    if not works:
        return ()
    best = works.index(_best(explored))
    means = _means(visit for visit in explored if visit.works)
    most = max(means, key=means.__getitem__)
    chosen = {works[0], most, *works[max(0, best - _BESIDE) : best + _BESIDE + 1]}
    for one in spec.objectives:
        edge = _edge(explored, partial(_keeps, one))
        chosen |= {level for level in (edge.holds, edge.gives_way) if level in works}
    return tuple(sorted(chosen))


def stress_level(visits: Sequence[Visit], spec: SweepSpec) -> float | None:
    """Return the level at which to look for what holds the load up: past the knee, and still working."""
    found = findings(visits, spec)
    works = sorted({visit.level for visit in visits if visit.works})
    if found.knee is None or found.most is None or not works:
        return None
    beyond = [level for level in works if level >= _PRESSED * found.knee.level]
    return max(found.most, min(beyond, default=works[-1]))


# ---- exploring ----


def _explore(visits: Sequence[Visit], spec: SweepSpec) -> float | None:
    """Return the next level to explore, or None when enough has been seen."""
    if any(visit.round for visit in visits):
        return None
    if not visits:
        return spec.start
    top = max(visits, key=lambda visit: visit.level)
    if top.works and top.level < spec.end and not _past(visits, spec):
        return _level(min(top.level * 2.0, spec.end), spec)
    gaps = [(edge.holds, edge.gives_way, _EDGE) for edge in _edges(visits, spec)]
    if any(visit.works for visit in visits):
        levels, best = sorted({visit.level for visit in visits}), _best(visits)
        below = max((level for level in levels if level < best), default=None)
        above = min((level for level in levels if level > best), default=None)
        gaps += [(below, best, _FINE), (best, above, _FINE)]
    between = (_between(low, high, near, spec) for low, high, near in gaps)
    return next((level for level in between if level is not None), None)


def _edges(visits: Sequence[Visit], spec: SweepSpec) -> list[Edge]:
    """Return where the server breaks, and where each objective gives way."""
    return [_edge(visits, _works), *(_edge(visits, partial(_keeps, one)) for one in spec.objectives)]


def _past(explored: Sequence[Visit], spec: SweepSpec) -> bool:
    """Say whether the levels have gone past all that is to be found."""
    levels = sorted({visit.level for visit in explored})
    means = _means(explored)
    beyond = [level for level in levels if level > _best(explored)]
    missed = all(edge.gives_way is not None for edge in _edges(explored, spec)[1:])
    grew = means[levels[-1]] > _GROWTH * max((means[level] for level in levels[:-1]), default=0.0)
    return len(beyond) >= _BESIDE and not grew and missed


def _between(low: float | None, high: float | None, near: float, spec: SweepSpec) -> float | None:
    """Return a level between two, in ratio half way; None where they are near each other already."""
    if low is None or high is None or high <= low * near:
        return None
    middle = _level(math.sqrt(low * high), spec)
    return middle if low < middle < high else None


def _level(value: float, spec: SweepSpec) -> float:
    """Return a level as it can be: clients and streams are whole; a rate gets three digits."""
    if spec.axis != "rate":
        return float(round(value))
    digits = 2 - math.floor(math.log10(value))
    return round(value, digits)


# ---- judging ----


def _told(visits: Sequence[Visit], spec: SweepSpec, rounds: int) -> bool:
    """Say whether everything asked for is known."""
    if rounds < FEWEST_ROUNDS:
        return False
    found = findings(visits, spec)
    if found.knee is None or not _near(found.knee):
        return False
    for text, edge in found.edges.items():
        judged = found.objectives[text]
        sides = (edge.holds, edge.gives_way)
        if any(level is not None and judged.get(level) == "open" for level in sides):
            return False
    return True


def _near(knee: Knee) -> bool:
    """Say whether a knee is known well enough. Where power has a flat top, more rounds hardly tell more."""
    if len(knee.left) == 1:
        return True
    return knee.low is not None and knee.high is not None and knee.high <= _NEAR * knee.low


def _judged(visits: Sequence[Visit], one: Objective, confidence: float) -> dict[float, Holds]:
    judged: dict[float, Holds] = {}
    for level in sorted({visit.level for visit in visits if visit.round}):
        seen = [visit for visit in visits if visit.round and visit.level == level]
        if one.quantity == "errors":
            parts, wholes = [visit.wrong for visit in seen], [visit.asked for visit in seen]
            judged[level] = judge_share(parts, wholes, one.limit, confidence)
            continue
        values = [value for visit in seen if (value := visit.measured(one.quantity)) is not None]
        judged[level] = judge_limit(values, one.limit, confidence) if len(values) == len(seen) else "no"
    return judged


def _works(visit: Visit) -> bool:
    return visit.works


def _keeps(one: Objective, visit: Visit) -> bool:
    value = visit.measured(one.quantity)
    return value is not None and value < one.limit


def _edge(visits: Iterable[Visit], holds: Callable[[Visit], bool]) -> Edge:
    """Return where something gives way: the lowest level that does not hold, and the highest below it."""
    seen: dict[float, list[bool]] = {}
    for visit in visits:
        seen.setdefault(visit.level, []).append(holds(visit))
    gone = min((level for level, told in seen.items() if 2 * sum(told) < len(told)), default=None)
    kept = [level for level in seen if gone is None or level < gone]
    return Edge(max(kept, default=None), gone)


def _best(visits: Sequence[Visit]) -> float:
    """Return the level of most power, on average over its visits."""
    powers: dict[float, list[float]] = {}
    for visit in visits:
        if visit.works:
            powers.setdefault(visit.level, []).append(power(visit))
    return max(powers, key=lambda level: math.fsum(powers[level]) / len(powers[level]))


def _means(visits: Iterable[Visit]) -> dict[float, float]:
    """Return each level's mean throughput."""
    found: dict[float, list[float]] = {}
    for visit in visits:
        found.setdefault(visit.level, []).append(visit.throughput)
    return {level: math.fsum(seen) / len(seen) for level, seen in found.items()}


def _whole_rounds(visits: Sequence[Visit]) -> frozenset[int]:
    """Return the rounds that hold as many levels as the fullest one: the last may have been cut short."""
    sizes: dict[int, int] = {}
    for visit in visits:
        sizes[visit.round] = sizes.get(visit.round, 0) + 1
    return frozenset(one for one, size in sizes.items() if size == max(sizes.values()))
