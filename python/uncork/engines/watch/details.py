"""Read sizes, widths of columns and definitions of the tables and indexes that matter most.

Each of these makes the server open a relation, lock it for a moment, and keep it in the memory of
uncork's session. In a database with many thousand relations, uncork therefore reads them only for
the tables that the statements use and for the largest ones. The size of any other relation is the
one of its last VACUUM or ANALYZE, its columns have no widths, and its indexes no definition.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from uncork.engines.watch import catalogue_sql
from uncork.model.tables.rows import Rows

Ask = Callable[[str, Mapping[str, Any] | None], list[tuple[Any, ...]]]

MOST_RELATIONS: Final = 1000
"""Tables and indexes to read in detail: one costs the server about 0.15 ms and 4 KiB of memory."""
_AT_ONCE: Final = 100
"""Relations in one query: about 10 ms, so that few samples are late. Each is locked for less than that."""
_ROWS_PER_PAGE: Final = 100
"""To rank tables that were never analysed: rows of 80 bytes."""
_UNKNOWN: Final = (None, None)
_OF_TABLE: Final = ("main_bytes", "bytes", "index_bytes", "row_width")
_OF_KEY: Final = ("columns", "null_share", "distinct_values", "top_share")
_OF_INDEX: Final = ("bytes", "key_width", "keys", "included", "definition", "expressions", "predicate")


@dataclass(frozen=True, slots=True)
class Details:
    """What was read of the `chosen` tables and their indexes, by oid.

    `sizes` has the bytes of a relation's main file and of all its files; `widths` the mean widths of columns
    by number; `definitions` of indexes the definition, the expressions and the predicate, and None for an
    index that was dropped meanwhile; `key_columns` the columns of foreign keys, and of one column the
    fraction of nulls, the number of distinct values as in pg_stats and the share of the most common value.
    `failed` has the reason why something could not be read.
    """

    chosen: frozenset[int] = frozenset()
    sizes: Mapping[int, tuple[int | None, int | None]] = field(default_factory=dict)
    widths: Mapping[int, Mapping[int, float]] = field(default_factory=dict)
    definitions: Mapping[int, tuple[str, str, str] | None] = field(default_factory=dict)
    key_columns: Mapping[int, tuple[str, float | None, float | None, float | None]] = field(
        default_factory=dict
    )
    failed: Mapping[str, str] = field(default_factory=dict)


def read_details(
    ask: Ask, tables: Rows, indexes: Rows, used: Collection[int], between: Callable[[], None]
) -> Details:
    """Read the details of tables that matter: the `used` ones, then the largest.

    `ask` returns the rows of a query; `between` is called after each query.
    """
    chosen = chosen_tables(tables, indexes, used)
    own = frozenset(chosen)
    members: list[tuple[int, str, str]] = [
        table for table in zip(*tables.columns("oid", "schema", "name"), strict=True) if table[0] in own
    ]
    of_indexes = zip(*indexes.columns("table_oid", "oid", "schema", "name"), strict=True)
    members += [(oid, schema, name) for table, oid, schema, name in of_indexes if table in own]
    failed: dict[str, str] = {}
    sizes: dict[int, tuple[int | None, int | None]] = {}
    widths: dict[int, dict[int, float]] = defaultdict(dict)
    definitions: dict[int, tuple[str, str, str] | None] = {}
    keys: dict[int, tuple[str, float | None, float | None, float | None]] = {}

    def rows(what: str, query: str, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        try:
            return ask(query, given)
        except psycopg.Error as error:
            failed[what] = error.diag.message_primary or str(error).partition("\n")[0].strip()
            return []
        finally:
            between()

    for first in range(0, len(members), _AT_ONCE):
        part = members[first : first + _AT_ONCE]
        given = {
            "oids": [oid for oid, _, _ in part],
            "schemas": sorted({schema for _, schema, _ in part}),
            "names": sorted({name for _, _, name in part}),
            "locked": [oid for (oid,) in rows("locks", catalogue_sql.LOCKED, {})],
        }
        for oid, main, whole in rows("sizes", catalogue_sql.SIZES, given):
            sizes[oid] = (main, whole)
        for oid, number, width in rows("widths of columns", catalogue_sql.WIDTHS, given):
            widths[oid][number] = float(width)
        for oid, text, expressions, predicate in rows("indexes", catalogue_sql.DEFINITIONS, given):
            definitions[oid] = None if text is None else (text, expressions or "", predicate or "")
        for oid, names, *found in rows("foreign keys", catalogue_sql.KEY_COLUMNS, given):
            nulls, distinct, top = (None if figure is None else float(figure) for figure in found)
            keys[oid] = (names, nulls, distinct, top)
    return Details(own, sizes, widths, definitions, keys, failed)


# ---- pure ----


def chosen_tables(
    tables: Rows, indexes: Rows, used: Collection[int], most: int = MOST_RELATIONS
) -> tuple[int, ...]:
    """Return the tables to read in detail: the `used` ones, then the largest with their indexes.

    Together with their indexes there are at most `most`, except the used ones. Pure.
    """
    pages: dict[int, int] = defaultdict(int)
    relations: dict[int, int] = defaultdict(lambda: 1)
    for oid, size in zip(*indexes.columns("table_oid", "pages"), strict=True):
        pages[oid] += size
        relations[oid] += 1
    for oid, main, toast, live in zip(*tables.columns("oid", "pages", "toast_pages", "live"), strict=True):
        pages[oid] += max(main + toast, (live or 0) // _ROWS_PER_PAGE)
    known = tables.column("oid")
    wanted = set(used)
    ranked = sorted(known, key=lambda oid: (oid not in wanted, -pages[oid], oid))
    chosen, many = [], 0
    for oid in ranked:
        many += relations[oid]
        if many > most and oid not in wanted:
            break
        chosen.append(oid)
    return tuple(chosen)


def add_index_scans(tables: Rows, indexes: Rows, table_of: Mapping[int, int]) -> None:
    """Add up the scans of each table's indexes and the rows they fetched, as pg_stat_user_tables does.

    `table_of` has the table of each index.
    """
    scans: dict[int | None, int] = defaultdict(int)
    fetched: dict[int | None, int] = defaultdict(int)
    for index, many, rows in zip(*indexes.columns("oid", "scans", "fetched"), strict=True):
        oid = table_of.get(index)
        scans[oid] += many
        fetched[oid] += rows
    own = zip(*tables.columns("oid", "fetched"), strict=True)
    sums = [(scans[oid], fetched[oid] + rows) if oid in scans else (0, 0) for oid, rows in own]
    tables.add_columns(("index_scans", "index_rows"), sums)


def add_details(tables: Rows, indexes: Rows, keys: Rows, details: Details, block: int) -> Rows:
    """Add the columns for sizes, widths and definitions to tables and foreign keys; return the indexes.

    `block` is the size of a page in bytes. Indexes that were dropped meanwhile are left out.
    """
    dropped = {oid for oid, known in details.definitions.items() if known is None}
    if dropped:
        oids = indexes.column("oid")
        lasting = (values for oid, values in zip(oids, indexes.values, strict=True) if oid not in dropped)
        indexes = Rows(indexes.names, lasting)
    indexes.add_columns(_OF_INDEX, list(_of_indexes(indexes, details, block)))
    index_bytes: dict[int, int] = defaultdict(int)
    for oid, size in zip(*indexes.columns("table_oid", "bytes"), strict=True):
        index_bytes[oid] += size or 0
    tables.add_columns(_OF_TABLE, list(_of_tables(tables, details, block, index_bytes)))
    columns = details.key_columns
    named = [
        columns.get(oid) or (f"columns {numbers}", None, None, None)
        for oid, numbers in zip(*keys.columns("oid", "numbers"), strict=True)
    ]
    keys.add_columns(_OF_KEY, named)
    return indexes


def _of_tables(
    tables: Rows, details: Details, block: int, index_bytes: Mapping[int, int]
) -> Iterator[tuple[Any, ...]]:
    for oid, kind, pages, toast in zip(*tables.columns("oid", "kind", "pages", "toast_pages"), strict=True):
        of_indexes = index_bytes.get(oid, 0)
        if oid in details.chosen:
            widths = details.widths.get(oid)
            width = None if widths is None else sum(widths.values())
            yield (*details.sizes.get(oid, _UNKNOWN), of_indexes, width)
        elif kind == "partitioned table":
            yield (None, None, of_indexes, None)
        else:
            yield (pages * block, (pages + toast) * block, of_indexes, None)


def _of_indexes(indexes: Rows, details: Details, block: int) -> Iterator[tuple[Any, ...]]:
    known: dict[tuple[str, ...], tuple[str, str]] = {}
    names = ("oid", "table_oid", "pages", "has_expressions", "has_predicate", "key_columns")
    parts = indexes.columns("key", "class", "collation", "option")
    rows = zip(zip(*parts, strict=True), zip(*indexes.columns(*names), strict=True), strict=True)
    for vectors, (oid, table, pages, expressions, predicate, many) in rows:
        found = known.get((*vectors, many))
        if found is None:
            found = known[*vectors, many] = _keys(vectors, many)
        keys, included = found
        unread = f"(not read: {oid})"
        texts = details.definitions.get(oid)
        if texts is None:
            texts = ("", unread if expressions else "", unread if predicate else "")
        if table in details.chosen:
            size = details.sizes.get(oid, _UNKNOWN)[0]
            yield (size, _key_width(table, oid, keys, included, details.widths), keys, included, *texts)
        else:
            yield (pages * block, None, keys, included, *texts)


def _keys(vectors: Sequence[str], many: int) -> tuple[str, str]:
    """Return number:class:collation:option of each key column, and the numbers of included columns.

    `vectors` are those of pg_index: numbers, classes, collations and options, separated by spaces.
    """
    numbers, classes, collations, options = vectors
    columns = numbers.split()
    keys = zip(columns[:many], classes.split(), collations.split(), options.split(), strict=False)
    return ",".join(map(":".join, keys)), ",".join(columns[many:])


def _key_width(
    table: int, index: int, keys: str, included: str, widths: Mapping[int, Mapping[int, float]]
) -> float | None:
    """Add up the widths of an index's columns. Widths of expressions are recorded under the index itself."""
    of_table, own = widths.get(table, {}), widths.get(index, {})
    columns = [int(key.split(":")[0]) for key in keys.split(",") if key]
    columns += [int(number) for number in included.split(",") if number]
    found = [
        own.get(place) if number == 0 else of_table.get(number) for place, number in enumerate(columns, 1)
    ]
    known = [width for width in found if width is not None]
    return sum(known) if len(known) == len(columns) else None
