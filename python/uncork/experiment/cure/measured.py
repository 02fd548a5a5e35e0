"""Choose the captured statements with which changes are measured: those with most of the time. Pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.model.database.workload import CapturedStatement, CapturedWorkload

COVERED: Final = 0.98
"""Part of the time of all statements that a change can touch from which on no further one is measured."""
MOST_STATEMENTS: Final = 20
"""Statements of one experiment at most. A verdict needs several rounds of each of them."""
_WRITE: Final = 10.0
"""Weight of the time of a statement that writes to a changed table: an index can make it several times
slower, so a part of the time that is small now may not stay small."""


def measured_statements(
    arms: Sequence[Arm], workload: CapturedWorkload, own: Collection[int]
) -> tuple[CapturedStatement, ...]:
    """Return the statements with which changes are measured together.

    The statements of the finding, with the templates `own`, come first, the costliest before the others. The
    others that a change can touch follow, until the rest has 2 % of the time of all of them. The time of a
    statement that writes to a changed table counts ten times.
    """
    touched = [
        statement
        for statement in workload.statements
        if statement.template in own or any(arm.touches(statement) for arm in arms)
    ]
    weights = {statement.template: _weight(statement, arms) for statement in touched}
    order = sorted(touched, key=lambda one: (one.template not in own, -weights[one.template]))
    enough = COVERED * math.fsum(weights.values())
    found: list[CapturedStatement] = []
    covered = 0.0
    for statement in order[:MOST_STATEMENTS]:
        if found and covered >= enough:
            break
        found.append(statement)
        covered += weights[statement.template]
    return tuple(found)


def _weight(statement: CapturedStatement, arms: Sequence[Arm]) -> float:
    time = statement.calls_per_hour * statement.mean_ns
    writes = statement.changes and any(
        (arm.setup and not arm.tables) or set(arm.tables) & set(statement.tables) for arm in arms
    )
    return _WRITE * time if writes else time
