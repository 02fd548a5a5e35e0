"""Draw sets of values for the parameters of a statement: all values of one execution together. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from uncork.model.database.catalogue import ColumnFacts
from uncork.model.database.names import quoted, sql_name
from uncork.model.database.workload import Reference, SampledExpression, SampledRows
from uncork.model.records import Record
from uncork.profile.shapes.nodes import (
    chained,
    column_fields,
    conjuncts,
    enum_of,
    kind_of,
    messages,
    name_of,
    only_statement,
    plain_sql_of,
    uncast,
)
from uncork.profile.workload.drawing import ColumnDraw, filler, pattern_of, strata
from uncork.profile.workload.known import Known
from uncork.profile.workload.literals import array_text
from uncork.profile.workload.roles import Parameter, Role, TakenApart

SETS: Final = 24
"""Sets to draw of each statement. A value with at least 1/24 of the rows then has its part of the sets."""
_LEAST_LIST, _MOST_LIST = 2, 20
_RANGE: Final = 0.01
"""The part of the rows in a range whose number of rows is unknown: one step of a whole histogram."""
_END: Final = 0.1
"""The part of the rows near the end of the histogram in which ranges with one bound begin."""
_ROWS: Final = 10
_COUNTS: Final = frozenset({"limit", "offset", "added", "shift"})


class CannotCapture(Exception):
    """The reason why a statement cannot be sent again."""


def undrawable(parameter: Parameter, known: Known) -> str:
    """Return why no value can be drawn for a parameter; an empty string if one can."""
    if parameter.role in _COUNTS:
        return ""
    where = f"${parameter.number}"
    if parameter.role == "other" or not (parameter.column or parameter.expression):
        return f"the value of {where} is unknown: it is not compared with a column, and no execution was seen"
    column = known.column(parameter)
    if column is not None and column.known:
        return ""
    unread = "" if parameter.role == "stored" else _not_sampled(parameter, known)
    if unread:
        return unread
    if column is None:
        return f'the column "{parameter.column}" of {where} is not in the catalogue that was read'
    return _unknown_values(column.column, parameter.role, known)


def _not_sampled(parameter: Parameter, known: Known) -> str:
    """Return why no rows gave values for a parameter; empty if statistics should have them, but do not."""
    wanted = known.wanted(parameter)
    sample = None if wanted is None else known.samples.get(wanted)
    if sample is not None:
        reason = sample.reason
    elif parameter.column and parameter.shape == "value":
        return ""
    elif wanted is not None:
        reason = "they are in no statistics, and without a connection to the database uncork reads no rows"
    else:
        reason = (
            "uncork reads rows only for expressions of columns of one table, constants, functions, operators "
            "and casts"
        )
    return f"the values of {parameter.expression} are unknown: {reason}"


def _unknown_values(column: ColumnFacts, role: Role, known: Known) -> str:
    """Return why no value can be made up for a column without known values."""
    name = f"{column.table}.{column.name}"
    if role != "stored" or known.is_reference(column):
        return f"the values of {name} are unknown: ANALYZE found none, or they are not stored"
    if filler(column, Random(0)) is None:
        return f"{name} is of type {column.type}, for which uncork cannot make up a value"
    return ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """Draws sets of values for parameters of a statement: all values of one execution together.

    `rows` is the number of rows that one execution returns or changes. `fixed` are the values of other
    parameters, which are the same in each execution. With `scans`, the statement takes as long as a scan
    does, so its patterns begin with a wildcard. `points` are those of each column and role, so that
    parameters that are compared with the same column have the same value in a set.
    """

    statement: TakenApart
    known: Known
    rows: float | None
    chance: Random
    fixed: Mapping[int, str | None]
    scans: bool
    many: int = SETS
    points: dict[tuple[str, str, str], list[float]] = field(default_factory=dict)

    def sets(self, wanted: Sequence[int], together: Sequence[Together]) -> list[dict[int, str | None]]:
        """Return sets of values for the wanted parameters, by number; each must be drawable.

        `together` are groups of parameters, each of which gets the values of one row.
        """
        sets: list[dict[int, str | None]] = [{} for _ in range(self.many)]
        for group in together:
            sampled = self.known.together[group.sampled].rows
            for own, point in zip(sets, self._strata(), strict=True):
                row = sampled[int(point * len(sampled))]
                own.update((number, row[place]) for number, place in group.places.items() if number in wanted)
            if self.statement.limited:
                members = [each for each in self.statement.parameters if each.number in group.places]
                self._add_rare(sets, members)
        grouped = {number for group in together for number in group.places}
        for parameter in self.statement.parameters:
            if parameter.number in wanted and parameter.number not in grouped:
                for own, value in zip(sets, self._values(parameter), strict=True):
                    own[parameter.number] = value
        return sets

    def _strata(self) -> list[float]:
        return strata(self.many, self.chance)

    def _values(self, parameter: Parameter) -> list[str | None]:
        rows, many = self.rows, self.many
        returned = max(1, round(rows)) if rows else _ROWS
        if parameter.role in _COUNTS:
            places = self.chance.choices((0, 1, 2), (4, 1, 1), k=many)
            offsets = [returned * place for place in places]
            counts = {"shift": [0] * many, "limit": [returned] * many, "offset": offsets}
            return [str(each) for each in counts.get(parameter.role, [1] * many)]
        column = self.known.column(parameter)
        if column is None:
            raise ValueError(f"${parameter.number} has no column")
        place = (column.column.table, parameter.column or parameter.expression)
        found: list[str]
        if parameter.role == "stored":
            return self._stored(column)
        if parameter.role in ("lower", "upper"):
            own = self.points.setdefault((*place, "range"), self._strata())
            found = self._bounds(parameter, column, own)
        elif parameter.role == "array":
            length = max(_LEAST_LIST, min(_MOST_LIST, returned if rows else _LEAST_LIST + 1))
            drawn = [strata(length, self.chance) for _ in range(self.many)]
            found = [array_text(list(dict.fromkeys(map(column.value, each)))) for each in drawn]
        elif parameter.role == "listed":
            found = [column.value(point) for point in self._strata()]
        else:
            drawn_points = self._strata()
            if parameter.role == "equal":
                drawn_points = self._asked(drawn_points, column)
            own = self.points.setdefault((*place, parameter.role), drawn_points)
            found = list(map(column.value, own))
        if parameter.role == "pattern":
            known_part = rows is not None and column.rows and not self.statement.grouped
            part = (rows or 0.0) / column.rows if known_part else _END
            if self.scans:
                found = self._unseen(parameter, column, found)
            found = [pattern_of(value, column, part, infix=self.scans) for value in found]
        return list(found)

    def _add_rare(self, sets: Sequence[dict[int, str | None]], members: Sequence[Parameter]) -> None:
        """Replace values of every second set where the rows that were read lack the rare values of a column.

        A queue asks with LIMIT for the few jobs that are new, of which some hundred rows may hold none.
        """
        for member in members:
            column = self.known.column(member)
            if member.role != "equal" or column is None or not column.is_lopsided:
                continue
            for own, point in zip(sets[::2], strata(len(sets[::2]), self.chance), strict=True):
                if member.number in own:
                    own[member.number] = column.value(column.weighted(point, 0.0))

    def _asked(self, points: list[float], column: ColumnDraw) -> list[float]:
        """Return the points of values that a column is compared with, as an application may ask for them.

        If the comparison is all that chooses rows, the values have as many rows as a call returned or
        changed. With LIMIT, that number says nothing: half of the values have their frequency, and in the
        other half all values are equally likely, so that a rare one, of which a plan may be slow, occurs too.
        """
        if self.statement.limited:
            odd = {point for point in points if int(point * len(points)) % 2 == 1}
            return [column.weighted(point, 0.0) if point in odd else point for point in points]
        narrowing = sum(parameter.role not in _COUNTS | {"stored"} for parameter in self.statement.parameters)
        rows, alone = self.rows, len(self.statement.tables) == narrowing == 1
        if rows is None or self.statement.grouped or not alone or not column.rows:
            return points
        return [column.for_rows(point, rows) for point in points]

    def _unseen(self, parameter: Parameter, column: ColumnDraw, drawn: list[str]) -> list[str]:
        """Return values of rows that were read in place of those of the statistics, if there are any.

        The planner counts how many values of its histogram match a pattern. One made of such a value seems to
        find a hundredth of the rows.
        """
        wanted = self.known.wanted(parameter)
        sample = None if wanted is None else self.known.samples.get(wanted)
        stored = {*column.bounds, *(value for value, _ in column.common)}
        others = [] if sample is None else [value for value in sample.values if value not in stored]
        return [self.chance.choice(others) for _ in drawn] if others else drawn

    def _stored(self, column: ColumnDraw) -> list[str | None]:
        """Return values to store: the column's own, with its part of NULL, or made-up ones of its length."""
        nulls = 0.0 if column.column.not_null else column.column.null_fraction or 0.0
        empty = [point < nulls for point in self._strata()]
        existing = self.known.is_reference(column.column)
        if column.known:
            values = [column.value(point, existing=existing) for point in self._strata()]
        else:
            values = [filler(column.column, self.chance) or "" for _ in range(self.many)]
        return [None if null else value for null, value in zip(empty, values, strict=True)]

    def _bounds(self, parameter: Parameter, column: ColumnDraw, points: Sequence[float]) -> list[str]:
        """Return bounds of ranges.

        A range has as many rows as an execution returns. If that is unknown, or less than the range has, as
        in a sum or with LIMIT, a range with two bounds has one step of a whole histogram, or more if more
        rows are returned. One with a single bound reaches up to a tenth of the rows, or begins anywhere if
        LIMIT ends it.
        """
        place = (parameter.column or parameter.expression, parameter.tables)
        other_role = "upper" if parameter.role == "lower" else "lower"
        others = (each for each in self.statement.parameters if each.role == other_role)
        alike = (each for each in others if (each.column or each.expression, each.tables) == place)
        partner = next(alike, None)
        rows, whole = self.rows, not self.statement.grouped
        returned = min(1.0, rows / column.rows) if rows is not None and column.rows else None
        part = returned if returned is not None and whole else max(_RANGE, returned or 0.0)
        if partner is not None and self.fixed.get(partner.number) is not None:
            other = column.position(self.fixed[partner.number] or "")
            if other is not None:
                sign = -1.0 if parameter.role == "lower" else 1.0
                return [column.quantile(other + sign * (part * 2.0 * point)) for point in points]
        if partner is not None:
            starts = [point * (1.0 - part) for point in points]
            return [column.quantile(start + (part if parameter.role == "upper" else 0.0)) for start in starts]
        if not self.statement.limited:
            widest = 2.0 * part if returned is not None and whole else max(_END, part)
            least = 0.0 if part <= _RANGE else part
            widths = [min(1.0, least + (widest - least) * point) for point in points]
            points = [1.0 - width if parameter.role == "lower" else width for width in widths]
        return [column.quantile(point) for point in points]


