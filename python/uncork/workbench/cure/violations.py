"""Leave out captured values with which a statement violates a constraint on the copy, or finds no row there.

Drawn values can name a row that others refer to, and a copy that was cut lacks rows that a
statement needs. One such error would end the measurement of everything beside it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final

from uncork.engines.copying.scratch import Executed, ScratchDatabase
from uncork.errors import SetupError
from uncork.model.database.missing import Missing
from uncork.model.database.workload import CapturedStatement, CapturedWorkload, NotCaptured
from uncork.model.template_words import inline_statement
from uncork.profile.parameter_values import with_values
from uncork.profile.workload.literals import array_text
from uncork.profile.workload.matching import matching_rows
from uncork.profile.workload.sets import SETS

_LONGEST_S: Final = 30.0
"""Time after which no further statement is executed."""
_STATEMENT_S: Final = 5.0

_FINDS: Final = re.compile(r"\s*(?:UPDATE|DELETE)\b", re.IGNORECASE)

Values = tuple[str | None, ...]


def without_violations(
    conninfo: str, workload: CapturedWorkload
) -> tuple[CapturedWorkload, tuple[Missing, ...]]:
    """Return a workload without the sets of values that violate a constraint, and what was left out.

    All statements that change rows are executed on a copy of the database at `conninfo`, of which
    nothing remains. If the server refuses to copy it, the workload stays as it is. A statement
    whose sets all violate a constraint is not captured. If an UPDATE or DELETE changes fewer rows
    than on the server, because others changed these rows meanwhile, its values come from rows of
    the copy; if none fit, it is not captured. Raises ConnectError if the server cannot be reached.
    """
    changing = [statement for statement in workload.statements if statement.changes]
    found: dict[int, Mapping[Values, str]] = {}
    chosen: dict[int, CapturedStatement | None] = {}
    if changing:
        begun = time.monotonic()
        with suppress(SetupError), ScratchDatabase(conninfo) as scratch:
            scratch.limit(_STATEMENT_S)
            for statement in changing:
                if time.monotonic() - begun >= _LONGEST_S:
                    break
                executed = _executed(scratch, statement, statement.sets)
                found[statement.template] = {
                    values: each.violation for values, each in executed.items() if each.violation
                }
                rows = {values: each.rows for values, each in executed.items() if each.rows is not None}
                if finds_too_few(statement, rows):
                    chosen[statement.template] = with_matching(statement, rows, _matching(scratch, statement))
    workload, replaced = _replaced(workload, chosen)
    workload, counted = leave_out(workload, found)
    return workload, (*replaced, *counted)


def _executed(
    scratch: ScratchDatabase, statement: CapturedStatement, sets: Iterable[Values]
) -> Mapping[Values, Executed]:
    distinct = list(dict.fromkeys(sets))
    try:
        texts = [
            with_values(statement.sql, dict(enumerate(each, start=1)), scratch.literal) for each in distinct
        ]
    except ValueError:  # the grammar of another version of PostgreSQL
        return {}
    return dict(zip(distinct, scratch.executed(texts), strict=True))


def finds_too_few(statement: CapturedStatement, rows: Mapping[Values, int]) -> bool:
    """Return whether an UPDATE or DELETE changes less than half of the rows of the server's calls. Pure.

    `rows` are the rows that it changed on the copy, by its sets of values.
    """
    if not statement.rows or not rows or _FINDS.match(statement.sql) is None:
        return False
    return sum(rows.values()) / len(rows) < statement.rows / 2


def with_matching(
    statement: CapturedStatement, rows: Mapping[Values, int], others: Sequence[Values]
) -> CapturedStatement | None:
    """Return a statement with values that find rows; None if there are none. Pure.

    `others` are values of rows of the copy. If the server's calls changed less than one row each on
    average, some sets find none, too.
    """
    finding = [*(values for values, many in rows.items() if many), *others]
    if not finding:
        return None
    share = min(1.0, statement.rows or 1.0)
    empty = [values for values, many in rows.items() if not many]
    empty = empty[: round(len(finding) * (1 - share) / share)]
    return replace(statement, sets=(*finding, *empty), origin="rows" if others else statement.origin)


def _matching(scratch: ScratchDatabase, statement: CapturedStatement) -> list[Values]:
    """Return sets of values of rows of the copy's table, with which the statement changes rows."""
    query = matching_rows(statement.sql)
    if query is None:
        return []
    each = max(1, round(statement.rows or 1.0)) if query.arrays else 1
    found = scratch.some_rows(query.sql, SETS * each)
    sets = []
    for place, first in enumerate(range(0, len(found), each)):
        values = list(statement.sets[place % len(statement.sets)])
        for column, number in enumerate(query.numbers):
            own = [row[column] for row in found[first : first + each]]
            values[number - 1] = array_text(own) if number in query.arrays else own[0]
        sets.append(tuple(values))
    return [values for values, done in _executed(scratch, statement, sets).items() if done.rows]


def _replaced(
    workload: CapturedWorkload, chosen: Mapping[int, CapturedStatement | None]
) -> tuple[CapturedWorkload, tuple[Missing, ...]]:
    """Return a workload with chosen values, without the statements that find no row, and what to say."""
    kept: list[CapturedStatement] = []
    missing = list(workload.missing)
    said: list[Missing] = []
    for statement in workload.statements:
        if statement.template not in chosen:
            kept.append(statement)
            continue
        other, rows = chosen[statement.template], f"{statement.rows or 0:.2g}"
        if other is None:
            reason = f"on the copy it changes no row, but a call on the server changes {rows} rows"
            missing.append(NotCaptured(statement.template, statement.sql, reason, statement.share))
            continue
        kept.append(other)
        said.append(
            Missing(
                f"the captured values of {inline_statement(statement.sql)}",
                f"on the copy they find fewer rows than the {rows} of a call on the server, so values of the "
                "copy's rows are measured",
                "",
            )
        )
    return replace(workload, statements=tuple(kept), missing=tuple(missing)), tuple(said)


def leave_out(
    workload: CapturedWorkload, violations: Mapping[int, Mapping[Values, str]]
) -> tuple[CapturedWorkload, tuple[Missing, ...]]:
    """Return a workload without some sets of values, by template, and how many were left out. Pure."""
    kept: list[CapturedStatement] = []
    missing = list(workload.missing)
    counted: list[Missing] = []
    for statement in workload.statements:
        words = violations.get(statement.template, {})
        sets = tuple(values for values in statement.sets if values not in words)
        if not words or len(sets) == len(statement.sets):
            kept.append(statement)
            continue
        first = next(iter(words.values()))
        if not sets:
            reason = f'with all captured values, it violates a constraint on the copy: "{first}"'
            missing.append(NotCaptured(statement.template, statement.sql, reason, statement.share))
            continue
        kept.append(replace(statement, sets=sets))
        left = len(statement.sets) - len(sets)
        counted.append(
            Missing(
                f"{left} of {len(statement.sets)} sets of values of {inline_statement(statement.sql)}",
                f'they violate a constraint on the copy ("{first}"), so they are not measured',
                "",
            )
        )
    return replace(workload, statements=tuple(kept), missing=tuple(missing)), tuple(counted)
