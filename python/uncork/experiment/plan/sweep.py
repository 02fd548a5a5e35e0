"""Choose the next load step of a sweep from the results of the previous ones. Pure.

First it explores: it doubles the level until power has been below its peak for two levels and throughput no
longer grows (with objectives, until they are missed too), or until the server breaks. Then it refines:
between the neighbours of the best level, and at the edges where an objective is missed or the server breaks.
Then it measures in rounds until all questions are answered, or time is up.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from uncork.model.results.sweep import FEWEST_ROUNDS
from uncork.model.sweep import Objective, SweepSpec
from uncork.model.tables.sweep import LoadStep
from uncork.stats.load.knee import (
    Holds,
    Knee,
    Saturation,
    find_knee,
    find_saturation,
    judge_limit,
    judge_share,
)

_GROWTH: Final = 1.05
"""If a doubled level increases throughput by less than this ratio, it counts as no increase."""
_FINE: Final = 1.5
"""How near, as a ratio, a neighbour of the best level must be."""
_EDGE: Final = 1.25
"""How near, as a ratio, the two sides of an edge must be."""
_PRESSED: Final = 4.0
"""How far beyond the knee, as a ratio, a queue is certain to exist."""
_NEAR: Final = 4.0
"""The knee is known well enough if it lies between two levels whose ratio is at most this."""
_MOST_ROUNDS: Final = 12
_BESIDE: Final = 2
"""Levels on either side of the best one that are measured in rounds."""


@dataclass(frozen=True, slots=True)
class Edge:
    """The two measured levels between which something breaks; None on a side that was not measured."""

    holds: float | None
    gives_way: float | None


@dataclass(frozen=True, slots=True)
class SweepFindings:
    """What the load steps show.

    `most` is the level with the highest throughput. `saturation` is where additional clients only wait; an
    open loop has none, because its arrivals do not wait. `objectives` maps each objective's text to the
    judgement of each level in rounds. `edges` are where each objective is first missed, according to single
    steps during exploration. `cliff` is where the server breaks.
    """

    knee: Knee | None
    most: float | None
    saturation: Saturation | None = None
    objectives: Mapping[str, Mapping[float, Holds]] = field(default_factory=dict)
    edges: Mapping[str, Edge] = field(default_factory=dict)
    cliff: Edge = Edge(None, None)


def findings(steps: Sequence[LoadStep], spec: SweepSpec) -> SweepFindings:
    """Return what the load steps show so far."""
    rounds = [step for step in steps if step.round and step.works]
    ended = _whole_rounds(rounds)
    powers: dict[float, dict[int, float]] = {}
    throughputs: dict[float, dict[int, float]] = {}
    for step in rounds:
        if step.round in ended:
            powers.setdefault(step.level, {})[step.round] = power(step)
            throughputs.setdefault(step.level, {})[step.round] = math.log(step.throughput)
    means = _means(step for step in steps if step.works)
    return SweepFindings(
        knee=find_knee(powers, sorted({step.level for step in steps}), spec.confidence),
        most=max(means, key=means.__getitem__, default=None),
        saturation=None if spec.axis == "rate" else find_saturation(throughputs, spec.confidence),
        objectives={
            objective.text: _judged(steps, objective, spec.confidence) for objective in spec.objectives
        },
        edges={objective.text: _edge(steps, partial(_keeps, objective)) for objective in spec.objectives},
        cliff=_edge(steps, _works),
    )


def power(step: LoadStep) -> float:
    """Return the log of throughput over mean latency."""
    return math.log(step.throughput / max(step.mean_ns or 0.0, 1.0))


def next_step(steps: Sequence[LoadStep], spec: SweepSpec) -> tuple[int, float] | None:
    """Return the round and level of the next load step; None when the sweep has ended.

    This function does not check the time: the caller ends the sweep when its budget is spent.
    """
    explored = _explore(steps, spec)
    if explored is not None:
        return 0, explored
    levels = chosen_levels(steps, spec)
    if not levels:
        return None
    rounds = [step for step in steps if step.round]
    last = max((step.round for step in rounds), default=1)
    seen = {step.level for step in rounds if step.round == last}
    if seen >= set(levels):
        if _is_complete(steps, spec, last) or last >= _MOST_ROUNDS:
            return None
        last, seen = last + 1, set()
    order = sorted(levels)
    random.Random(f"{spec.seed} {last}").shuffle(order)
    return last, next(level for level in order if level not in seen)


def chosen_levels(steps: Sequence[LoadStep], spec: SweepSpec) -> tuple[float, ...]:
    """Return the levels to measure in rounds, from the exploration: those around the best level, and edges.

    The first level is included, so that scaling has a starting point, and so is the level with the highest
    throughput.
    """
    explored = [step for step in steps if not step.round]
    works = sorted({step.level for step in explored if step.works})
    if not works:
        return ()
    best = works.index(_best(explored))
    means = _means(step for step in explored if step.works)
    most = max(means, key=means.__getitem__)
    chosen = {works[0], most, *works[max(0, best - _BESIDE) : best + _BESIDE + 1]}
    for objective in spec.objectives:
        edge = _edge(explored, partial(_keeps, objective))
        chosen |= {level for level in (edge.holds, edge.gives_way) if level in works}
    return tuple(sorted(chosen))


def stress_level(steps: Sequence[LoadStep], spec: SweepSpec) -> float | None:
    """Return the level at which to look for the bottleneck: beyond the knee, and still working."""
    found = findings(steps, spec)
    works = sorted({step.level for step in steps if step.works})
    if found.knee is None or found.most is None or not works:
        return None
    beyond = [level for level in works if level >= _PRESSED * found.knee.level]
    return max(found.most, min(beyond, default=works[-1]))


# ---- exploring ----


def _explore(steps: Sequence[LoadStep], spec: SweepSpec) -> float | None:
    """Return the next level to explore, or None when exploration is complete."""
    if any(step.round for step in steps):
        return None
    if not steps:
        return spec.start
    top = max(steps, key=lambda step: step.level)
    if top.works and top.level < spec.end and not _past(steps, spec):
        return _level(min(top.level * 2.0, spec.end), spec)
    gaps = [(edge.holds, edge.gives_way, _EDGE) for edge in _edges(steps, spec)]
    if any(step.works for step in steps):
        levels, best = sorted({step.level for step in steps}), _best(steps)
        below = max((level for level in levels if level < best), default=None)
        above = min((level for level in levels if level > best), default=None)
        gaps += [(below, best, _FINE), (best, above, _FINE)]
    between = (_between(low, high, near, spec) for low, high, near in gaps)
    return next((level for level in between if level is not None), None)


def _edges(steps: Sequence[LoadStep], spec: SweepSpec) -> list[Edge]:
    """Return where the server breaks, and where each objective is missed."""
    return [
        _edge(steps, _works),
        *(_edge(steps, partial(_keeps, objective)) for objective in spec.objectives),
    ]


def _past(explored: Sequence[LoadStep], spec: SweepSpec) -> bool:
    """Return whether the levels are beyond everything that exploration looks for."""
    levels = sorted({step.level for step in explored})
    means = _means(explored)
    beyond = [level for level in levels if level > _best(explored)]
    missed = all(edge.gives_way is not None for edge in _edges(explored, spec)[1:])
    grew = means[levels[-1]] > _GROWTH * max((means[level] for level in levels[:-1]), default=0.0)
    return len(beyond) >= _BESIDE and not grew and missed


def _between(low: float | None, high: float | None, near: float, spec: SweepSpec) -> float | None:
    """Return a level between two, at their geometric mean; None if they are near each other already."""
    if low is None or high is None or high <= low * near:
        return None
    middle = _level(math.sqrt(low * high), spec)
    return middle if low < middle < high else None


def _level(value: float, spec: SweepSpec) -> float:
    """Return a valid level: clients and streams are whole numbers; a rate has three digits."""
    if spec.axis != "rate":
        return float(round(value))
    digits = 2 - math.floor(math.log10(value))
    return round(value, digits)


# ---- judging ----


def _is_complete(steps: Sequence[LoadStep], spec: SweepSpec, rounds: int) -> bool:
    """Return whether everything requested is known."""
    if rounds < FEWEST_ROUNDS:
        return False
    found = findings(steps, spec)
    if found.knee is None or not _near(found.knee):
        return False
    for text, edge in found.edges.items():
        judged = found.objectives[text]
        sides = (edge.holds, edge.gives_way)
        if any(level is not None and judged.get(level) == "open" for level in sides):
            return False
    return True


def _near(knee: Knee) -> bool:
    """Return whether a knee is known well enough. If power has a flat peak, more rounds hardly help."""
    if len(knee.left) == 1:
        return True
    return knee.low is not None and knee.high is not None and knee.high <= _NEAR * knee.low


def _judged(steps: Sequence[LoadStep], objective: Objective, confidence: float) -> dict[float, Holds]:
    judged: dict[float, Holds] = {}
    for level in sorted({step.level for step in steps if step.round}):
        seen = [step for step in steps if step.round and step.level == level]
        if objective.quantity == "errors":
            parts, wholes = [step.wrong for step in seen], [step.asked for step in seen]
            judged[level] = judge_share(parts, wholes, objective.limit, confidence)
            continue
        values = [value for step in seen if (value := step.measured(objective.quantity)) is not None]
        judged[level] = judge_limit(values, objective.limit, confidence) if len(values) == len(seen) else "no"
    return judged


def _works(step: LoadStep) -> bool:
    return step.works


def _keeps(objective: Objective, step: LoadStep) -> bool:
    value = step.measured(objective.quantity)
    return value is not None and value < objective.limit


def _edge(steps: Iterable[LoadStep], holds: Callable[[LoadStep], bool]) -> Edge:
    """Return where something breaks: the lowest level that fails, and the highest level below it."""
    seen: dict[float, list[bool]] = {}
    for step in steps:
        seen.setdefault(step.level, []).append(holds(step))
    failed = min((level for level, held in seen.items() if 2 * sum(held) < len(held)), default=None)
    kept = [level for level in seen if failed is None or level < failed]
    return Edge(max(kept, default=None), failed)


def _best(steps: Sequence[LoadStep]) -> float:
    """Return the level with the highest mean power."""
    powers: dict[float, list[float]] = {}
    for step in steps:
        if step.works:
            powers.setdefault(step.level, []).append(power(step))
    return max(powers, key=lambda level: math.fsum(powers[level]) / len(powers[level]))


def _means(steps: Iterable[LoadStep]) -> dict[float, float]:
    """Return each level's mean throughput."""
    found: dict[float, list[float]] = {}
    for step in steps:
        found.setdefault(step.level, []).append(step.throughput)
    return {level: math.fsum(seen) / len(seen) for level, seen in found.items()}


def _whole_rounds(steps: Sequence[LoadStep]) -> frozenset[int]:
    """Return the rounds with as many levels as the fullest one; the last round may be incomplete."""
    sizes: dict[int, int] = {}
    for step in steps:
        sizes[step.round] = sizes.get(step.round, 0) + 1
    return frozenset(number for number, size in sizes.items() if size == max(sizes.values()))