# ---- unique keys ----


def replaced_keys(statement: TakenApart, known: Known) -> Mapping[int, str]:
    """Return SQL in place of parameters that an INSERT stores in unique keys, by number.

    Rows that are stored again must not collide with the first ones, so each execution makes up a new key.
    Raises CannotCapture if there is no new key to make up. With ON CONFLICT, keys may collide.
    """
    table = known.table(statement.target)
    if not statement.target or statement.on_conflict:
        return {}
    found: dict[int, str] = {}
    for key in known.unique.get(table, ()):
        for row in statement.inserted:
            numbers = [(name, row[name]) for name in key if row.get(name, 0) > 0]
            if any(row.get(name, 0) == 0 for name in key):
                continue  # a default, a sequence or an expression makes it up
            if any(number in found for _, number in numbers):
                continue
            made = ((number, _new_key(known, table, name)) for name, number in numbers)
            new = next(((number, sql) for number, sql in made if sql is not None), None)
            if new is None:
                raise CannotCapture(
                    f"each execution needs a new value of the unique key ({', '.join(key)}) of {table}; its "
                    "columns refer to other tables, or are no integers, text or uuid"
                )
            found[new[0]] = new[1]
    return found


def _new_key(known: Known, table: str, name: str) -> str | None:
    column = known.catalogue.column(table, name)
    if column is None or known.is_reference(column):
        return None
    make = _NEW.get(column.type)
    return None if make is None else make(ColumnDraw(column, known.rows.get(table, 0.0)))


