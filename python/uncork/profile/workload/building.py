"""Build the captured workload: statements with the values of their parameters, and what is missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from random import Random
from typing import Final

from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.workload import (
    CapturedStatement,
    CapturedWorkload,
    NotCaptured,
    SampledExpression,
    SampledRows,
    ValueOrigin,
)
from uncork.model.records import Record
from uncork.profile.shapes.nodes import kind_of, parsed
from uncork.profile.statement_parts import logged_values
from uncork.profile.typed_parameters import rewrite_typed_parameters
from uncork.profile.workload.known import Known
from uncork.profile.workload.literals import (
    Constant,
    FoundValue,
    array_text,
    as_arrays,
    found_values,
    inlined,
)
from uncork.profile.workload.roles import TakenApart, take_apart
from uncork.profile.workload.sets import SETS, CannotCapture, drawn_sets, replaced_keys, undrawable
from uncork.profile.workload.together import Together, drawn_together

_ENOUGH: Final = 3
"""Sets of real values that stand for the others. Fewer are completed with drawn sets if possible."""
_NEARLY: Final = 0.5
"""Part of the rows of LIMIT, on average, below which it rarely left any out."""
_ROW_NS: Final = 20.0
"""Time per row of a table that a scan takes at least: 30 to 60 ns to compare numbers, more for texts."""
_COMMANDS: Final = frozenset({"select_stmt", "insert_stmt", "update_stmt", "delete_stmt", "merge_stmt"})


class Execution(Record):
    """A text of one execution, and its parameters as a log has them (``$1 = '5', $2 = NULL``)."""

    text: str
    parameters: str = ""


class SeenStatement(Record):
    """A template that a server was seen to execute.

    `text` is the template with ``?``, `sql` the statement in pg_stat_statements with ``$1``, empty if
    unknown. `calls`, `execution_ns` (their total) and `rows` are what was counted; without `calls` its rate
    is unknown. `executed` are executions in logs, `seen` texts of sessions. `reason` says why it cannot be
    captured, if that is known already.
    """

    template: int
    text: str
    sql: str
    calls: int | None
    execution_ns: float
    rows: int | None = None
    executed: tuple[Execution, ...] = ()
    seen: tuple[str, ...] = ()
    reason: str = ""


class _Partial(Record):
    """The values that one text has of a template's parameters, by number."""

    values: Mapping[int, str | None]
    written: Mapping[int, str] = field(default_factory=dict)
    bound: bool = False


def build_workload(
    statements: Sequence[SeenStatement], known: Known, seconds: float, sessions: float, seed: int = 1
) -> CapturedWorkload:
    """Return the workload: statements that can be sent again, and the others with the reason.

    `seconds` is the length of the watch, and `sessions` the average number of busy sessions.
    """
    whole = sum(statement.execution_ns for statement in statements) or 1.0
    captured: list[CapturedStatement] = []
    missing: list[NotCaptured] = []
    for statement in sorted(statements, key=lambda statement: (-statement.execution_ns, statement.template)):
        share = statement.execution_ns / whole
        try:
            captured.append(_captured(statement, known, seconds, share, seed))
        except CannotCapture as reason:
            missing.append(
                NotCaptured(statement.template, statement.sql or statement.text, str(reason), share)
            )
    return CapturedWorkload(tuple(captured), tuple(missing), seconds, sessions)


def columns_of(statements: Sequence[SeenStatement], known: Known) -> tuple[ColumnFacts, ...]:
    """Return the columns from whose statistics values may be drawn."""
    columns = _column_names(known)
    found: dict[tuple[str, str], ColumnFacts] = {}
    for statement in statements:
        apart = (
            take_apart(rewrite_typed_parameters(as_arrays(statement.sql)), columns) if statement.sql else None
        )
        for parameter in () if apart is None else apart.parameters:
            column = known.column(parameter)
            if column is not None:
                found[column.column.table, column.column.name] = column.column
    return tuple(found.values())


def samples_of(statements: Sequence[SeenStatement], known: Known) -> tuple[SampledExpression, ...]:
    """Return the expressions of which rows have to be read, because nothing else has their values.

    The costliest statements come first.
    """
    found: dict[SampledExpression, None] = {}
    for apart, _, _ in _costliest_first(statements, known):
        for parameter in apart.parameters:
            wanted = known.wanted(parameter) if parameter.role != "stored" else None
            pattern = parameter.role == "pattern" and parameter.shape == "value"
            if wanted is not None and (pattern or undrawable(parameter, known)):
                found[wanted] = None
    return tuple(found)


def rows_of(statements: Sequence[SeenStatement], known: Known) -> tuple[SampledRows, ...]:
    """Return the rows that have to be read, because they give values of several parameters together.

    The costliest statements come first. A statement whose values were seen needs none.
    """
    found: dict[SampledRows, None] = {}
    for apart, executed, seen in _costliest_first(statements, known):
        numbers = [parameter.number for parameter in apart.parameters]
        if any(len(set(_whole(partials, numbers))) >= _ENOUGH for partials in (executed, seen)):
            continue
        found.update((group.sampled, None) for group in drawn_together(apart, known))
    return tuple(found)


