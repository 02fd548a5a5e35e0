"""Build the captured workload: statements with the values of their parameters, and what is missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import date, datetime
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
from uncork.profile.parameter_values import rewrite_typed_parameters
from uncork.profile.shapes.nodes import QUERIES, kind_of, only_statement, rewritten, tokens_of
from uncork.profile.statement_parts import logged_values
from uncork.profile.workload.known import Known
from uncork.profile.workload.literals import (
    Constant,
    FoundValue,
    array_text,
    as_arrays,
    found_values,
    inlined,
)
from uncork.profile.workload.roles import Parameter, TakenApart, take_apart
from uncork.profile.workload.sets import (
    SETS,
    CannotCapture,
    Drawing,
    Together,
    drawn_together,
    replaced_keys,
    undrawable,
)

_ENOUGH: Final = 3
"""Sets of real values that stand for the others. Fewer are completed with drawn sets if possible."""
_NEARLY: Final = 0.5
"""Part of the rows of LIMIT, on average, below which it rarely left any out."""
_ROW_NS: Final = 20.0
"""Time per row of a table that a scan takes at least: 30 to 60 ns to compare numbers, more for texts."""


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
            text = statement.sql or statement.text
            missing.append(NotCaptured(statement.template, text, str(reason), share))
    return CapturedWorkload(tuple(captured), tuple(missing), seconds, sessions)


def columns_of(statements: Sequence[SeenStatement], known: Known) -> tuple[ColumnFacts, ...]:
    """Return the columns from whose statistics values may be drawn."""
    columns = _column_names(known)
    found: dict[tuple[str, str], ColumnFacts] = {}
    for statement in statements:
        sql = rewrite_typed_parameters(as_arrays(statement.sql))
        apart = take_apart(sql, columns) if sql else None
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
    template = _text(statement)
    calls = statement.calls or 0
    apart, executed, seen = _understood(template, statement, known)
    if apart is None:
        raise CannotCapture("the grammar rejects its text")
    keys = replaced_keys(apart, known)
    _check_keys(apart, known)
    drawn = drawn_together(apart, known)
    read = [group for group in drawn if group.sampled in known.together]
    together = [group for group in read if known.together[group.sampled].rows]
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
    # LIMIT leaves no rows out if calls return fewer rows than it allows.
    limits = [fixed.get(parameter.number, "") for parameter in apart.parameters if parameter.role == "limit"]
    most = max((int(text) for text in limits if text.isdigit()), default=None)
    ends = rows is None or most is None or rows >= _NEARLY * most
    apart = replace(apart, limited=apart.limited and ends)
    first = [*executed, *seen][0].values if executed or seen else {}
    constant = {number: value for number, value in first.items() if number in fixed}
    by_function = known.changes_rows(apart.functions)
    largest = max((known.rows.get(known.table(name), 0.0) for name in apart.tables), default=0.0)
    scans = largest > 0 and statement.execution_ns / calls > _ROW_NS * largest
    drawing = Drawing(apart, known, rows, Random(f"{seed} {template}"), constant, scans)
    sets, origin = _sets(order, executed, seen, cannot, drawing, together)
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
        for parameter in apart.parameters
    )
    return replace(apart, parameters=parameters), executed, seen


def _text(statement: SeenStatement) -> str:
    """Return the text of a statement with parameters; raises CannotCapture if there is none to send."""
    texts = (statement.sql, *(execution.text for execution in statement.executed), *statement.seen)
    text = next(filter(None, texts), "")
    if statement.reason:
        raise CannotCapture(statement.reason)
    node = only_statement(text or re.sub(r"\?", "1", statement.text))
    if node is None or kind_of(node) not in QUERIES:
        raise CannotCapture("it is a utility statement, or the grammar rejects its text")
    if not text:
        raise CannotCapture("its text is unknown: pg_stat_statements has none, and no execution was seen")
    if not statement.calls:
        raise CannotCapture("nothing counted its executions: there is no pg_stat_statements, and no log")
    return text


def _check_keys(statement: TakenApart, known: Known) -> None:
    """Raise CannotCapture if an UPDATE stores a value in a unique key, so that it cannot be sent again."""
    for parameter in statement.parameters:
        if parameter.role == "stored" and not statement.target:
            for table in map(known.table, parameter.tables):
                if (parameter.column,) in known.unique.get(table, ()):
                    column = f"{table}.{parameter.column}"
                    raise CannotCapture(
                        f"it changes {column}, which is unique: other rows have the drawn values"
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
        known = {number: value[0] for number, value in resolved.items() if value is not None}
        written = {number: value.written for number, value in values.items() if isinstance(value, Constant)}
        found.append(_Partial(known, written, any(isinstance(value, int) for value in values.values())))
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
    drawing: Drawing,
    together: Sequence[Together],
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
    drawn = replace(drawing, many=SETS - len(real)).sets(drawn_numbers, used)
    for place, own in enumerate(drawn):
        more = donors[place % len(donors)].values if given else {}
        sets.append(tuple(own[number] if number in own else more[number] for number in order))
    return tuple(sets), "rows" if used else "drawn"


def _whole(partials: Sequence[_Partial], order: Sequence[int]) -> list[tuple[str | None, ...]]:
    return [
        tuple(partial.values[number] for number in order)
        for partial in partials
        if all(number in partial.values for number in order)
    ]


def without_statements(workload: CapturedWorkload, reasons: Mapping[int, str]) -> CapturedWorkload:
    """Return a workload without some statements, by template; they are missing for the given reasons."""
    missing = [
        replace(captured, reason=reasons.get(captured.template, captured.reason))
        for captured in workload.missing
    ]
    kept = []
    for statement in workload.statements:
        if statement.template in reasons:
            reason = reasons[statement.template]
            missing.append(NotCaptured(statement.template, statement.sql, reason, statement.share))
        else:
            kept.append(statement)
    ranked = sorted(missing, key=lambda captured: (-captured.share, captured.template))
    return replace(workload, statements=tuple(kept), missing=tuple(ranked))


# ---- types of parameters that the server cannot infer ----

_WHOLE: Final = re.compile(r"[+-]?\d{1,18}")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?", re.IGNORECASE)
_BOOLEANS: Final = frozenset({"t", "f", "true", "false"})
_LARGEST: Final = 2**31 - 1
_ORDERED: Final = ("integer", "bigint", "numeric", "double precision")
"""Types of numbers, in the order in which they are tried: drivers send whole numbers as the first ones."""


def typed_texts(sql: str, sets: Sequence[Sequence[str | None]], known: Known) -> Iterator[str]:
    """Yield texts of a statement with casts of parameters, the most likely ones first.

    The first texts leave parameters that are compared with a column as they are.
    """
    apart = take_apart(sql, _column_names(known))
    if apart is None:
        return
    for columns in (False, True):
        for least in range(len(_ORDERED)):
            types = {
                parameter.number: kind
                for parameter in apart.parameters
                if (kind := _type_of(parameter, apart, sets, known, columns=columns, least=least))
            }
            if types:
                yield _with_casts(sql, types)


def _type_of(
    parameter: Parameter,
    statement: TakenApart,
    sets: Sequence[Sequence[str | None]],
    known: Known,
    *,
    columns: bool,
    least: int,
) -> str:
    if parameter.role == "shift":
        beside = [each for each in statement.parameters if each.role in ("lower", "upper", "equal")]
        before = [each for each in beside if each.number < parameter.number]
        nearest = [*beside[:1], *before][-1:]  # what it is added to
        column = known.column(nearest[0]) if nearest else None
        kind = "" if column is None else column.column.type
        return {"": "", "date": "integer"}.get(kind, "interval" if kind.startswith("time") else kind)
    if parameter.role != "other":
        column = known.column(parameter) if columns and parameter.shape == "value" else None
        if column is None or parameter.role not in ("lower", "upper", "equal", "unequal"):
            return ""
        return column.column.storage_type
    return _type_of_values([sequence[parameter.number - 1] for sequence in sets], least)


def _type_of_values(values: Sequence[str | None], least: int) -> str:
    """Return the type of all values, a number at least as wide as the type at the place `least`."""
    given = [value for value in values if value is not None]
    if not given:
        return ""
    if all(_WHOLE.fullmatch(text) for text in given):
        large = any(abs(int(text)) > _LARGEST for text in given)
        return _ORDERED[max(least, int(large))]
    if all(_NUMBER.fullmatch(text) for text in given):
        return _ORDERED[max(least, 2)]
    if all(text.lower() in _BOOLEANS for text in given):
        return "boolean"
    for kind, parse in (("date", date.fromisoformat), ("timestamp with time zone", datetime.fromisoformat)):
        with suppress(ValueError):
            for text in given:
                parse(text)
            return kind
    return "text"


def _with_casts(sql: str, types: Mapping[int, str]) -> str:
    whole = sql.encode()
    parameters = (token for token in tokens_of(sql) if token.kind == "PARAM")
    changes = (
        (token.end, token.end, f"::{types[int(token.text[1:])]}")
        for token in parameters
        if int(token.text[1:]) in types and not whole[token.end :].lstrip().startswith(b"::")
    )
    return rewritten(sql, changes)
