"""A database with the tables, the statistics and the sizes of a source, and without its rows.

Its planner makes the plans of the source. Nothing can be executed on it. A candidate index is
created while its table is empty, and then given the size that it would have. Candidates are invalid
for the planner unless `shown` says otherwise.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg

from uncork.engines import planner_statistics
from uncork.engines.connecting import connect_errors, connect_to_watch, reason_of
from uncork.engines.planner_statistics import restore_columns, restore_relations
from uncork.engines.sparse.estimate import (
    Entries,
    KeyColumn,
    btree_height,
    btree_pages,
    entries_of,
    other_pages,
)
from uncork.engines.sparse.source_sizes import Relation, SourceSizes, read_sizes
from uncork.engines.watch.planner import Planner
from uncork.engines.watch.session import WatchSession
from uncork.errors import SetupError

RESTORES: Final = planner_statistics.RESTORES
"""The only version whose statistics can be restored, and that the embedded server has."""
SETTINGS: Final = {
    # A check of checksums would only warn of the pages that were written beside the server.
    "ignore_checksum_failure": True,
    "autovacuum": False,
    "shared_buffers": "32MB",
    "shared_preload_libraries": "",
    "fsync": False,
}
"""Settings for a server that is to hold a sparse copy."""
_SOURCE: Final = (
    "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY, ISOLATION LEVEL REPEATABLE READ",
    "SET statement_timeout = '30s'",
    "SET lock_timeout = '1s'",
)
_PAGE: Final = 8192
_CREATED: Final = "SELECT oid FROM pg_class WHERE relkind IN ('i', 'I') AND relpersistence <> 't'"
_FILES: Final = """
SELECT n.nspname::text, c.relname::text, c.oid::int8, pg_relation_filepath(c.oid), am.amname::text
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_am am ON am.oid = c.relam
 WHERE c.relkind IN ('r', 'm', 'i') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
