"""Read the catalogue of a watched database: the tables, functions and views that its statements use."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from uncork.engines.watch import catalogue_sql
from uncork.model.redaction import without_literal_secrets
from uncork.model.tables.register import TABLES

Row = dict[str, Any]
Ask = Callable[[str, Mapping[str, Any] | None], list[tuple[Any, ...]]]

_COLUMNS: Final = (
    *("table_oid", "number", "name", "type", "storage_type", "not_null", "default", "generated", "collation"),
    *("statistics_target", "readable"),
)
_STATISTICS: Final = ("null_fraction", "width", "distinct", "correlation")
_CONSTRAINTS: Final = (
    *("oid", "table_oid", "name", "kind", "columns", "definition", "valid", "index", "referred_oid"),
    *("referred_columns", "on_delete", "on_update"),
)
_TRIGGERS: Final = (
    *("oid", "table_oid", "name", "function_oid", "timing", "per_row", "events", "function_schema"),
    *("function", "definition", "enabled"),
)
_POLICIES: Final = ("oid", "table_oid", "name", "command", "permissive", "condition", "volatile", "roles")
_FUNCTIONS: Final = (
    *("oid", "schema", "name", "language", "volatility", "parallel", "strict", "returns_set", "cost"),
    *("source", "configured", "parsed"),
)
_AT_ONCE: Final = 5
"""Tables in one query that locks them: the locks last until it ends.

On a busy machine this was up to 46 ms. With 25 tables at once, it was up to 106 ms (bench/BENCHMARKS.md)."""
_LONGEST_NS: Final = 2_000_000_000
"""Time after which no further view or function body is printed. Printing one takes about a millisecond."""


@dataclass(frozen=True, slots=True)
class CatalogueScope:
    """What to read: tables by oid with schema and name, and functions and views by the `words` of statements.

    `roles` are the roles that ran the statements. With `values`, the statistics of columns include
    common values and bounds of the histogram.
    """

    tables: Mapping[int, tuple[str, str]]
    words: Collection[str]
    values: bool = True
    roles: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class ReadCatalogue:
    """Rows by stored table, and what could not be read, with the server's reason."""

    tables: Mapping[str, list[Row]]
    failed: Mapping[str, str]


def read_catalogue(ask: Ask, version: int, scope: CatalogueScope) -> ReadCatalogue:
    """Read the catalogue; `ask` returns the rows of a query.

    Each query is a transaction and reads few tables, and definitions of views are read one by one,
    so that no lock is held for long.
    """
    reader = _Reader(ask, version, scope)
    triggers = reader.of_tables("triggers", catalogue_sql.TRIGGERS, _TRIGGERS)
    tables = {
        "database_columns": reader.columns(),
        "database_constraints": reader.of_tables("constraints", catalogue_sql.CONSTRAINTS, _CONSTRAINTS),
        "database_triggers": triggers,
        "database_policies": reader.policies(),
        "database_functions": reader.functions({row["function_oid"] for row in triggers}),
        "database_views": reader.views(),
        "database_table_options": reader.options(),
        "database_server_settings": reader.settings(),
        "database_role_settings": reader.rows(
            "settings of roles", catalogue_sql.ROLE_SETTINGS, _names("database_role_settings")
        ),
    }
    return ReadCatalogue(
        {name: [_stored(row) for row in rows] for name, rows in tables.items()}, reader.failed
    )