def _new_bigint(column: ColumnDraw) -> str:
    """Return an expression whose values rise with time, and differ between sessions."""
    return (
        f"({column.largest} + (extract(epoch FROM clock_timestamp()) * 1000000)::bigint * 1024 "
        "+ pg_backend_pid() % 1024)"
    )


def _new_integer(column: ColumnDraw) -> str:
    least = max(column.largest, round(column.rows)) + 1
    return f"({least} + floor(random() * {max(1, column.limit - least)})::bigint)::{column.column.type}"


_NEW: Final[Mapping[str, Callable[[ColumnDraw], str]]] = {
    "bigint": _new_bigint,
    "integer": _new_integer,
    "uuid": lambda _: "gen_random_uuid()",
    "text": lambda _: "md5(random()::text || clock_timestamp()::text)",
    "character varying": lambda column: (
        "left(md5(random()::text || clock_timestamp()::text), "
        f"{column.column.storage_type.partition('(')[2].rstrip(')') or 32})"
    ),
}


# ---- parameters whose values one row of a table should give together ----

_MOST_REFERENCES: Final = 3
"""Tables that each sampled row is followed to, by a unique key each."""


class Together(Record):
    """Rows to sample, and which of their values each parameter has, by its number."""

    sampled: SampledRows
    places: Mapping[int, int]