"""

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


def read_source_sizes(source: str) -> tuple[int, SourceSizes | None]:
    """Return the major version of a source and, from version `RESTORES`, what its planner knows.

    Raises ConnectError if the source cannot be reached or read.
    """
    with connect_errors(), connect_to_watch(source) as connection:
        for command in _SOURCE:
            connection.execute(command.encode())
        version = connection.info.server_version // 10_000
        return version, read_sizes(connection) if version == RESTORES else None


class SparseCopy:
    """A sparse copy in a database whose schema was created, with no rows.

    The server is on this machine, runs with `SETTINGS`, and this role is its superuser. `candidates` are
    statements that create indexes, executed one by one.

    Raises:
        SetupError: if the server or its files do not accept the sizes.
    """

    def __init__(self, conninfo: str, sizes: SourceSizes, candidates: Sequence[str]) -> None:
        self._conninfo, self._settings = conninfo, sizes.settings
        self.missing: list[str] = []
        self.reasons: dict[int, str] = {}
        """Why a candidate, by its place, was not created."""
        self.indexes: dict[int, dict[str, int]] = {}
        """The pages of each candidate's indexes, by its place and their names."""
        with connect_errors():
            self._connection = connect_to_watch(conninfo)
        try:
            self._make(sizes, candidates)
        except (psycopg.Error, OSError, ValueError) as error:
            self.close()
            reason = " ".join(str(error).split())
            raise SetupError(f"the copy does not accept the sizes of the source: {reason}") from error
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    @contextmanager
    def planning(self) -> Iterator[Planner]:
        """Plan statements on the copy, in a session with the settings of the source."""
        with closing(WatchSession(self._conninfo)) as session:
            _apply(session.connection, self._settings)
            yield Planner(session, RESTORES)

    def show(self, names: Collection[str]) -> None:
        """Let the planner use these indexes of candidates, and no other ones."""
        self._connection.execute(
            b"UPDATE pg_index SET indisvalid = (c.relname = ANY (%s)) FROM pg_class c "
            b"WHERE c.oid = indexrelid AND indexrelid = ANY (%s)",
            (list(names), self._candidates),
        )

    # ---- steps ----

    def _make(self, sizes: SourceSizes, candidates: Sequence[str]) -> None:
        if sizes.block_size != _PAGE:
            raise SetupError(f"the source has pages of {sizes.block_size} bytes, the copy of {_PAGE}")
        (folder,) = self._row("SHOW data_directory")
        self._folder = Path(folder)
        _apply(self._connection, sizes.settings)
        created = self._create(candidates)
        self._candidates = [oid for oids in created.values() for oid in oids]
        self.show(())
        self._restore(sizes)
        self._extend(sizes.relations)
        for place, oids in created.items():
            self.indexes[place] = dict(self._give_size(oid) for oid in oids)

    def _create(self, candidates: Sequence[str]) -> dict[int, list[int]]:
        """Create the candidates' indexes on the empty tables; return their oids by the candidate's place."""
        created = {}
        known = {oid for (oid,) in self._connection.execute(_CREATED.encode()).fetchall()}
        for place, text in enumerate(candidates):
            try:
                self._connection.execute(text.encode())
            except psycopg.Error as error:
                if self._connection.broken:
                    raise
                self.reasons[place] = reason_of(error)
                continue
            now = {oid for (oid,) in self._connection.execute(_CREATED.encode()).fetchall()}
            created[place] = sorted(now - known)
            if not created[place]:
                self.reasons[place] = "it creates no index"
            known = now
        return created

    def _restore(self, sizes: SourceSizes) -> None:
        """Store the statistics of the source. A relation that the copy lacks is listed in `missing`."""
        present = {
            (schema, name)
            for schema, name in self._connection.execute(
                b"SELECT n.nspname::text, c.relname::text FROM pg_class c "
                b"JOIN pg_namespace n ON n.oid = c.relnamespace"
            ).fetchall()
        }
        self.missing += [
            f"the copy lacks {relation.schema}.{relation.name}"
            for relation in sizes.relations
            if (relation.schema, relation.name) not in present
        ]
        self.missing += [f"the values of CREATE STATISTICS {name} are not copied" for name in sizes.extended]
        there = [relation for relation in sizes.relations if (relation.schema, relation.name) in present]
        restore_relations(self._connection, there, visible=True)
        restore_columns(self._connection, [row for row in sizes.statistics if (row[0], row[1]) in present])

    def _extend(self, relations: Sequence[Relation]) -> None:
        """Extend the files of tables and indexes, and check that the server sees it."""
        pages = {(relation.schema, relation.name): relation.pages for relation in relations}
        for schema, name, oid, path, method in self._connection.execute(_FILES.encode()).fetchall():
            wanted = pages.get((schema, name), 0)
            if wanted and oid not in self._candidates:
                # Planning anything on a table would make the server read the metapages of its indexes.
                columns = None
                if method == "btree":
                    columns = [self._key_column(column, 0, 0.0, 0.0) for column in self._columns(oid)]
                self._give_pages(oid, path, wanted, columns)

    def _give_pages(self, oid: int, path: str, pages: int, columns: Sequence[KeyColumn] | None) -> None:
        """Extend a relation; `columns` are those of a B-tree."""
        if columns is not None:
            btree_levels(self._folder / path, btree_height(pages, columns))
        extend(self._folder / path, pages)
        (size,) = self._row("SELECT pg_relation_size(%s::oid)", oid)
        if size < pages * _PAGE:
            raise SetupError(f"the server sees {size} bytes of {path} instead of {pages * _PAGE}")

    def _row(self, query: str, *parameters: Any) -> Any:
        row = self._connection.execute(query.encode(), parameters or None).fetchone()
        if row is None:
            raise SetupError("the copy lost a relation")
        return row

    # ---- what the size of an index depends on ----
    #
    # The bounds of a column's histogram and its most common values serve as a sample of the values.

    def _give_size(self, oid: int) -> tuple[str, int]:
        """Give an index of a candidate the size that it would have; return its name and its pages."""
        (row,) = self._connection.execute(_INDEX.encode(), (oid,)).fetchall()
        table, method, unique, fillfactor, keys, predicate, name, path, table_pages = row
        whole = rows = self._rows(table)
        if predicate:
            rows = self._rows(f"{table} WHERE {predicate}")
        found = self._columns(oid)
        columns = [self._key_column(column, keys, whole, rows) for column in found]
        if path is None:  # a partitioned index has no file
            return name, 0
        if method == "btree":
            pages = btree_pages(rows, columns, unique=unique, fillfactor=fillfactor)
        else:
            entries = [self._entries(column, rows) for column in found] if method == "gin" else []
            pages = other_pages(method, rows, columns, table_pages, entries)
        self._give_pages(oid, path, pages, columns if method == "btree" else None)
        return name, pages

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


