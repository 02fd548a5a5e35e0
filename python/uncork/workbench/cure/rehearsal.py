"""Execute each change once on a scratch database: does it work, how long does it take, do plans change?"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from uncork.engines.copying.scratch import ScratchDatabase
from uncork.errors import SetupError
from uncork.experiment.cure.arms import Arm
from uncork.model.database.workload import CapturedStatement
from uncork.profile.parameter_values import with_values
from uncork.profile.plans.tree import plan_shape, plan_tree

_SETS: Final = 5
"""Sets of values with which a statement is planned: common, rare and extreme ones choose other plans."""


@dataclass(frozen=True, slots=True)
class Rehearsed:
    """A change that was executed once, alone.

    `error` is the server's words if it failed, else empty. `build_ns` and `undo_ns` are how long the change
    and its reversal took, `size` by how many bytes the database grew. `planned` are the templates whose plan
    it changes, of those that can be planned.
    """

    error: str = ""
    build_ns: int = 0
    undo_ns: int | None = None
    size: int = 0
    planned: frozenset[int] = frozenset()


def rehearse(
    conninfo: str, arms: Sequence[Arm], statements: Sequence[CapturedStatement], timeout_s: float
) -> Mapping[str, Rehearsed]:
    """Execute each change on a copy of the database at `conninfo`, of which nothing remains.

    Plans are only estimated, never executed. A change that takes longer than `timeout_s` has failed.

    Raises:
        ConnectError: if the server cannot be reached.
        SetupError: if it refuses to copy the database.
    """
    found = {}
    for arm in arms:
        with ScratchDatabase(conninfo) as scratch:
            found[arm.name] = _tried(scratch, arm, statements, timeout_s)
    return found


def _tried(
    scratch: ScratchDatabase, arm: Arm, statements: Sequence[CapturedStatement], timeout_s: float
) -> Rehearsed:
    before, size = _plans(scratch, statements, {}), scratch.size()
    scratch.limit(timeout_s)
    begun = time.monotonic_ns()
    try:
        scratch.set(arm.settings)
        if arm.setup:
            scratch.execute(arm.setup)
        built = time.monotonic_ns() - begun
    except SetupError as error:
        return Rehearsed(error=str(error))
    grown = scratch.size() - size
    after = _plans(scratch, statements, arm.statements, arm.settings)
    if any(number in before and number not in after for number in arm.statements):
        return Rehearsed(error="the server refuses the new statement")
    changed = {number for number, shapes in after.items() if shapes != before.get(number)}
    return Rehearsed("", built, _undone(scratch, arm), grown, frozenset(changed))


def _undone(scratch: ScratchDatabase, arm: Arm) -> int | None:
    """Revert a change, and return the nanoseconds; None if nothing reverts it, or that fails."""
    if not arm.undo or not arm.setup:
        return None
    begun = time.monotonic_ns()
    with suppress(SetupError):
        for statement in filter(None, (word.strip() for word in arm.undo.split(";\n"))):
            scratch.execute(statement)
        return time.monotonic_ns() - begun
    return None


def _plans(
    scratch: ScratchDatabase,
    statements: Sequence[CapturedStatement],
    texts: Mapping[int, str],
    chosen: Collection[str] = (),
) -> dict[int, tuple[Any, ...]]:
    """Return the shapes of each statement's plans, by template; `texts` replace the statements' own.

    Each statement runs with the settings of its role; settings `chosen` for the session take precedence.
    """
    found = {}
    for statement in statements:
        text = texts.get(statement.template, statement.sql)
        settings = {name: value for name, value in statement.settings.items() if name not in chosen}
        shapes = [
            shape for values in statement.sets[:_SETS] if (shape := _shape(scratch, text, values, settings))
        ]
        if shapes:
            found[statement.template] = tuple(shapes)
    return found


def _shape(
    scratch: ScratchDatabase, text: str, values: Sequence[str | None], settings: Mapping[str, str]
) -> tuple[Any, ...]:
    """Return the shape of a plan with values; empty if there is no plan."""
    try:
        statement = with_values(text, dict(enumerate(values, start=1)), scratch.literal)
    except ValueError:  # the grammar of another version of PostgreSQL
        return ()
    output = scratch.plan(statement, settings)
    tree = None if output is None else plan_tree(output)
    return () if tree is None else plan_shape(tree)