class _Reader:
    def __init__(self, ask: Ask, version: int, scope: CatalogueScope) -> None:
        self._ask = ask
        self._version = version
        self.failed: dict[str, str] = {}
        self._deadline_ns = time.monotonic_ns() + _LONGEST_NS
        self._given: dict[str, Any] = {
            "tables": list(scope.tables),
            "schemas": sorted({schema for schema, _ in scope.tables.values()}),
            "names": sorted({name for _, name in scope.tables.values()}),
            "words": sorted(scope.words),
            "values": scope.values,
            "roles": sorted(scope.roles),
        }
        self._given["locked"] = [oid for (oid,) in self._answer("locks", catalogue_sql.LOCKED)]

    def columns(self) -> list[Row]:
        found = self.of_tables("columns", catalogue_sql.columns(self._version), _COLUMNS)
        statistics = {
            (table, name): figures
            for table, name, *figures in self._answer(
                "statistics of columns", catalogue_sql.STATISTICS, self._given
            )
        }
        for row in found:
            *figures, common, frequencies, bounds = statistics.get(
                (row["table_oid"], row["name"]), [None] * (len(_STATISTICS) + 3)
            )
            row.update(zip(_STATISTICS, figures, strict=True))
            row["common"] = None if common is None else list(zip(common, frequencies, strict=False))
            row["bounds"] = bounds
        return found

    def policies(self) -> list[Row]:
        """Return policies; one that refers to a locked table has no condition."""
        found = self.of_tables("policies of row security", catalogue_sql.POLICIES, _POLICIES)
        for row in found:
            row["condition"] = without_literal_secrets(row["condition"])
        return found

    def functions(self, of_triggers: Collection[int]) -> list[Row]:
        given = {**self._given, "triggers": list(of_triggers)}
        found = self.rows("functions", catalogue_sql.functions(self._version), _FUNCTIONS, given)
        for row in found:
            if row.pop("parsed") and row["language"] == "sql":
                row["source"] = self._printed(catalogue_sql.FUNCTION_BODY, row["oid"], "functions") or ""
            row["source"] = without_literal_secrets(row["source"])
        return found

    def views(self) -> list[Row]:
        """Return views; a view that another session has locked has no definition."""
        names = ("oid", "schema", "name", "materialized", "locked")
        found = self.rows("views", catalogue_sql.VIEWS, names, self._given)
        for row in found:
            text = None
            if not row.pop("locked"):
                text = self._printed(catalogue_sql.VIEW_DEFINITION, row["oid"], "views")
            row["definition"] = None if text is None else without_literal_secrets(text)
        return found

    def options(self) -> list[Row]:
        """Return storage options; those of TOAST begin with ``toast.``."""
        names = ("table_oid", "options", "toast", "persistence", "partition_key", "bounds", "toast_bytes")
        found = self.of_tables("options of tables", catalogue_sql.OPTIONS, names)
        for row in found:
            toast = [f"toast.{option}" for option in row.pop("toast") or ()]
            given = (option.partition("=") for option in [*(row["options"] or ()), *toast])
            row["options"] = {name: value for name, _, value in given}
        return found

    def settings(self) -> list[Row]:
        """Return settings as new sessions of this role have them, not as uncork set them for itself."""
        names = _names("database_server_settings")
        own = f"{catalogue_sql.OWN_SETTINGS}; {catalogue_sql.SERVER_SETTINGS}"
        return [
            *self.rows("server settings", own, names),
            *self.rows("server settings", catalogue_sql.locale(self._version), names),
        ]

    def of_tables(self, what: str, query: str, names: Sequence[str]) -> list[Row]:
        """Return a query's rows for all tables, some tables at a time.

        What another session dropped meanwhile still has a row, but no definition, and is left out.
        """
        tables = self._given["tables"]
        return [
            row
            for first in range(0, len(tables), _AT_ONCE)
            for row in self.rows(
                what, query, names, {**self._given, "tables": tables[first : first + _AT_ONCE]}
            )
            if row.get("definition", "") is not None
        ]

    def rows(
        self, what: str, query: str, names: Sequence[str], given: Mapping[str, Any] | None = None
    ) -> list[Row]:
        """Return a query's rows; if the server refuses, none."""
        return [dict(zip(names, row, strict=True)) for row in self._answer(what, query, given)]

    def _answer(self, what: str, query: str, given: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        try:
            return self._ask(query, given)
        except psycopg.Error as error:
            self.failed[what] = error.diag.message_primary or " ".join(str(error).split())
            return []

    def _printed(self, query: str, oid: int, what: str) -> str | None:
        """Return the text of a view or function; None if the server refuses, or there is no time left."""
        if time.monotonic_ns() > self._deadline_ns:
            self.failed[what] = "no time left to print further definitions"
            return None
        rows = self._answer(what, query, {"oid": oid})
        return rows[0][0] if rows else None


def _names(table: str) -> tuple[str, ...]:
    return tuple(column.name for column in TABLES[table].columns)


def _stored(row: Row) -> Row:
    """Return a row as it is stored: lists and options as JSON."""
    return {
        name: json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
        for name, value in row.items()
    }
