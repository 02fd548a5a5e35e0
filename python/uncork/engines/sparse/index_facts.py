"""Read what the size of an index depends on from a copy that has statistics and no rows.

The bounds of a column's histogram and its most common values serve as a sample of the values.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import psycopg

from uncork.engines.sparse.estimate import Entries, KeyColumn, btree_pages, entries_of, other_pages

_INDEX: Final = """
SELECT i.indrelid::regclass::text, am.amname::text, i.indisunique,
       coalesce((SELECT option_value::int FROM pg_options_to_table(c.reloptions)
                  WHERE option_name = 'fillfactor'), 90),
       i.indnkeyatts, pg_get_expr(i.indpred, i.indrelid), c.relname::text, pg_relation_filepath(c.oid),
       coalesce(pg_relation_size(i.indrelid), 0) / 8192
  FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am am ON am.oid = c.relam
 WHERE i.indexrelid = %s
"""
# A function of one column has at most as many different values as the column.
_COLUMNS: Final = """
SELECT a.attnum::int, pg_get_indexdef(i.indexrelid, a.attnum, true), a.attlen::int, a.attalign::text,
       coalesce(s.avg_width, 0), coalesce(s.null_frac, 0), coalesce(s.n_distinct, 0), s.most_common_freqs,
       i.indkey[a.attnum - 1] = 0, oc.opcname::text, t.typcategory = 'A',
       s.elem_count_histogram[array_length(s.elem_count_histogram, 1)], s.most_common_elem_freqs,
       t.typname::text, format_type(b.atttypid, b.atttypmod), quote_ident(b.attname),
       s.histogram_bounds::text, s.most_common_vals::text
  FROM pg_index i
  JOIN pg_attribute a ON a.attrelid = i.indexrelid
  JOIN pg_class r ON r.oid = i.indrelid
  JOIN pg_namespace n ON n.oid = r.relnamespace
  LEFT JOIN pg_attribute b ON b.attrelid = i.indrelid
        AND b.attnum = coalesce(nullif(i.indkey[a.attnum - 1], 0), (
            SELECT min(d.refobjsubid) FROM pg_depend d
             WHERE d.classid = 'pg_class'::regclass AND d.objid = i.indexrelid AND d.refobjid = i.indrelid
               AND d.refobjsubid > 0 AND d.refobjsubid <> ALL (i.indkey) HAVING count(*) = 1))
  LEFT JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN pg_opclass oc ON oc.oid = i.indclass[a.attnum - 1]
  LEFT JOIN pg_stats s ON s.schemaname = n.nspname AND s.tablename = r.relname AND s.attname = b.attname
        AND s.inherited = (r.relkind = 'p')
 WHERE i.indexrelid = %s ORDER BY a.attnum
"""
_WIDTH: Final = 32
"""The width that the planner assumes for a text without statistics."""
_ALIGNMENT: Final = {"c": 1, "s": 2, "i": 4, "d": 8}
_NOT_MERGED: Final = frozenset({"numeric", "float4", "float8", "jsonb", "interval"})
"""Types whose equal values may differ in their bytes: a B-tree does not merge equal keys."""
_ENTRIES: Final = (
    ("trgm_ops", "unnest(show_trgm({0}))"),
    (
        "jsonb_path_ops",
        'jsonb_path_query({0}, \'$.** ? (@.type() != "object" && @.type() != "array")\')::text',
    ),
    ("jsonb_ops", "regexp_split_to_table({0}::text, '[][{{}},:\" ]+')"),
    ("tsvector_ops", "unnest(tsvector_to_array({0}))"),
)
"""How to list the entries of a value in a GIN index, by the end of the operator class's name."""
_SHORT: Final = 130
"""Values of up to so many bytes have a header of one byte instead of four on disk."""


