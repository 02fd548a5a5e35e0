"""Turn the variables of a function into parameters of its SQL statements. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from uncork.model.database.statement import StatementShape
from uncork.profile.shapes.bodies import body_statements
from uncork.profile.shapes.nodes import column_fields, descendants, messages, parsed, rewritten, tokens_of
from uncork.profile.shapes.scopes import table_name
from uncork.profile.statement_shape import statement_shape

Tables = Mapping[str, Collection[str]]
_SYSTEM: Final = frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"})
_NUMBER: Final = re.compile(r"\$(\d+)")


def function_statements(source: str, tables: Tables) -> tuple[tuple[str, StatementShape], ...]:
    """Return the statements of a function's body that the grammar accepts, each with its shape.

    `tables` are the names of columns by table, as for `statement_shape`.
    """
    found = ((sql, with_parameters(sql, tables)) for sql in body_statements(source))
    shapes = ((sql, statement_shape(text, tables)) for sql, text in found if text is not None)
    return tuple((sql, shape) for sql, shape in shapes if shape is not None)


def with_parameters(sql: str, tables: Tables) -> str | None:
    """Return a statement of a function with ``$1`` for each variable; None if the grammar rejects it.

    PostgreSQL rejects a name that may be a column or a variable, so a name that no table of the statement has
    is a variable. So is a field of a record, such as ``NEW.id``, unless the statement names its table.
    """
    tree = parsed(sql)
    if tree is None:
        return None
    names = _Names(list(descendants(tree)), tables)
    tokens = tokens_of(sql)
    places = {token.start: place for place, token in enumerate(tokens)}
    first = 1 + max([0, *(int(number) for number in _NUMBER.findall(sql))])
    numbers: dict[tuple[str, ...], int] = {}
    changes, end = list[tuple[int, int, str]](), 0
    for reference in sorted(messages(tree, "ColumnRef"), key=lambda each: each.location):
        fields = column_fields(reference)
        last = places.get(reference.location, len(tokens)) + 2 * (len(fields) - 1)
        if reference.location < end or last >= len(tokens) or not names.is_variable(fields):
            continue
        number = numbers.setdefault(fields, first + len(numbers))
        end = tokens[last].end
        changes.append((reference.location, end, f"${number}"))
    return rewritten(sql, changes)


class _Names:
    """The names in a statement: `tables` qualify a column (``t.a``), `columns` are unqualified."""

    def __init__(self, found: Collection[Any], catalogue: Tables) -> None:
        self.tables: set[str] = set()
        self.columns = set(_SYSTEM)
        self.known = True
        common = {message.ctename for message in found if message.DESCRIPTOR.name == "CommonTableExpr"}
        for message in found:
            match message.DESCRIPTOR.name:
                case "RangeVar":
                    self.tables.add(message.relname)
                    name = table_name(message.schemaname, message.relname, catalogue)
                    self.columns.update(catalogue.get(name, ()))
                    self.known &= message.relname in common or bool(catalogue.get(name))
                case "Alias":
                    self.tables.add(message.aliasname)
                    self.columns.update(colname.string.sval for colname in message.colnames)
                case "ResTarget":
                    self.columns.add(message.name)
                case "CommonTableExpr":
                    self.columns.update(aliascolname.string.sval for aliascolname in message.aliascolnames)
        self.tables.add("excluded")

    def is_variable(self, fields: tuple[str, ...]) -> bool:
        """Return whether the parts of a name are a variable's; a name of an unknown table's may be a column.

        A statement that uses a table whose columns are unknown has no plain variables.
        """
        if len(fields) > 1:
            return not self.tables.intersection(fields[:2][: len(fields) - 1])
        return self.known and fields[0] != "*" and fields[0] not in self.columns | self.tables
