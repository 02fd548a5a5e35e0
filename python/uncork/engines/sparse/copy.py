"""A database with the tables, the statistics and the sizes of a source, and without its rows.

Its planner makes the plans of the source. Nothing can be executed on it. A candidate index is created while
its table is empty, and then given the size that it would have. Candidates are invalid for the planner unless
`shown` says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import psycopg

from uncork.engines import planner_statistics
from uncork.engines.connecting import connect_error, connect_to_watch
from uncork.engines.planner_statistics import restore_columns, restore_relations
from uncork.engines.sparse.estimate import KeyColumn, btree_height
from uncork.engines.sparse.files import btree_levels, extend
from uncork.engines.sparse.index_facts import IndexFacts
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


def read_source_sizes(source: str) -> tuple[int, SourceSizes | None]:
    """Return the major version of a source and, from version `RESTORES`, what its planner knows.

    Raises:
        ConnectError: if the source cannot be reached or read.
    """
    try:
        with connect_to_watch(source) as connection:
            for command in _SOURCE:
                connection.execute(command.encode())
            version = connection.info.server_version // 10_000
            return version, read_sizes(connection) if version == RESTORES else None
    except psycopg.Error as error:
        raise connect_error(error) from error


class SparseCopy:
    """A sparse copy in a database whose schema was created, with no rows.

    The server is on this machine, runs with `SETTINGS`, and this role is its superuser.

    Args:
        conninfo: the database of the copy.
        sizes: what the planner of the source knows.
        candidates: statements that create indexes, executed one by one.

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
        try:
            self._connection = connect_to_watch(conninfo)
        except psycopg.Error as error:
            raise connect_error(error) from error
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
        self._facts = IndexFacts(self._connection)
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
                self.reasons[place] = error.diag.message_primary or str(error)
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
                columns = self._facts.key_columns(oid) if method == "btree" else None
                self._give_pages(oid, path, wanted, columns)

    def _give_pages(self, oid: int, path: str, pages: int, columns: Sequence[KeyColumn] | None) -> None:
        """Extend a relation; `columns` are those of a B-tree."""
        if columns is not None:
            btree_levels(self._folder / path, btree_height(pages, columns))
        extend(self._folder / path, pages)
        (size,) = self._row("SELECT pg_relation_size(%s::oid)", oid)
        if size < pages * _PAGE:
            raise SetupError(f"the server sees {size} bytes of {path} instead of {pages * _PAGE}")

    def _give_size(self, oid: int) -> tuple[str, int]:
        """Give an index of a candidate the size that it would have; return its name and its pages."""
        name, path, pages, columns = self._facts.estimate(oid)
        if path is None:  # a partitioned index has no file
            return name, 0
        self._give_pages(oid, path, pages, columns)
        return name, pages

    def _row(self, query: str, *parameters: Any) -> Any:
        row = self._connection.execute(query.encode(), parameters or None).fetchone()
        if row is None:
            raise SetupError("the copy lost a relation")
        return row


def _apply(connection: psycopg.Connection[Any], settings: Sequence[tuple[str, str]]) -> None:
    """Use the source's settings of the planner; the copy keeps its own if it lacks one."""
    for name, value in settings:
        with suppress(psycopg.Error):
            connection.execute(b"SELECT set_config(%s, %s, false)", (name, value))
