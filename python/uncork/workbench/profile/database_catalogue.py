"""Read the catalogue of a watched database, as far as the watched statements use it, for storing."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from uncork.engines.watch.catalogue import CatalogueScope
from uncork.engines.watch.connection import ServerSnapshot, ServerWatch
from uncork.model.tables.catalogue import CATALOGUE_TABLES
from uncork.profile.used_tables import UsedTables, used_tables, words_of

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]

_MOST_STATEMENTS: Final = 200
"""Statements whose texts are searched for names: those with the most execution time, then sampled ones."""
_FUNCTIONS: Final = "database_functions"


@dataclass(frozen=True, slots=True)
class FoundCatalogue:
    """Rows by stored table, and facts: what could not be read, and how much was left out."""

    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UsedObjects:
    """The tables that the watched statements use, and the words of these statements."""

    tables: UsedTables
    words: Collection[str]


def find_used(
    before: ServerSnapshot, after: ServerSnapshot, top: Collection[str], sampled: Iterable[str]
) -> UsedObjects:
    """Return what the watched statements use.

    `top` are the texts of the costliest statements, the costliest first; `sampled` those of samples.
    """
    texts = [*islice(top, _MOST_STATEMENTS), *islice(sampled, max(0, _MOST_STATEMENTS - len(top)))]
    words = words_of(texts)
    used = used_tables(
        before.tables["database_relations"],
        after.tables["database_relations"],
        after.tables["database_foreign_keys"],
        words,
        read="tables" not in before.failed,
    )
    return UsedObjects(used, words)


def find_catalogue(
    server: ServerWatch,
    before: ServerSnapshot,
    after: ServerSnapshot,
    objects: UsedObjects,
    roles: Collection[str],
    *,
    values: bool,
) -> FoundCatalogue:
    """Read the catalogue of the tables, functions and views that the watched statements use.

    `roles` ran the statements. Without `values`, no values of columns are read.

    Raises:
        ServerCrash: if the server goes away.
    """
    used = objects.tables
    names = {row["oid"]: (row["schema"], row["name"]) for row in used.rows}
    found = server.catalogue(CatalogueScope(names, objects.words, values, roles))
    counted = {row["oid"]: row for row in after.tables[_FUNCTIONS]}
    functions = [
        {**counted.get(row["oid"], {}), **row, "moment": "after"} for row in found.tables[_FUNCTIONS]
    ]
    wanted = {row["oid"] for row in functions}
    earlier = [{**row, "moment": "before"} for row in before.tables[_FUNCTIONS] if row["oid"] in wanted]
    analysed = {row["oid"] for row in used.rows if row["analysed_us"] is not None}
    hidden = {
        row["table_oid"]
        for row in found.tables["database_columns"]
        if not row["readable"] and row["table_oid"] in analysed
    }
    facts = {
        "tables": len(used.rows),
        "tables_left_out": used.more,
        "tables_hidden": len(hidden),
        "values": values,
        "failed": dict(found.failed),
    }
    return FoundCatalogue({**found.tables, _FUNCTIONS: [*earlier, *functions]}, facts)


def catalogue_tables(found: FoundCatalogue) -> dict[str, pa.Table]:
    """Return the catalogue as stored tables."""
    from uncork.store.profile_tables import rows_table  # noqa: PLC0415 -- not before the first sample

    return {
        table.name: rows_table(table.name, found.tables.get(table.name, ())) for table in CATALOGUE_TABLES
    }
