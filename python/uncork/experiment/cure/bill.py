"""What a change saves over the captured workload: ratios of statements become seconds per hour. Pure.

For a statement with rate r (calls per hour), time b (seconds) and measured ratio ρ of its mean::

    saved = r · b · (1 - ρ)

Ratios are measured on the copy; rates and times are those of the source. A ratio carries over to a server
with other hardware better than a difference of times does, and with the source's times no change saves more
than the bill says the statements cost.

The client's round trip and the commit are in both times of a ratio, but not in the server's mean time. They
make the ratio of a short statement too close to 1. For a gain this is cautious. A loss would look too small,
and many short writes are what an index slows down. A loss therefore counts with the longer of both times:
the source's mean, or the mean on the copy, from which ``b · (ρ - 1)`` is the measured difference itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import Net, StatementEffect
from uncork.stats.combined import Bounded, total

_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Account:
    """What a change saves. `net` is None if no statement was measured.

    `unknown` is the part of the captured time, 0 to 1, of statements that the change can touch and that have
    no interval; `unmeasured` are their templates. Statements that it cannot touch count as unchanged.
    """

    net: Net | None
    unknown: float
    unmeasured: tuple[int, ...]


def account_of(arm: Arm, effects: Sequence[StatementEffect], workload: CapturedWorkload) -> Account:
    """Return what a change saves over a workload, in seconds of sessions' time per hour.

    The interval has the confidence of the effects' intervals, because the statements were measured
    independently (`stats.combined`).
    """
    by_template = {effect.template: effect for effect in effects}
    parts: list[Bounded] = []
    unmeasured: list[CapturedStatement] = []
    before = 0.0
    for statement in workload.statements:
        effect = by_template.get(statement.template)
        saved = None if effect is None else saved_by(effect, statement.mean_ns)
        if saved is not None:
            parts.append(saved)
            before += statement.calls_per_hour * statement.mean_ns / _NS
        elif arm.touches(statement):
            unmeasured.append(statement)
    whole = sum(statement.calls_per_hour * statement.mean_ns for statement in workload.statements)
    unknown = sum(statement.calls_per_hour * statement.mean_ns for statement in unmeasured)
    net = None
    if parts:
        found = total(parts)
        net = Net(found.estimate, found.low, found.high, before)
    return Account(
        net, unknown / whole if whole else 0.0, tuple(statement.template for statement in unmeasured)
    )


def saved_by(effect: StatementEffect, source_ns: float) -> Bounded | None:
    """Return the seconds per hour saved on a statement with this mean on the source; None if not measured."""
    if effect.ratio is None or effect.low is None or effect.high is None:
        return None
    longer_ns = max(source_ns, effect.before_ns or 0.0)

    def saved(ratio: float) -> float:
        counted_ns = source_ns if ratio <= 1.0 else longer_ns
        return effect.calls_per_hour * counted_ns * (1.0 - ratio) / _NS

    return Bounded(saved(effect.ratio), saved(effect.high), saved(effect.low))


# ---- the statements with which changes are measured ----


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