def _column_names(known: Known) -> dict[str, list[str]]:
    return {name: [column.name for column in found] for name, found in known.catalogue.columns.items()}


def _captured(
    statement: SeenStatement, known: Known, seconds: float, share: float, seed: int
) -> CapturedStatement:
    """Return a statement that can be sent again; raises CannotCapture if it cannot."""
    template = _text(statement)
    calls = statement.calls or 0
    apart, executed, seen = _understood(template, statement, known)
    if apart is None:
        raise CannotCapture("the grammar rejects its text")
    keys = replaced_keys(apart, known)
    _check_keys(apart, known)
    together = _read_together(apart, known)
    cannot = {
        parameter.number: reason
        for parameter in apart.parameters
        if not any(parameter.number in group.places for group in together)
        and (reason := undrawable(parameter, known))
    }
    fixed = {**_fixed([*executed, *seen], cannot), **keys}
    if not apart.tables and not known.is_own(apart.functions):  # SELECT $1, whose value decides nothing
        fixed = {parameter.number: "1" for parameter in apart.parameters} | fixed
    sql, order = inlined(as_arrays(template), fixed)
    rows = None if statement.rows is None else statement.rows / calls
    apart = replace(apart, limited=apart.limited and _ends(apart, fixed, rows))
    chance = Random(f"{seed} {template}")
    constant = {
        number: value
        for number, value in ([*executed, *seen][0].values if executed or seen else {}).items()
        if number in fixed
    }
    by_function = known.changes_rows(apart.functions)
    largest = max((known.rows.get(known.table(name), 0.0) for name in apart.tables), default=0.0)
    scans = largest > 0 and statement.execution_ns / calls > _ROW_NS * largest
    sets, origin = _sets(
        order, executed, seen, cannot, apart, known, rows, chance, constant, together, scans=scans
    )
    return CapturedStatement(
        template=statement.template,
        sql=rewrite_typed_parameters(sql),
        sets=sets,
        origin=origin,
        calls_per_hour=calls / seconds * 3600.0,
        mean_ns=statement.execution_ns / calls,
        share=share,
        tables=tuple(dict.fromkeys(known.table(name) for name in apart.tables)),
        changes=apart.changes or by_function,
        rows=rows,
        by_function=by_function,
    )


def _ends(apart: TakenApart, fixed: Mapping[int, str], rows: float | None) -> bool:
    """Return whether LIMIT may leave rows out; it does not if calls return fewer rows than it allows."""
    allowed = [fixed.get(parameter.number, "") for parameter in apart.parameters if parameter.role == "limit"]
    most = [int(text) for text in allowed if text.isdigit()]
    return rows is None or not most or rows >= _NEARLY * max(most)


def _costliest_first(
    statements: Sequence[SeenStatement], known: Known
) -> Iterator[tuple[TakenApart, list[_Partial], list[_Partial]]]:
    """Yield the statements that can be taken apart, with the values of their executions and texts."""
    for statement in sorted(statements, key=lambda statement: (-statement.execution_ns, statement.template)):
        try:
            apart, executed, seen = _understood(_text(statement), statement, known)
        except CannotCapture:
            continue
        if apart is not None and apart.parameters:
            yield apart, executed, seen


def _understood(
    template: str, statement: SeenStatement, known: Known
) -> tuple[TakenApart | None, list[_Partial], list[_Partial]]:
    """Return a statement taken apart, None if that is impossible, and the values of its executions and texts.

    Expressions have the constants that the application always writes, such as the key of a document.
    """
    apart = take_apart(rewrite_typed_parameters(as_arrays(template)), _column_names(known))
    executed = _partials(template, statement.executed)
    seen = _partials(template, [Execution(text) for text in statement.seen])
    if apart is None:
        return None, executed, seen
    others = {parameter.number: "" for parameter in apart.parameters if parameter.role == "other"}
    fixed = _fixed([*executed, *seen], others)
    parameters = tuple(
        replace(parameter, expression=inlined(parameter.expression, fixed)[0])
        if "$" in parameter.expression
        else parameter
        for parameter in apart.parameters
    )
    return replace(apart, parameters=parameters), executed, seen


def _text(statement: SeenStatement) -> str:
    """Return the text of a statement with parameters; raises CannotCapture if there is none to send."""
    text = (
        statement.sql
        or next((execution.text for execution in statement.executed), "")
        or next(iter(statement.seen), "")
    )
    if statement.reason:
        raise CannotCapture(statement.reason)
    if not _is_statement(text or re.sub(r"\?", "1", statement.text)):
        raise CannotCapture("it is a utility statement, or the grammar rejects its text")
    if not text:
        raise CannotCapture("its text is unknown: pg_stat_statements has none, and no execution was seen")
    if not statement.calls:
        raise CannotCapture("nothing counted its executions: there is no pg_stat_statements, and no log")
    return text


