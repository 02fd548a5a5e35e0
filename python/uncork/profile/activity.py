"""Compute where a server's time goes from samples of its working and waiting sessions. Pure.

Each sample represents the time from halfway to the previous sample to halfway to the next. The first one
starts at the beginning of the watch, and the last one reaches to its end. So a late or missed sample leaves
no gap, and all times add up to the length of the watch. The sessions in each sample, weighted by its time,
give the average active sessions, as in Oracle's ASH.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Literal, TypeVar

from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.results.database import ActivityLayer, Busiest, History, TimeNode, Usage

Row = Mapping[str, Any]
"""Processes at the same place in the tree; `weight` is their time in all samples, in microseconds."""
Key = TypeVar("Key", bound=Hashable)
Step = tuple[Literal["process", "class", "event", "template", "application"], str, int | None]

CLIENT: Final = "client backend"
_WORKER: Final = "parallel worker"
_MOST_CHILDREN: Final = 20
"""The most named children of a node; the rest are summed up as others."""
_READS: Final = frozenset({"AioIoCompletion"})
"""Since PostgreSQL 18, a session can wait for other processes that read for it; this counts as I/O too."""
_OF_FILES: Final = ("AioIo", "BufFile", "DataFile")
"""Beginnings of the wait events whose time track_io_timing measures; it measures no WAL."""
_BUSIEST_S: Final = 10
_LEAST_HISTORY_S: Final = 12
_STEPS_S: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600)
_MOST_STEPS: Final = 120


def weights(times_us: Sequence[int], begun_us: int, ended_us: int) -> list[float]:
    """Return how many microseconds each sample represents; their sum is the whole watch. Times must rise."""
    if not times_us:
        return []
    middles = [(before + after) / 2 for before, after in pairwise(times_us)]
    bounds = [float(min(begun_us, times_us[0])), *middles, float(max(ended_us, times_us[-1]))]
    return [end - begin for begin, end in pairwise(bounds)]


def wait_class(row: Row) -> str:
    """Return the class of a process's wait event, `CPU` if it works, or `IDLE` if idle in a transaction."""
    if str(row["state"] or "").startswith(IDLE):
        return IDLE
    if row["wait_event"] in _READS:
        return "IO"
    return str(row["wait_class"] or CPU)


def averages(rows: Iterable[Row], key: Callable[[Row], Key], whole: float) -> dict[Key, float]:
    """Return the average number of processes by key, over a watch of `whole` microseconds."""
    sums: dict[Key, float] = defaultdict(float)
    for row in rows:
        sums[key(row)] += row["weight"]
    return {name: value / whole for name, value in sums.items()} if whole else {}


def usage(found: Mapping[str, float], whole: float) -> tuple[Usage, ...]:
    """Return sessions by name with their share of `whole`, all sessions; the most first."""
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    return tuple(Usage(name, value, value / whole if whole else 0.0) for name, value in ranked)


def time_tree(rows: Iterable[Row], whole: float, *, by_process: bool = False) -> TimeNode:
    """Return the time of processes by class, event, template and application.

    With `by_process`, the top level is the kind of process. The children of a node add up to the node; those
    without a name of their own are summed up as others.
    """
    found = averages(rows, lambda row: _path(row, by_process), whole)
    return _node(("all", "", None), list(found.items()), sum(found.values()), 0)


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
    rest = sum(part for _, parts in ranked[_MOST_CHILDREN:] for _, part in parts)
    if len(ranked) > _MOST_CHILDREN:
        name, share = str(len(ranked) - _MOST_CHILDREN), rest / total if total else 0.0
        children.append(TimeNode("others", name, rest, share, None, ()))
    kind, name, template = step
    return TimeNode(kind, name, value, value / total if total else 0.0, template, tuple(children))


def file_waits(tree: TimeNode) -> float:
    """Return the share of a tree's time in which sessions waited for files of tables and indexes."""
    events = (event for node in tree.children if node.name == "IO" for event in node.children)
    return sum(event.share for event in events if event.name.startswith(_OF_FILES))


def busiest(found: History) -> Busiest | None:
    """Return when most sessions were busy, in a sixth of the history, but at most `_BUSIEST_S` seconds.

    A longer step of the history is taken instead. None if the history is shorter than `_LEAST_HISTORY_S`.
    """
    if not found.layers:
        return None
    totals = [sum(values) for values in zip(*(layer.sessions for layer in found.layers), strict=True)]
    length_s = len(totals) * found.step_s
    if length_s < _LEAST_HISTORY_S:
        return None
    many = max(1, min(_BUSIEST_S, length_s // 6) // found.step_s)
    sums = [round(sum(totals[place : place + many]) / many, 9) for place in range(len(totals) - many + 1)]
    # Of equally busy spans the last one begins with the burst.
    place = len(sums) - 1 - sums[::-1].index(max(sums))
    step_us = found.step_s * 1_000_000
    return Busiest(found.start_us + place * step_us, many * found.step_s, sums[place])


def history_step(begun_us: int, ended_us: int) -> tuple[int, int]:
    """Return the length of a step of the history in seconds, and the number of steps."""
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
    """Return the average number of busy sessions by class over time, in steps of whole seconds.

    `rows` have their step in `place`. `places` and `share_of` are the step and the time of each sample.
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
