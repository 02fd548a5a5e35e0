"""What is known of a database whose workload is captured: its catalogue, and values of its columns. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any, Final

from uncork.model.database.catalogue import Catalogue, ColumnFacts, ConstraintFacts
from uncork.model.database.workload import RowSample, Sample, SampledExpression, SampledRows
from uncork.model.records import Record
from uncork.profile.shapes.bodies import body_statements
from uncork.profile.shapes.nodes import column_fields, kind_of, only_statement
from uncork.profile.statement_parts import aliases_of
from uncork.profile.workload.drawing import ColumnDraw
from uncork.profile.workload.roles import Parameter, sampled

_WORD: Final = re.compile(r"[a-z_][\w$]*")
_WRITES: Final = frozenset({"insert", "update", "delete", "merge", "truncate", "nextval"})
_DYNAMIC: Final = re.compile(r"\bEXECUTE\b", re.IGNORECASE)
_NESTED: Final = 8
"""Views on views that are followed."""


class Known(Record):
    """What is known of the database: its catalogue, and rows and columns of unique keys by table.

    `samples` are the values of expressions in some rows, and `together` those of several expressions in the
    same rows, as far as they were read.
    """

    catalogue: Catalogue
    rows: Mapping[str, float] = field(default_factory=dict)
    unique: Mapping[str, Sequence[tuple[str, ...]]] = field(default_factory=dict)
    samples: Mapping[SampledExpression, Sample] = field(default_factory=dict)
    together: Mapping[SampledRows, RowSample] = field(default_factory=dict)

    def table(self, name: str) -> str:
        """Return the catalogue's name of a table; a name without a schema may be in any one schema."""
        plain = name.removeprefix("public.")
        if plain in self.catalogue.columns:
            return plain
        names = self.catalogue.columns if "." not in name else ()
        found = [table for table in names if table.endswith(f".{name}")]
        return found[0] if len(found) == 1 else plain

    def column(self, parameter: Parameter) -> ColumnDraw | None:
        """Return the column of a parameter; None if it is unknown, or in several tables of the statement.

        An expression whose values were read from rows is a column too.
        """
        column = self._column(parameter) if parameter.shape == "value" else None
        if column is not None and (column.known or parameter.role == "stored"):
            return column
        wanted = self.wanted(parameter)
        sample = None if wanted is None else self.samples.get(wanted)
        if wanted is None or sample is None or not sample.values:
            return column
        often = Counter(sample.values).most_common()
        common = tuple((value, many / len(sample.values)) for value, many in often)
        facts = ColumnFacts(wanted.table, 0, 0, wanted.sql, "", "", True, "", "", "", common=common)
        return ColumnDraw(facts, self.rows.get(wanted.table, 0.0), sampled=True)

    def wanted(self, parameter: Parameter) -> SampledExpression | None:
        """Return the expression that a parameter is compared with, if rows of one table can give values."""
        tables = {
            table
            for column, named in parameter.columns
            for table in dict.fromkeys(map(self.table, named))
            if self.catalogue.column(table, column) is not None
        }
        complete = parameter.expression and "$" not in parameter.expression
        if parameter.role == "other" or not complete or len(tables) != 1:
            return None
        (table,) = tables
        if any(self.catalogue.column(table, column) is None for column, _ in parameter.columns):
            return None
        return sampled(table, parameter.expression, parameter.shape)

    def _column(self, parameter: Parameter) -> ColumnDraw | None:
        names = dict.fromkeys(self.table(table) for table in parameter.tables)
        found = [self._stored(name, parameter.column) for name in names]
        known = [column for column in found if column is not None]
        if len(known) != 1:
            return None
        column, rows = known[0], self.rows.get(known[0].table, 0.0)
        if not (column.common or column.bounds):
            keys = [key for key in self.foreign_keys(column.table) if column.name in key.columns]
            for key in keys[:1]:
                name = key.referred_columns[key.columns.index(column.name)]
                referred = self.catalogue.column(key.referred, name)
                if referred is not None:
                    return ColumnDraw(referred, self.rows.get(referred.table, 0.0))
        return ColumnDraw(column, rows)

    def _stored(self, name: str, column: str) -> ColumnFacts | None:
        """Return the column of a table; of a view, the column of the table beneath it."""
        for _ in range(_NESTED):
            facts = self.catalogue.column(self.table(name), column)
            if facts is not None:
                return facts
            plain = name.removeprefix("public.")
            views = [view for view in self.catalogue.views if f".{view.name}".endswith(f".{plain}")]
            under = beneath(views[0].definition, column) if len(views) == 1 else None
            if under is None:
                return None
            name, column = under
        return None

    def is_reference(self, column: ColumnFacts) -> bool:
        """Return whether a column is part of a foreign key."""
        return any(column.name in key.columns for key in self.foreign_keys(column.table))

    def foreign_keys(self, table: str) -> list[ConstraintFacts]:
        """Return the foreign keys that a table has to others."""
        constraints = self.catalogue.constraints
        return [each for each in constraints if each.kind == "foreign key" and each.table == table]

    def is_own(self, functions: Sequence[str]) -> bool:
        """Return whether one of some functions is a user's."""
        bare = {name.rpartition(".")[2].lower() for name in functions}
        return any(_bare(function.name) in bare for function in self.catalogue.functions)

    def changes_rows(self, functions: Sequence[str]) -> bool:
        """Return whether a statement that calls functions may change rows by them.

        Bodies are searched for statements, also those of functions that they call. A volatile function whose
        body is unknown, or has dynamic SQL, may change rows.
        """
        bare = {name.rpartition(".")[2].lower() for name in functions}
        waiting = [function for function in self.catalogue.functions if _bare(function.name) in bare]
        done: set[str] = set()
        while waiting:
            one = waiting.pop()
            if one.volatility != "volatile" or one.name in done:
                continue
            done.add(one.name)
            words = set(_WORD.findall(" ".join(body_statements(one.source)).lower()))
            if not one.source or words & _WRITES or _DYNAMIC.search(one.source):
                return True
            named = set(_WORD.findall(one.source.lower()))
            waiting += [other for other in self.catalogue.functions if _bare(other.name) in named]
        return False


