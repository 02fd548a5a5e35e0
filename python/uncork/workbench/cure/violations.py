"""Leave out captured values with which a statement violates a constraint on the copy, and count them.

Drawn values can name a row that others refer to, and a copy that was cut lacks rows that a statement needs.
One such error would end the measurement of everything beside it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from uncork.engines.copying.scratch import ScratchDatabase
from uncork.errors import SetupError
from uncork.model.database.missing import Missing
from uncork.model.database.workload import CapturedStatement, CapturedWorkload, NotCaptured
from uncork.model.template_words import inline_statement
from uncork.profile.parameter_values import with_values

__all__ = ["leave_out", "without_violations"]

_LONGEST_S: Final = 30.0
"""Time after which no further statement is executed."""
_STATEMENT_S: Final = 5.0

Values = tuple[str | None, ...]


def without_violations(
    conninfo: str, workload: CapturedWorkload
) -> tuple[CapturedWorkload, tuple[Missing, ...]]:
    """Return a workload without the sets of values that violate a constraint, and what was left out.

    All statements that change rows are executed on a copy of the database at `conninfo`, of which nothing
    remains. If the server refuses to copy it, the workload stays as it is. A statement whose sets all violate
    a constraint is not captured.

    Raises:
        ConnectError: if the server cannot be reached.
    """
    changing = [one for one in workload.statements if one.changes]
    found: dict[int, Mapping[Values, str]] = {}
    if changing:
        begun = time.monotonic()
        with suppress(SetupError), ScratchDatabase(conninfo) as scratch:
            scratch.limit(_STATEMENT_S)
            for one in changing:
                if time.monotonic() - begun < _LONGEST_S:
                    found[one.template] = _violations(scratch, one)
    return leave_out(workload, found)


def _violations(scratch: ScratchDatabase, one: CapturedStatement) -> Mapping[Values, str]:
    """Return the server's words about each set of values that violates a constraint."""
    sets = list(dict.fromkeys(one.sets))
    try:
        texts = [with_values(one.sql, dict(enumerate(each, start=1)), scratch.literal) for each in sets]
    except ValueError:  # the grammar of another version of PostgreSQL
        return {}
    words = scratch.violations(texts)
    return {values: each for values, each in zip(sets, words, strict=True) if each}


def leave_out(
    workload: CapturedWorkload, violations: Mapping[int, Mapping[Values, str]]
) -> tuple[CapturedWorkload, tuple[Missing, ...]]:
    """Return a workload without some sets of values, by template, and how many were left out. Pure."""
    kept: list[CapturedStatement] = []
    missing = list(workload.missing)
    counted: list[Missing] = []
    for one in workload.statements:
        words = violations.get(one.template, {})
        sets = tuple(values for values in one.sets if values not in words)
        if not words or len(sets) == len(one.sets):
            kept.append(one)
            continue
        first = next(iter(words.values()))
        if not sets:
            reason = f'with all captured values, it violates a constraint on the copy: "{first}"'
            missing.append(NotCaptured(one.template, one.sql, reason, one.share))
            continue
        kept.append(replace(one, sets=sets))
        left = len(one.sets) - len(sets)
        counted.append(
            Missing(
                f"{left} of {len(one.sets)} sets of values of {inline_statement(one.sql)}",
                f'they violate a constraint on the copy ("{first}"), so they are not measured',
                "",
            )
        )
    return replace(workload, statements=tuple(kept), missing=tuple(missing)), tuple(counted)