def _apply(connection: psycopg.Connection[Any], settings: Sequence[tuple[str, str]]) -> None:
    """Use the source's settings of the planner; the copy keeps its own if it lacks one."""
    for name, value in settings:
        with suppress(psycopg.Error):
            connection.execute(b"SELECT set_config(%s, %s, false)", (name, value))


# ---- give the files of an empty relation the size of a full one, without writing rows ----
#
# The planner asks the file system how many pages a relation has. A file that is extended by truncate(2) has
# holes, so it takes no space. A page of zeros counts as a new page, which the server accepts. The planner
# also reads the height of a B-tree from its metapage, and may look up the smallest and the largest key in
# the index. So a B-tree gets one empty page for each level, each with a link to the next one.


_SEGMENT_PAGES: Final = 131_072
"""Pages of a file: a relation of more than 1 GiB has several."""
_HEADER: Final = struct.Struct("<QHHHHHHI")
_META: Final = struct.Struct("<6I")
_MAGIC: Final = 0x053162
_OF_TREE: Final = struct.Struct("<IIIHH")
_TUPLE: Final = struct.Struct("<HHHH")
_LEAF, _ROOT = 1, 2
_NO_KEY: Final = 8 | 0x2000
"""The size and the flag of a tuple without keys: the first one of an inner page."""
_LAYOUT: Final = _PAGE | 4
_SPECIAL: Final = _PAGE - 16


def extend(path: Path, pages: int) -> None:
    """Extend the files of a relation to so many pages; never shorten them.

    Raises OSError if a file cannot be extended.
    """
    owner = path.stat()
    for segment in range(-(-pages // _SEGMENT_PAGES)):
        part = path if segment == 0 else path.with_name(f"{path.name}.{segment}")
        size = min(pages - segment * _SEGMENT_PAGES, _SEGMENT_PAGES) * _PAGE
        if not part.exists():
            part.touch(mode=0o600)
            if os.geteuid() == 0:
                os.chown(part, owner.st_uid, owner.st_gid)
        if part.stat().st_size < size:
            os.truncate(part, size)


def btree_levels(path: Path, height: int) -> None:
    """Give an empty B-tree so many levels above the leaves. The server must not have read it yet.

    Raises OSError if the file cannot be written; ValueError if it is no empty B-tree.
    """
    if height < 1:
        return
    with path.open("r+b") as file:
        meta = bytearray(file.read(_PAGE))
        magic, version, root, *_ = _META.unpack_from(meta, _HEADER.size) if len(meta) == _PAGE else (0, 0, 0)
        if magic != _MAGIC or root != 0:
            raise ValueError(f"{path.name} is not an empty B-tree")
        _META.pack_into(meta, _HEADER.size, magic, version, 1, height, 1, height)
        file.seek(0)
        file.write(meta)
        for level in range(height, -1, -1):
            file.write(_tree_page(level, height))


def _tree_page(level: int, height: int) -> bytes:
    """Return the only page of a level: block 1 is the root, block height + 1 the leaf."""
    page = bytearray(_PAGE)
    upper, lower = _SPECIAL, _HEADER.size
    if level:
        upper -= _TUPLE.size
        below = height - level + 2
        struct.pack_into("<I", page, lower, upper | 1 << 15 | _TUPLE.size << 17)
        _TUPLE.pack_into(page, upper, below >> 16, below & 0xFFFF, 0, _NO_KEY)
        lower += 4
    _HEADER.pack_into(page, 0, 0, 0, 0, lower, upper, _SPECIAL, _LAYOUT, 0)
    flags = (_ROOT if level == height else 0) | (0 if level else _LEAF)
    _OF_TREE.pack_into(page, _SPECIAL, 0, 0, level, flags, 0)
    return bytes(page)