def drawn_together(statement: TakenApart, known: Known) -> tuple[Together, ...]:
    """Return the groups of parameters to draw from one row each; one parameter alone is no group.

    A group has parameters that are compared for equality with different columns of one table, or of a table
    and of the tables to which it refers by foreign keys. The columns of a foreign key that an INSERT stores
    are a group too: the row that they refer to has to exist.
    """
    found = [*_compared_together(statement, known), *_stored_together(statement, known)]
    return tuple(together for together in found if len(together.sampled.values) > 1)


def _compared_together(statement: TakenApart, known: Known) -> Iterator[Together]:
    by_table: dict[str, list[tuple[Parameter, SampledExpression]]] = {}
    for parameter in statement.parameters:
        expression = known.wanted(parameter) if parameter.role == "equal" else None
        if expression is not None and expression.shape == "value":
            by_table.setdefault(expression.table, []).append((parameter, expression))
    left = dict.fromkeys(by_table)
    # A table that refers to others comes first, because each of its rows leads to one row of them.
    for table in sorted(by_table, key=lambda name: -len(_references(name, by_table, known))):
        if table not in left:
            continue
        del left[table]
        references = [
            reference for reference in _references(table, by_table, known) if reference.table in left
        ]
        for reference in references:
            del left[reference.table]
        names = (table, *(reference.table for reference in references))
        members = [member for name in names for member in by_table[name]]
        expressions = tuple(dict.fromkeys(expression for _, expression in members))
        places = {parameter.number: expressions.index(expression) for parameter, expression in members}
        yield Together(SampledRows(table, expressions, tuple(references)), places)