def _is_statement(text: str) -> bool:
    tree = parsed(text.strip().rstrip(";"))
    return tree is not None and len(tree.stmts) == 1 and kind_of(tree.stmts[0].stmt) in _COMMANDS


def _check_keys(statement: TakenApart, known: Known) -> None:
    """Raise CannotCapture if an UPDATE stores a value in a unique key, so that it cannot be sent again."""
    for parameter in statement.parameters:
        if parameter.role == "stored" and not statement.target:
            for table in map(known.table, parameter.tables):
                if (parameter.column,) in known.unique.get(table, ()):
                    raise CannotCapture(
                        f"it changes {table}.{parameter.column}, which is unique: other rows have "
                        "the drawn values"
                    )


def _partials(template: str, executions: Sequence[Execution]) -> list[_Partial]:
    """Return the values that texts of a template have; texts of another statement are left out."""
    found = []
    for execution in executions:
        values = found_values(template, execution.text)
        if values is None:
            continue
        logged = logged_values(execution.parameters)
        resolved = {number: _resolved(value, logged) for number, value in values.items()}
        found.append(
            _Partial(
                {number: value[0] for number, value in resolved.items() if value is not None},
                {number: value.written for number, value in values.items() if isinstance(value, Constant)},
                any(isinstance(value, int) for value in values.values()),
            )
        )
    return found


def _resolved(value: FoundValue, logged: Mapping[int, str | None]) -> tuple[str | None] | None:
    """Return the value in a tuple, because it may be NULL; None if the log does not have it."""
    if isinstance(value, Constant):
        return (value.value,)
    if isinstance(value, int):
        return (logged[value],) if value in logged else None
    parts = [_resolved(part, logged) for part in value]
    known = [part[0] for part in parts if part is not None]
    return (array_text(known),) if len(known) == len(parts) else None


def _fixed(partials: Sequence[_Partial], cannot: Mapping[int, str]) -> dict[int, str]:
    """Return the constants that the application writes into the statement, by number.

    A text with parameters (``$1``) has a constant where the application never passes a value. In other texts,
    a constant is one only if it cannot be drawn, and is the same in several texts.
    """
    if not partials:
        return {}
    bound = any(partial.bound for partial in partials)
    found = {}
    for number, written in partials[0].written.items():
        if all(partial.written.get(number) == written for partial in partials) and (
            bound or (number in cannot and len(partials) > 1)
        ):
            found[number] = written
    return found


def _sets(
    order: Sequence[int],
    executed: Sequence[_Partial],
    seen: Sequence[_Partial],
    cannot: Mapping[int, str],
    statement: TakenApart,
    known: Known,
    rows: float | None,
    chance: Random,
    constant: Mapping[int, str | None],
    together: Sequence[Together],
    *,
    scans: bool,
) -> tuple[tuple[tuple[str | None, ...], ...], ValueOrigin]:
    """Return sets of values in the order of $1, $2, ... with their origin."""
    if not order:
        return ((),), "none"
    real: list[tuple[str | None, ...]] = []
    origin: ValueOrigin = "executed"
    sources: tuple[tuple[Sequence[_Partial], ValueOrigin], ...] = ((executed, "executed"), (seen, "seen"))
    for partials, source in sources:
        whole = _whole(partials, order)
        if len(set(whole)) >= _ENOUGH:
            return tuple(whole), source
        origin = origin if real else source
        real += whole
    every = [*executed, *seen]
    bound = any(partial.bound for partial in every)
    given = [
        number
        for number in order
        if number in cannot or (bound and every and all(number in partial.written for partial in every))
    ]
    donors = [partial for partial in every if all(number in partial.values for number in given)]
    drawn_numbers = [number for number in order if number not in given]
    if (given and not donors) or not drawn_numbers:
        if real:
            return tuple(real), origin
        reasons = [cannot[number] for number in order if number in cannot]
        raise CannotCapture(reasons[0] if reasons else "no execution was seen with all its values")
    sets = list(real)
    used = [one for one in together if any(number in drawn_numbers for number in one.places)]
    drawn = drawn_sets(
        statement, drawn_numbers, known, rows, chance, SETS - len(real), constant, used, scans=scans
    )
    for place, own in enumerate(drawn):
        more = donors[place % len(donors)].values if given else {}
        sets.append(tuple(own[number] if number in own else more[number] for number in order))
    return tuple(sets), "rows" if used else "drawn"


def _read_together(statement: TakenApart, known: Known) -> list[Together]:
    """Return the groups of parameters whose values were read from rows."""
    groups = drawn_together(statement, known)
    return [
        group for group in groups if group.sampled in known.together and known.together[group.sampled].rows
    ]


def _whole(partials: Sequence[_Partial], order: Sequence[int]) -> list[tuple[str | None, ...]]:
    """Return the values of executions that have all of them, in an order of parameters."""
    return [
        tuple(partial.values[number] for number in order)
        for partial in partials
        if all(number in partial.values for number in order)
    ]
