"""Decide which share of each table is copied, so that the copy fits a number of bytes.

1. A partitioned table and its partitions are one unit. Units are copied whole, the smallest first, while they
   fit in half of the budget.
2. All other units get one common share: `TABLESAMPLE SYSTEM` with a fixed seed chooses their pages, which
   reads only these pages, and chooses the same ones again while the table does not change.
3. Rows that the chosen rows reference by foreign keys are added (`closing`). Their expected number is part of
   the budget: of `N` rows, `r` references that are spread evenly hit `N (1 - exp(-r / N))`. Where references
   form a cycle, such as a table that references itself, they can lead to every row. A part of the budget is
   kept for these, and they are cut when it is used.

Sizes are those of the tables without indexes, which need about as much disk again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from uncork.engines.copying.objects import Constraint, Table

_WHOLE: Final = 0.5
_FOR_CYCLES: Final = 0.3
_STEPS: Final = 40
_ROUNDS: Final = 20
_ROW_BYTES: Final = 100
"""The size of a row, if a table was never analysed."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A table, or a partitioned table with all its partitions. `references` are the units it references."""

    oid: int
    bytes: int
    rows: float
    references: tuple[int, ...] = ()


def roots(tables: Iterable[Table]) -> dict[int, int]:
    """Return for each table the partitioned table at the top of its tree, or itself."""
    parents = {table.oid: table.parents[0] for table in tables if table.bound is not None and table.parents}
    found = {}
    for table in tables:
        top = table.oid
        while top in parents:
            top = parents[top]
        found[table.oid] = top
    return found


def units(tables: Sequence[Table], constraints: Iterable[Constraint]) -> tuple[Unit, ...]:
    """Return the units of tables, with the references of their foreign keys."""
    top = roots(tables)
    sizes = dict.fromkeys(top.values(), 0)
    rows = dict.fromkeys(top.values(), 0.0)
    references: dict[int, list[int]] = {}
    for table in tables:
        sizes[top[table.oid]] += table.bytes
        if table.kind == "r":
            rows[top[table.oid]] += table.rows if table.rows >= 0 else table.bytes / _ROW_BYTES
    for constraint in constraints:
        if (
            constraint.kind == "f"
            and not constraint.derived
            and constraint.table in top
            and constraint.references in top
        ):
            references.setdefault(top[constraint.table], []).append(top[constraint.references])
    return tuple(Unit(oid, sizes[oid], rows[oid], tuple(references.get(oid, ()))) for oid in sizes)


def cyclic(parts: Sequence[Unit]) -> set[tuple[int, int]]:
    """Return the references, each as two units, that are part of a cycle."""
    direct = {part.oid: set(part.references) for part in parts}
    reached: dict[int, set[int]] = {}
    for start in direct:
        found: set[int] = set()
        ahead = [start]
        while ahead:
            new = direct[ahead.pop()] - found
            found |= new
            ahead += new
        reached[start] = found
    return {
        (child, parent) for child, found in direct.items() for parent in found if child in reached[parent]
    }


def shares(parts: Sequence[Unit], budget: int) -> dict[int, float]:
    """Return the share of each unit, 0 to 1, so that the copy is expected to have `budget` bytes at most."""
    if sum(part.bytes for part in parts) <= budget:
        return {part.oid: 1.0 for part in parts}
    whole: set[int] = set()
    used = 0
    for part in sorted(parts, key=lambda part: (part.bytes, part.oid)):
        if used + part.bytes > _WHOLE * budget:
            break
        used += part.bytes
        whole.add(part.oid)
    loose = cyclic(parts)
    if any(child not in whole and parent not in whole for child, parent in loose):
        budget -= int(_FOR_CYCLES * (budget - used))
    parts = [
        replace(part, references=tuple(to for to in part.references if (part.oid, to) not in loose))
        for part in parts
    ]
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _expected(parts, whole, middle) <= budget else (low, middle)
    return {part.oid: 1.0 if part.oid in whole else low for part in parts}


def _expected(parts: Sequence[Unit], whole: set[int], share: float) -> float:
    """Return the bytes that are expected if all units but `whole` have a share, and their references come."""
    chosen: Mapping[int, float] = {part.oid: 1.0 if part.oid in whole else share for part in parts}
    start = dict(chosen)
    for _ in range(_ROUNDS):
        hits = dict.fromkeys(chosen, 0.0)
        for part in parts:
            for other in part.references:
                hits[other] += chosen[part.oid] * part.rows
        chosen = {
            part.oid: 1 - (1 - start[part.oid]) * math.exp(-hits[part.oid] / max(part.rows, 1.0))
            for part in parts
        }
    return sum(chosen[part.oid] * part.bytes for part in parts)