def _references(table: str, others: Mapping[str, object], known: Known) -> list[Reference]:
    """Return the foreign keys that lead from a table to others; none to a table with several."""
    keys = [key for key in known.foreign_keys(table) if key.referred in others and key.referred != table]
    often = Counter(key.referred for key in keys)
    lone = [key for key in keys if often[key.referred] == 1][:_MOST_REFERENCES]
    return [Reference(key.referred, key.referred_columns, key.columns) for key in lone]


def _stored_together(statement: TakenApart, known: Known) -> Iterator[Together]:
    """Yield the columns of each foreign key that an INSERT stores, in each row of its text."""
    keys = known.foreign_keys(known.table(statement.target)) if statement.target else []
    for row in statement.inserted:
        for key in keys:
            numbers = [row.get(column, 0) for column in key.columns]
            if not all(number > 0 for number in numbers):
                continue
            expressions = tuple(
                SampledExpression(key.referred, quoted(column), "value") for column in key.referred_columns
            )
            places = {number: place for place, number in enumerate(numbers)}
            yield Together(SampledRows(key.referred, expressions), places)


# ---- values with which an UPDATE or DELETE finds rows of its table ----

_CHANGING: Final = ("update_stmt", "delete_stmt")


class MatchingRows(Record):
    """A query of rows that a statement can find: each column gives the values of one parameter.

    `numbers` are the parameters, in the order of the columns; those in `arrays` take several values at once.
    """

    table: str
    sql: str
    numbers: tuple[int, ...]
    arrays: frozenset[int]


def matching_rows(sql: str) -> MatchingRows | None:
    """Return the query for a statement that compares columns of its one table with parameters for equality.

    Conditions without parameters hold for the rows too. None if the statement has other conditions with
    parameters, other tables, or no such comparison.
    """
    node = only_statement(sql)
    kind = "" if node is None else kind_of(node)
    if kind not in _CHANGING:
        return None
    statement = getattr(node, kind)
    if statement.HasField("with_clause") or (
        statement.from_clause if kind == "update_stmt" else statement.using_clause
    ):
        return None
    relation = statement.relation
    table = name_of((relation.schemaname, relation.relname))
    alias = relation.alias.aliasname if relation.HasField("alias") else relation.relname
    compared: dict[int, str] = {}
    arrays: set[int] = set()
    conditions = []
    for condition in conjuncts(statement.where_clause):
        numbers = [int(parameter.number) for parameter in messages(condition, "ParamRef")]
        if not numbers:
            conditions.append(plain_sql_of(condition))
            continue
        column, number = _equality(condition)
        if column is None or numbers != [number]:
            return None
        compared[number] = f"{quoted(alias)}.{quoted(column)}"
        if enum_of(condition.a_expr, "kind") == "AEXPR_OP_ANY":
            arrays.add(number)
    if not compared:
        return None
    conditions += [f"{column} IS NOT NULL" for column in compared.values()]
    columns = ", ".join(f"{column}::text" for column in compared.values())
    query = (
        f"SELECT {columns} FROM {sql_name(table)} AS {quoted(alias)} "  # noqa: S608 -- see sql_name, quoted
        f"WHERE {' AND '.join(conditions)}"
    )
    return MatchingRows(table, query, tuple(compared), frozenset(arrays))


def _equality(condition: Any) -> tuple[str | None, int]:
    """Return the column and the parameter of ``column = $1`` or ``column = ANY ($1)``; None for others."""
    if kind_of(condition) != "a_expr" or chained(condition.a_expr.name) != ("=",):
        return None, 0
    expression = condition.a_expr
    left, right = uncast(expression.lexpr), uncast(expression.rexpr)
    kind = enum_of(expression, "kind")
    if kind == "AEXPR_OP" and kind_of(left) == "param_ref":
        left, right = right, left
    sides = (kind_of(left), kind_of(right))
    if kind not in ("AEXPR_OP", "AEXPR_OP_ANY") or sides != ("column_ref", "param_ref"):
        return None, 0
    fields = column_fields(left.column_ref)
    return (fields[-1] if fields and fields[-1] != "*" else None), int(right.param_ref.number)
