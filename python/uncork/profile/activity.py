"""From samples of who works and who waits to where the time of a server goes. Pure.

Each sample stands for the time from half way to the one before it to half way to the next, the first from the
beginning, the last to the end: a sample that was late or missed leaves no hole, and all times add up to how
long was watched. Sessions in a sample, times how long it stands for, over the whole: how many there were on
average (average active sessions, as Oracle's ASH counts them).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, TypeVar

from uncork.model.results.database import CPU, IDLE, ActivityLayer, History, TimeNode, Usage

__all__ = [
    "CLIENT",
    "averages",
    "history",
    "history_places",
    "time_tree",
    "usage",
    "wait_class",
    "weights",
]

Row = Mapping[str, Any]
"""Processes in the same place of the tree; `weight` is their time in all samples, in microseconds."""
Key = TypeVar("Key", bound=Hashable)
Step = tuple[Literal["process", "class", "event", "template", "application"], str, int | None]

CLIENT: Final = "client backend"
_WORKER: Final = "parallel worker"
_MOST_CHILDREN: Final = 20
"""Parts of one part that the tree tells by name; the rest are told together."""
_READS: Final = frozenset({"AioIoCompletion"})
"""Since PostgreSQL 18 other processes read for a session, which waits for them: it waits for files still."""
_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600)
_MOST_STEPS: Final = 120


def weights(times_us: Sequence[int], begun_us: int, ended_us: int) -> list[float]:
    """Return for how many microseconds each sample stands; they add up to the whole. Times rise."""
    if not times_us:
        return []
    middles = [(before + after) / 2 for before, after in pairwise(times_us)]
    bounds = [float(min(begun_us, times_us[0])), *middles, float(max(ended_us, times_us[-1]))]
    return [end - begin for begin, end in pairwise(bounds)]


def wait_class(row: Row) -> str:
    """Return what a process was busy with: a class of waits, `CPU`, or `IDLE` in transaction."""
    if str(row["state"] or "").startswith(IDLE):
        return IDLE
    if row["wait_event"] in _READS:
        return "IO"
    return str(row["wait_class"] or CPU)


def averages(rows: Iterable[Row], key: Callable[[Row], Key], whole: float) -> dict[Key, float]:
    """Return by key how many processes there were on average, of a watch of `whole` microseconds."""
    sums: dict[Key, float] = defaultdict(float)
    for row in rows:
        sums[key(row)] += row["weight"]
    return {name: value / whole for name, value in sums.items()} if whole else {}


def usage(found: Mapping[str, float], whole: float) -> tuple[Usage, ...]:
    """Return who had how many sessions, the most first; `whole` is how many there were of all."""
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Usage(name, value, value / whole if whole else 0.0) for name, value in ranked)


def time_tree(rows: Iterable[Row], whole: float, *, by_process: bool = False) -> TimeNode:
    """Return the time of processes by class, event, template and application; `by_process` by kind before.

    The children of each part add up to it: what is not told by name is told as others.
    """
    found = averages(rows, lambda row: _path(row, by_process), whole)
    total = sum(found.values())
    return _node(("all", "", None), list(found.items()), total, 0)


def _path(row: Row, by_process: bool) -> tuple[Step, ...]:
    of_class = wait_class(row)
    steps: list[Step] = [("process", row["backend"], None)] if by_process else []
    steps.append(("class", of_class, None))
    if of_class not in (CPU, IDLE):
        steps.append(("event", row["wait_event"] or "", None))
    if not by_process or row["backend"] == _WORKER:
        steps.append(("template", "", row["template"]))
    if not by_process:
        steps.append(("application", row["application"] or "", None))
    return tuple(steps)


def _node(
    step: tuple[Any, str, int | None],
    found: Sequence[tuple[tuple[Step, ...], float]],
    total: float,
    depth: int,
) -> TimeNode:
    value = sum(part for _, part in found)
    below: dict[Step, list[tuple[tuple[Step, ...], float]]] = defaultdict(list)
    for path, part in found:
        if len(path) > depth:
            below[path[depth]].append((path, part))
    ranked = sorted(below.items(), key=lambda item: (-sum(part for _, part in item[1]), str(item[0])))
    children = [_node(name, parts, total, depth + 1) for name, parts in ranked[:_MOST_CHILDREN]]
    rest = [part for _, parts in ranked[_MOST_CHILDREN:] for _, part in parts]
    if rest:
        left = sum(rest)
        share = left / total if total else 0.0
        name = str(len(ranked) - _MOST_CHILDREN)
        children.append(TimeNode("others", name, left, share, None, ()))
    kind, name, template = step
    return TimeNode(kind, name, value, value / total if total else 0.0, template, tuple(children))


def history_step(begun_us: int, ended_us: int) -> tuple[int, int]:
    """Return how many seconds each step of the history takes, and how many steps there are."""
    length = max(1, -(-ended_us // 1_000_000) - begun_us // 1_000_000)
    step = next((step for step in _STEPS_S if length / step <= _MOST_STEPS), _STEPS_S[-1])
    return step, -(-length // step)


def history_places(times_us: Sequence[int], begun_us: int, ended_us: int) -> list[int]:
    """Return the step of the history that each sample belongs to."""
    step, steps = history_step(begun_us, ended_us)
    start_s = begun_us // 1_000_000
    return [min(steps - 1, max(0, (time // 1_000_000 - start_s) // step)) for time in times_us]


def history(
    rows: Iterable[Row], places: Sequence[int], share_of: Sequence[float], begun_us: int, ended_us: int
) -> History:
    """Return busy sessions by class over time, in steps of whole seconds: the average of their samples.

    `rows` have their step (`place`); `places` and `share_of` give that of each sample and its time.
    """
    step, steps = history_step(begun_us, ended_us)
    stood = [0.0] * steps
    for place, share in zip(places, share_of, strict=True):
        stood[place] += share
    sums: dict[str, list[float]] = defaultdict(lambda: [0.0] * steps)
    for row in rows:
        sums[wait_class(row)][row["place"]] += row["weight"]
    layers = [
        ActivityLayer(name, tuple(value / of if of else 0.0 for value, of in zip(values, stood, strict=True)))
        for name, values in sorted(sums.items(), key=lambda item: (-sum(item[1]), item[0]))
    ]
    return History(begun_us // 1_000_000 * 1_000_000, step, tuple(layers))
