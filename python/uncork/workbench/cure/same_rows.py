"""Execute a batch row by row and at once on a scratch database, and compare the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uncork.engines.copying.answers import LeftBehind, ScratchAnswers, unstable_columns
from uncork.errors import SetupError
from uncork.experiment.cure.loops import Batches
from uncork.experiment.cure.many_rows import ManyRows
from uncork.experiment.spec.batches import array_text
from uncork.experiment.spec.sqltext import numbers_in
from uncork.model.units import count_words
from uncork.profile.parameter_values import with_values

_MOST: Final = 10
"""Batches of a statement that reads whose rows are compared."""


@dataclass(frozen=True, slots=True)
class Compared:
    """How the rows of a batch differ from those of single statements; `error` is empty if they do not.

    `compared` is the number of sets of values. `left_out` are columns that differ each time, such as times.
    """

    error: str
    compared: int = 0
    left_out: frozenset[str] = frozenset()


def compare_rows(scratch: ScratchAnswers, many: ManyRows, batches: Batches) -> Compared:
    """Compare a statement for many rows with the captured one, over the captured sets of values.

    Statements that read are compared over up to ten batches, by the rows that they return. Statements that
    change rows are compared over one batch, by all rows of the tables that they change, also by triggers.
    """
    sets, rows = batches.sets, batches.rows
    groups = [sets[at : at + rows] for at in range(0, len(sets), rows)]
    try:
        if batches.statement.changes:
            return _left_otherwise(scratch, many, batches, groups[0])
        for group in groups[:_MOST]:
            single, together = _texts(scratch, many, batches, group)
            expected, found = scratch.returned(single), scratch.returned([together], many.added)
            if expected != found:
                return Compared(_difference(expected.total(), found.total()))
    except SetupError as refused:
        return Compared(f"It failed on the copy: {refused}")
    return Compared("", sum(map(len, groups[:_MOST])))


def _texts(
    scratch: ScratchAnswers, many: ManyRows, batches: Batches, group: Sequence[Sequence[str | None]]
) -> tuple[list[str], str]:
    """Return the statements with values: one for each set, and the one for all of them."""
    sql = batches.statement.sql.strip().rstrip(";")
    single = [with_values(sql, dict(enumerate(each, start=1)), scratch.literal) for each in group]
    arrays = {number: array_text([each[number - 1] for each in group]) for number in numbers_in(many.sql)}
    return single, with_values(many.sql, arrays, scratch.literal)


def _left_otherwise(
    scratch: ScratchAnswers, many: ManyRows, batches: Batches, group: Sequence[Sequence[str | None]]
) -> Compared:
    single, together = _texts(scratch, many, batches, group)
    unstable = unstable_columns(scratch.left_behind(single), scratch.left_behind(single))
    expected, found = scratch.left_behind(single, unstable), scratch.left_behind([together], unstable)
    left_out = frozenset(f"{table}.{column}" for table, column in unstable)
    return Compared(_difference_of(expected, found), len(group), left_out)


def _difference_of(expected: LeftBehind, found: LeftBehind) -> str:
    if expected.rows == found.rows:
        return ""
    differing = sorted(
        name for name in {*expected.rows, *found.rows} if expected.rows.get(name) != found.rows.get(name)
    )
    return f"It leaves other rows in {', '.join(differing)} than the single statements"


def _difference(expected: int, found: int) -> str:
    if expected != found:
        return f"It returns {count_words(found, 'row')}, but the single statements return {expected}"
    return "It returns other rows than the single statements"