def _bare(name: str) -> str:
    return name.rpartition(".")[2].lower()


# ---- find the column of a table beneath a column of a view ----


@lru_cache(maxsize=256)
def beneath(definition: str, column: str) -> tuple[str, str] | None:
    """Return the relation and its column that a column of a view passes through; None if it computes it.

    `definition` is the view's query as pg_get_viewdef prints it, which qualifies columns if several relations
    have them. A view of several queries (UNION) has no such column.
    """
    node = only_statement(definition)
    if node is None or kind_of(node) != "select_stmt":
        return None
    select = node.select_stmt
    if select.HasField("larg") or not all(map(_is_plain, select.from_clause)):
        return None
    fields = next((each for name, each in map(_output, select.target_list) if name == column), None)
    aliases = aliases_of(node)
    relations = set(aliases.values())
    if fields is None or not relations:
        return None
    if len(fields) > 1:
        found = aliases.get(fields[-2])
    else:
        found = next(iter(relations)) if len(relations) == 1 else None
    return None if found is None else (found, fields[-1])


def _is_plain(item: Any) -> bool:
    """Return whether an item of FROM is a relation, or joins relations."""
    if kind_of(item) == "join_expr":
        return _is_plain(item.join_expr.larg) and _is_plain(item.join_expr.rarg)
    return kind_of(item) == "range_var"


def _output(item: Any) -> tuple[str, list[str] | None]:
    target = item.res_target
    plain = kind_of(target.val) == "column_ref"
    fields = list(column_fields(target.val.column_ref)) if plain else None
    return target.name or (fields[-1] if fields else ""), fields
