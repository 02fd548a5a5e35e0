"""Compare two executed plans of a statement: another plan, the same plan with other statistics, or no change.

A plan is given by its *shape* (nodes, relations and conditions, without numbers) and by EXPLAIN's text. In
the text, each node has the planner's estimates (cost, rows, width) and the actual counts (rows, loops).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Final, Literal

from uncork.model.records import Record
from uncork.model.units import format_count

_NODE: Final = re.compile(
    r"^(?P<indent> *)(?:-> +)?(?P<name>\S.*?) +\(cost=(?P<startup>[\d.]+)\.\.(?P<cost>[\d.]+) "
    r"rows=(?P<rows>\d+) width=(?P<width>\d+)\)"
    r"(?: \(actual (?:time=[\d.]+\.\.[\d.]+ )?rows=(?P<actual>[\d.]+) loops=(?P<loops>\d+)\))?"
)
_OF: Final = re.compile(r" (?:using|on) ")
_NEAR: Final = 0.01
"""Estimates and costs that differ by a smaller fraction count as equal up to rounding."""
_SAMPLED: Final = 1.25
"""The largest ratio of two estimates that sampling alone explains.

ANALYZE samples 30 000 rows of a larger table. It estimates a value that one row in a hundred has with a
standard deviation of 6 %, so that two samples of the same table differ by up to this ratio."""


class PlanLine(Record):
    """The line of a node in the text of a plan, without the details below it.

    `cost` is the planner's estimate for the whole node; `rows` and `width` (in bytes) are its estimates for
    one loop. `actual` is the number of rows of all loops, computed from EXPLAIN's average over `loops`; None
    if the node was not executed, or EXPLAIN did not execute the statement. `depth` is the indentation.
    """

    name: str
    depth: int
    cost: float
    rows: int
    width: int
    actual: float | None
    loops: int


def plan_lines(text: str) -> tuple[PlanLine, ...]:
    """Return the nodes of a plan in PostgreSQL's text format, from the top down; none for any other text."""
    found = (_NODE.match(line) for line in text.splitlines())
    return tuple(_node(match) for match in found if match is not None)


def plan_difference(
    before: tuple[str, str], after: tuple[str, str], names: tuple[str, str] = ("baseline", "candidate")
) -> tuple[Literal["changed", "statistics"], str] | None:
    """Compare two plans of one statement, each a shape and a text; return None if nothing differs.

    For a changed plan, the text is a unified diff of the shapes, with `names` as the names of the sides. If
    only estimated or actual numbers differ, the first line of the text describes the largest difference, and
    one line follows for each such node, with both numbers.
    """
    nodes = plan_lines(before[1]), plan_lines(after[1])
    if before[0] != after[0]:
        return "changed", _diff(before[0].splitlines(), after[0].splitlines(), names)
    if [_kind(node) for node in nodes[0]] != [_kind(node) for node in nodes[1]]:
        # The shape does not contain how a node joins or groups, or the direction of a scan.
        return "changed", _diff([node.name for node in nodes[0]], [node.name for node in nodes[1]], names)
    found = [pair for pair in zip(*nodes, strict=True) if _other_numbers(*pair)]
    if not found:
        return None
    lines = [f"{'  ' * other.depth}{other.name}: {_other_numbers(line, other)}" for line, other in found]
    return "statistics", "\n".join([_summary(found), *lines])


def _node(match: re.Match[str]) -> PlanLine:
    loops = int(match["loops"] or 0)
    return PlanLine(
        name=match["name"],
        depth=(len(match["indent"]) + 4) // 6,
        cost=float(match["cost"]),
        rows=int(match["rows"]),
        width=int(match["width"]),
        actual=float(match["actual"]) * loops if match["actual"] is not None else None,
        loops=loops,
    )


def _kind(node: PlanLine) -> str:
    """Return a node's operation without relation and index names, because an alias does not change a plan."""
    return _OF.split(node.name)[0]


def _diff(before: list[str], after: list[str], names: tuple[str, str]) -> str:
    return "\n".join(difflib.unified_diff(before, after, *names, lineterm="", n=99))


def _summary(found: Sequence[tuple[PlanLine, PlanLine]]) -> str:
    """Describe the largest difference: of estimated rows, else actual rows, cost or width.

    If several nodes differ equally, describe the innermost.
    """
    one, other = max(reversed(found), key=lambda pair: times_apart(pair[0].rows, pair[1].rows))
    actual = [pair for pair in found if _other_actual(*pair)]
    if _far(one.rows, other.rows, 1.0):
        sentence = f"{other.name} is expected to return {_rows(other.rows)} rows instead of {_rows(one.rows)}"
        by_chance = not actual and times_apart(one.rows, other.rows) <= _SAMPLED
        return f"{sentence}, a difference that ANALYZE can cause by chance" if by_chance else sentence
    if actual:
        one, other = actual[-1]
        return f"{other.name} returns {_rows(other.actual or 0)} rows instead of {_rows(one.actual or 0)}"
    one, other = max(reversed(found), key=lambda pair: times_apart(pair[0].cost, pair[1].cost))
    if _far(one.cost, other.cost, 0.01):
        return f"the planner estimates the cost of {other.name} at {other.cost:g} instead of {one.cost:g}"
    return f"rows of {other.name} are expected to be {other.width} bytes wide instead of {one.width}"


def _other_numbers(before: PlanLine, after: PlanLine) -> str:
    """Return which numbers of a node differ by more than rounding; an empty string if none do."""
    parts = []
    if _far(before.rows, after.rows, 1.0):
        parts.append(f"estimated rows {_rows(before.rows)} → {_rows(after.rows)}")
    if before.width != after.width:
        parts.append(f"width {before.width} → {after.width} B")
    if _far(before.cost, after.cost, 0.01):
        parts.append(f"cost {before.cost:g} → {after.cost:g}")
    if _other_actual(before, after):
        parts.append(f"actual rows {_rows(before.actual or 0)} → {_rows(after.actual or 0)}")
    elif parts and after.actual is not None:
        parts.append(f"actual rows {_rows(after.actual)}")
    return "; ".join(parts)


def _other_actual(before: PlanLine, after: PlanLine) -> bool:
    """Return whether the actual rows of a node differ. Before PostgreSQL 18, rows per loop are rounded."""
    if before.actual is None or after.actual is None:
        return False
    return _far(before.actual, after.actual, max(1.0, (before.loops + after.loops) / 2))


def _far(one: float, other: float, rounding: float) -> bool:
    return abs(one - other) > max(rounding, _NEAR * max(one, other))


def times_apart(one: float, other: float) -> float:
    """Return the ratio of the larger number of rows to the smaller, each at least 1."""
    return max(one, other, 1.0) / max(min(one, other), 1.0)


def _rows(number: float) -> str:
    return format_count(round(number))
