"""Resolve the names of tables and columns of a statement, level by level. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from uncork.model.database.statement import ColumnName
from uncork.model.records import Record


class Outputs(Record):
    """The columns that a query returns, in order, each with the table's column that it passes through.

    `rest` is the table of all other columns if the query has a ``*`` of a table with unknown columns.
    """

    columns: tuple[tuple[str, ColumnName | None], ...] = ()
    rest: str | None = None

    def renamed(self, names: tuple[str, ...]) -> Outputs:
        """Return the columns with other names for the first ones."""
        kept = self.columns[len(names) :]
        pairs = zip(names, [*(name for _, name in self.columns), *[None] * len(names)], strict=False)
        return Outputs((*pairs, *kept), self.rest)

    def merged(self, other: Outputs) -> Outputs:
        """Return the columns of a UNION or similar: a column passes through if it is the same in both."""
        others = [name for _, name in other.columns]
        pairs = (
            (name, column_name if place < len(others) and others[place] == column_name else None)
            for place, (name, column_name) in enumerate(self.columns)
        )
        return Outputs(tuple(pairs), self.rest if self.rest == other.rest else None)


class Source(Record):
    """What a FROM clause makes available under a name.

    `table` is the table's name in the catalogue and `columns` its columns, None if they are unknown.
    `outputs` are the columns of a subquery or common table, `members` what an alias of a join stands for.
    The columns of a `qualified` source are only available as ``name.column``.
    """

    name: str
    table: str = ""
    columns: Collection[str] | None = None
    outputs: Outputs | None = None
    members: tuple[Source, ...] = ()
    qualified: bool = False

    @property
    def known(self) -> bool:
        """Return whether all columns are known."""
        if self.members:
            return all(member.known for member in self.members)
        if self.outputs is not None:
            return self.outputs.rest is None
        return self.columns is not None

    def certain(self, column: str) -> ColumnName | None:
        """Return a column that this source has for certain."""
        if self.members:
            return next((found for member in self.members if (found := member.certain(column))), None)
        if self.outputs is not None:
            for name, found in self.outputs.columns:
                if name == column:
                    return found or ColumnName("", column)
            return None
        return ColumnName(self.table, column) if self.columns and column in self.columns else None

    def guessed(self, column: str) -> ColumnName:
        """Return a column of this source; its table is guessed where the catalogue does not tell it."""
        found = self.certain(column)
        if found is not None:
            return found
        if self.members:
            return next((member for member in self.members if not member.known), Source("")).guessed(column)
        table = self.table if self.outputs is None else self.outputs.rest or ""
        return ColumnName(table, column)

    def all(self) -> Outputs:
        """Return the columns of ``name.*``."""
        if self.members:
            every = [member.all() for member in self.members]
            columns = tuple(pair for outputs in every for pair in outputs.columns)
            return Outputs(columns, next((outputs.rest for outputs in every if outputs.rest), None))
        if self.outputs is not None:
            return self.outputs
        if self.columns is None:
            return Outputs((), self.table or None)
        return Outputs(tuple((name, ColumnName(self.table, name)) for name in self.columns))


@dataclass(slots=True)
class CommonName:
    """A common table while its statement is read. `reading` is true within its own query.

    `names` are those of ``WITH name (a, b)``.
    """

    outputs: Outputs = field(default_factory=Outputs)
    names: tuple[str, ...] = ()
    references: int = 0
    reading: bool = False


class Resolved(Record):
    """A column, the name of its source, and whether that belongs to the query itself."""

    column: ColumnName
    alias: str
    local: bool


@dataclass(slots=True)
class Scope:
    """The sources of one query. `correlated` becomes true when a column of an outer query is found.

    `within` is the query whose FROM has this one, unless it is LATERAL.
    """

    parent: Scope | None
    level: int
    sources: list[Source] = field(default_factory=list)
    common: dict[str, CommonName] = field(default_factory=dict)
    within: Scope | None = None
    correlated: bool = False

    def without_sources(self) -> Scope:
        """Return a scope for a subquery in FROM that is not LATERAL: it does not see its neighbours."""
        return Scope(self.parent, self.level, [], self.common, self)

    def common_table(self, name: str) -> CommonName | None:
        """Return the common table of a name, the innermost first."""
        return next((scope.common[name] for scope in self._outward() if name in scope.common), None)

    def resolve(self, fields: tuple[str, ...]) -> Resolved | None:
        """Resolve a column, the innermost query first; None if no source has it."""
        *qualifier, column = fields
        passed: list[Scope] = []
        for scope in self._outward():
            named = (source for source in scope.sources if _is_named(source, qualifier))
            guessed = ((source, source.guessed(column)) for source in named)
            found = next(guessed, None) if qualifier else scope._plain(column)
            if found is not None:
                for inner in passed:
                    inner.correlated = True
                    if inner.within is not None:
                        inner.within.correlated = True
                return Resolved(found[1], found[0].name, scope is self)
            passed.append(scope)
        return None

    def source(self, qualifier: list[str]) -> Source | None:
        """Return the source of ``name.*``."""
        sources = (source for scope in self._outward() for source in scope.sources)
        return next((source for source in sources if _is_named(source, qualifier)), None)

    def _outward(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def _plain(self, column: str) -> tuple[Source, ColumnName] | None:
        sources = [source for source in self.sources if not source.qualified]
        for source in sources:
            found = source.certain(column)
            if found is not None:
                return source, found
        unknown = [source for source in sources if not source.known]
        if len(unknown) == 1 and all(source.name != column for source in sources):
            return unknown[0], unknown[0].guessed(column)
        return None


def table_name(schema: str, name: str, tables: Mapping[str, Collection[str]]) -> str:
    """Return the name of a table as the catalogue has it.

    A name without a schema that the catalogue does not have is found in another schema, if only one has it.
    """
    full = f"{schema}.{name}" if schema and schema != "public" else name
    if schema or full in tables:
        return full
    end = f".{name}"
    elsewhere = [table for table in tables if table.endswith(end)]
    return elsewhere[0] if len(elsewhere) == 1 else full


def _is_named(source: Source, qualifier: list[str]) -> bool:
    if len(qualifier) > 1:
        tables = (f"{qualifier[-2]}.{qualifier[-1]}", qualifier[-1])
        return source.name == qualifier[-1] and source.table in tables
    return source.name == qualifier[0]