class IndexFacts:
    """Estimates indexes of a copy over a connection of its superuser."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def key_columns(self, oid: int) -> list[KeyColumn]:
        """Return the columns of an index with their widths, for its height. Plans nothing."""
        return [self._key_column(column, 0, 0.0, 0.0) for column in self._columns(oid)]

    def estimate(self, oid: int) -> tuple[str, str | None, int, list[KeyColumn] | None]:
        """Return an index's name, its file, the pages it would have, and its columns if it is a B-tree."""
        (row,) = self._connection.execute(_INDEX.encode(), (oid,)).fetchall()
        table, method, unique, fillfactor, keys, predicate, name, path, table_pages = row
        whole = rows = self._rows(table)
        if predicate:
            rows = self._rows(f"{table} WHERE {predicate}")
        found = self._columns(oid)
        columns = [self._key_column(column, keys, whole, rows) for column in found]
        if method == "btree":
            return name, path, btree_pages(rows, columns, unique=unique, fillfactor=fillfactor), columns
        entries = [self._entries(column, rows) for column in found] if method == "gin" else []
        return name, path, other_pages(method, rows, columns, table_pages, entries), None

    def _columns(self, oid: int) -> list[tuple[Any, ...]]:
        return self._connection.execute(_COLUMNS.encode(), (oid,)).fetchall()

    def _rows(self, what: str) -> float:
        """Return how many rows the planner expects."""
        (row,) = self._connection.execute(
            f"EXPLAIN (FORMAT JSON) SELECT 1 FROM ONLY {what}".encode()
        ).fetchall()
        return float(row[0][0]["Plan"]["Plan Rows"])

    def _key_column(self, column: tuple[Any, ...], keys: int, whole: float, rows: float) -> KeyColumn:
        """Return a column of an index over `rows` of the table's `whole` rows."""
        place, _, length, align, width, nulls, distinct, common, *_ = column
        # Without statistics, count each value as different: the index is larger then.
        different = -distinct * whole if distinct < 0 else distinct or whole
        if 0 < rows < whole:
            different *= 1 - (1 - rows / whole) ** (whole / max(1.0, different))
        return KeyColumn(
            width or _WIDTH,
            length,
            _ALIGNMENT[align],
            nulls,
            different,
            tuple(common or ()),
            column[13] not in _NOT_MERGED,
            place > keys,
            self._sizes(column) if length < 0 else (),
        )

    def _sizes(self, column: tuple[Any, ...]) -> tuple[int, ...]:
        """Return the sizes on disk of sampled values of a column or of an expression."""
        sizes = [
            size for (size,) in self._sampled(column, "pg_column_size({0})", common=True) if size is not None
        ]
        return tuple(size - 3 if size <= _SHORT else size for size in sizes)

    def _entries(self, column: tuple[Any, ...], rows: float) -> Entries:
        """Return how many entries the values of a column have in a GIN index."""
        opclass, array, elements, frequencies = column[9:13]
        if array:
            # The array ends with the least and the greatest frequency, and that of NULL.
            return Entries.of_array(
                rows, float(elements or 1), [float(frequency) for frequency in (frequencies or ())[:-3]]
            )
        listing = next((text for end, text in _ENTRIES if opclass.endswith(end)), None)
        values: dict[int, set[str]] = {}
        if listing is not None:
            for number, entry in self._sampled(column, f"n, {listing}", common=False):
                values.setdefault(number, set()).add(entry)
        return entries_of(list(values.values()), rows, max(1.0, column[4] / 12))

    def _sampled(self, column: tuple[Any, ...], what: str, *, common: bool) -> Sequence[tuple[Any, ...]]:
        """Return an expression of each sampled value; nothing if the server does not compute it."""
        kind, name, bounds, most_common = column[14:18]
        arrays = [text for text in (bounds, most_common if common else None) if text is not None]
        if not arrays and most_common is not None:
            arrays = [most_common]
        if not arrays or kind is None:
            return []
        expression = what.format(f"({column[1]})")
        values = " UNION ALL ".join(f"SELECT unnest(%s::{kind}[])" for _ in arrays)
        numbered = f"SELECT v AS {name}, row_number() OVER () AS n FROM ({values}) AS listed (v)"
        query = f"SELECT {expression} FROM ({numbered}) AS sampled"
        with suppress(psycopg.Error):
            return self._connection.execute(
                query.replace("%", "%%").replace("%%s::", "%s::").encode(), arrays
            ).fetchall()
        return []
