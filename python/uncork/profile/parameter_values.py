"""Draw values for the parameters of a statement from the statistics of their columns. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from uncork.model.database.plan import ColumnValues
from uncork.model.records import Record
from uncork.profile.shapes.nodes import Token, kind_of, messages, parsed, rewritten, tokens_of
from uncork.profile.statement_parts import statement_parts
from uncork.profile.workload.literals import array_text, inlined, opener_words

_LOWER: Final = frozenset({">", ">="})
_UPPER: Final = frozenset({"<", "<="})
_EQUAL: Final = frozenset({"=", "<>", "!="})
_LISTS: Final = frozenset({"ANY", "ALL", "SOME"})
_LEAST_ROWS: Final = 1

Role = Literal["equal", "lower", "upper", "limit", "offset"]


class ComparedParameter(Record):
    """A parameter (``$number``) with the column that it is compared with.

    `tables` is the table of the column, or all tables of the statement if it does not tell which. `role` is
    its side of a range; the number of rows of LIMIT and OFFSET has no column. `array` is true for = ANY.
    `place` counts the parameters before it with the same column and role, as in IN ($1, $2).
    """

    number: int
    role: Role
    column: str = ""
    tables: tuple[str, ...] = ()
    array: bool = False
    place: int = 0


def compared_parameters(statement: str) -> tuple[ComparedParameter, ...]:
    """Return the parameters whose values can be drawn; none if the grammar rejects the statement.

    Patterns (LIKE) are left out, because a value of the column is no pattern.
    """
    if "$" not in statement:
        return ()
    parsed = statement_parts(statement)
    if parsed is None:
        return ()
    before = opener_words(statement)
    found: list[ComparedParameter] = []
    begun: set[tuple[str | None, str | None]] = set()
    places: Counter[tuple[str | None, str, Role]] = Counter()
    for part in parsed.parts:
        if part.number is None:
            continue
        opener, word = before.get(part.number, ("", ""))
        if word in ("LIMIT", "OFFSET"):
            found.append(ComparedParameter(part.number, "limit" if word == "LIMIT" else "offset"))
            continue
        role = _role(part.operator, (part.table, part.column) in begun)
        if role is None or part.column is None:
            continue
        if role == "lower":
            begun.add((part.table, part.column))
        tables = parsed.tables if part.table is None else (part.table,)
        key = (part.table, part.column, role)
        array = word == "(" and opener in _LISTS
        found.append(ComparedParameter(part.number, role, part.column, tables, array, places[key]))
        places[key] += 1
    return tuple(found)


def drawn_values(
    parameters: Sequence[ComparedParameter],
    statistics: Mapping[tuple[str, str], ColumnValues],
    rows: float | None,
) -> tuple[Mapping[int, str], ...]:
    """Return values by the parameters' numbers, the likeliest first; none unless a column has statistics.

    The first compares for equality with the most common values and bounds ranges near the end of the
    histogram, where new rows are. The second takes both from the middle of the histogram, and the third
    takes rare values, and ranges near the beginning. A range covers one step of the histogram. An array has
    one value. `rows` is the number of rows that an execution returns, which LIMIT then allows.
    """
    columns = {}
    for parameter in parameters:
        known = [
            statistics[table, parameter.column]
            for table in parameter.tables
            if (table, parameter.column) in statistics
        ]
        if len(known) == 1:
            columns[parameter.number] = known[0]
    if not columns:
        return ()
    found = []
    for turn in range(3):
        values = {
            parameter.number: array_text([value]) if parameter.array else value
            for parameter in parameters
            if parameter.number in columns
            and (value := _value(parameter, columns[parameter.number], turn)) is not None
        }
        for parameter in parameters:
            if parameter.role == "limit" and rows is not None:
                values[parameter.number] = str(max(_LEAST_ROWS, round(rows)))
            elif parameter.role == "offset":
                values[parameter.number] = "0"
        if values not in found:
            found.append(values)
    return tuple(found)


def with_values(statement: str, values: Mapping[int, str | None], literal: Callable[[str], str]) -> str:
    """Return a statement with values in place of parameters; those without a value are numbered from $1.

    `literal` quotes a value; None is NULL. Raises ValueError if the grammar rejects the statement.
    """
    if statement.strip() and not tokens_of(statement):
        raise ValueError("the statement is not complete")
    written = {number: "NULL" if value is None else literal(value) for number, value in values.items()}
    return inlined(statement, written)[0]


def _role(operator: str, begun: bool) -> Role | None:
    """Return the side of a comparison; `begun` is true if the same column has a lower bound already."""
    if operator in _EQUAL:
        return "equal"
    if operator in _LOWER:
        return "lower"
    if operator in _UPPER:
        return "upper"
    if operator in ("BETWEEN", "BETWEEN SYMMETRIC"):
        return "upper" if begun else "lower"
    return None


def _value(parameter: ComparedParameter, known: ColumnValues, turn: int) -> str | None:
    bounds, common = known.bounds, known.common
    if parameter.role == "equal":
        if turn == 0 and common:
            return common[parameter.place % len(common)]
        if bounds:
            return bounds[((len(bounds) - 1) // (2 if turn < 2 else 4) + parameter.place) % len(bounds)]
        return common[-1 - parameter.place % len(common)] if common else None
    if len(bounds) < 2:
        return (bounds or common or (None,))[0]
    last = len(bounds) - 2
    start = (last, last // 2, min(1, last))[turn]
    return bounds[start + (parameter.role == "upper")]


# ---- parameters after the name of a type, which the server cannot parse ----
#
# pg_stat_statements replaces the literal of ``date '2026-01-31'`` and stores ``date $1``. PostgreSQL rejects
# that text, because only a literal may follow a type's name. libpg_query's grammar accepts it.

_UNITS: Final = frozenset({"YEAR_P", "MONTH_P", "DAY_P", "HOUR_P", "MINUTE_P", "SECOND_P"})


def rewrite_typed_parameters(sql: str) -> str:
    """Return the statement with ``$1::date`` for ``date $1``, and the same for every other type.

    An interval keeps its fields: ``interval $1 day to second`` becomes ``$1::interval day to second``. The
    rest of the text is unchanged, except that a comment between the type and its parameter is dropped. A text
    that the grammar rejects is returned as it is.
    """
    if "$" not in sql:
        return sql
    tree = parsed(sql)
    if tree is None:
        return sql
    tokens = tokens_of(sql)
    places = {token.start: place for place, token in enumerate(tokens)}
    changes = []
    whole = sql.encode()
    for first, start in sorted(_typed(tree)):
        place = places[start]
        name = whole[first : tokens[place - 1].end].decode()
        last = place if name.endswith(")") else _interval_end(tokens, places[first], place)
        fields = whole[tokens[place].end : tokens[last].end].decode()
        changes.append((first, tokens[last].end, f"{tokens[place].text}::{name}{fields}"))
    return rewritten(sql, changes)


def _typed(tree: Any) -> Iterator[tuple[int, int]]:
    """Yield the bytes at which the type and the parameter start, for each parameter after a type's name."""
    for cast in messages(tree, "TypeCast"):
        start = cast.arg.param_ref.location
        if kind_of(cast.arg) == "param_ref" and 0 <= cast.type_name.location < start:
            yield cast.type_name.location, start


def _interval_end(tokens: Sequence[Token], first: int, parameter: int) -> int:
    """Return the place of the last token of ``interval $1 day to second(3)``, else the parameter's."""
    kinds = [token.kind for token in tokens]
    last = parameter
    if kinds[first] != "INTERVAL" or kinds[last + 1 : last + 2] not in ([unit] for unit in _UNITS):
        return last
    last += 1
    if kinds[last + 1 : last + 2] == ["TO"]:
        last += 2
    if kinds[last] == "SECOND_P" and kinds[last + 1 : last + 2] == ["ASCII_40"]:
        last += 3
    return last
