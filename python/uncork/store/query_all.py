"""Query all runs of a folder with SQL, fast even with ten thousand runs.

DuckDB takes a second or more to open ten thousand files. So the rows of ended runs are copied into one file
per table, ``.packed/<table>.parquet``, with the run's id and its attempts. Rows of runs that were deleted or
resumed since are ignored when the file is read. The file is created when a query first needs the table, and
can be deleted at any time. If it cannot be written, queries are only slower.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import duckdb

from uncork.errors import StoreError, UsageError
from uncork.model.stored_run import StoredRun
from uncork.model.tables.register import TABLES
from uncork.store.query import DUCKDB_TYPES, Queries
from uncork.store.remote.mirrors import mirror_of

if TYPE_CHECKING:
    pass

Found = TypeVar("Found")

PACKED: Final = ".packed"
_WORTH: Final = 200
"""Files are packed when a query had to open at least this many one by one."""

RUN_COLUMNS: Final = {
    "run": "VARCHAR",
    "name": "VARCHAR",
    "kind": "VARCHAR",
    "status": "VARCHAR",
    "started_at": "TIMESTAMP",
    "elapsed_ns": "BIGINT",
    "rounds": "BIGINT",
    "question": "VARCHAR",
    "case": "VARCHAR",
    "server": "VARCHAR",
    "seed": "BIGINT",
    "uncork_version": "VARCHAR",
    "command": "VARCHAR",
    "commit": "VARCHAR",
    "reason": "VARCHAR",
    "tags": ["VARCHAR"],
    "names": ["VARCHAR"],
}
"""The columns of the table ``runs``: one row per run; times are in UTC."""
_AS_THEY_ARE: Final = RUN_COLUMNS.keys() - {"run", "started_at"}


class AllRunsReader(Queries):
    """All runs of a folder as one database: the table ``runs``, and each stored table with a column ``run``.

    `damaged` collects an error for each file that was left out. `tell` receives a message before slow steps.
    """

    def __init__(
        self, root: Path, runs: Sequence[StoredRun], tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._root = root
        self._runs = runs
        self._tell = tell
        self._left_out: set[str] = set()
        self._fetched: set[str] = set()
        self._connection = duckdb.connect()
        self.damaged: list[StoreError] = []
        self._connection.execute("CREATE SCHEMA made")
        attempts = ({"run": run.id, "attempts": _attempts(run)} for run in runs)
        _add_table(self._connection, "made.all_runs", _ATTEMPTS, attempts)

    def close(self) -> None:
        """Close the database connection."""
        self._connection.close()

    # ---- steps ----

    def _answer(self, query: str, take: Callable[[duckdb.DuckDBPyConnection, str], Found]) -> Found:
        words = set(re.findall(r"\w+", query.lower()))
        wanted = sorted(words & TABLES.keys())
        # Only a query that names a table reads its rows. One that names none lists the tables.
        _add_table(self._connection, "runs", RUN_COLUMNS, map(_row, self._runs if "runs" in words else ()))
        while True:
            try:
                for name in wanted or TABLES:
                    self._add(name, read=name in wanted)
                return take(self._connection, query)
            except (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException) as error:
                raise UsageError(f"{error}") from error
            except duckdb.Error as error:
                if not self._leave_out_damaged(wanted, str(error)):
                    raise UsageError(f"{error}") from error

    def _add(self, name: str, *, read: bool) -> None:
        """Add a table; read its rows only if the query may need them."""
        columns = ", ".join(f'"{column.name}" {DUCKDB_TYPES[column.type]}' for column in TABLES[name].columns)
        self._connection.execute(f"CREATE OR REPLACE TABLE made.{name} (run VARCHAR, {columns})")
        parts = [f"SELECT * FROM made.{name}"]  # noqa: S608 -- names from our own tables
        if read:
            packed, loose = self._files(name)
            if len(loose) >= _WORTH and self._pack(name, packed, loose):
                packed, loose = self._files(name)
            parts += [self._packed(name)] if packed else []
            parts += [_loose(loose)] if loose else []
        self._connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS {" UNION ALL BY NAME ".join(parts)}')

    def _files(self, name: str) -> tuple[bool, dict[str, StoredRun]]:
        """Return whether any rows are packed, and the files of runs whose rows are not."""
        known = self._packed_runs(name)
        self._fetch(name, [run for run in self._runs if (run.id, _attempts(run)) not in known])
        files: dict[str, StoredRun] = {}
        for run in self._runs:
            if (run.id, _attempts(run)) in known:
                continue
            with contextlib.suppress(OSError):
                found = sorted(entry.path for entry in os.scandir(run.folder / name))
                files |= {path: run for path in found if path.endswith(".parquet")}
        return bool(known), {path: run for path, run in files.items() if path not in self._left_out}

    def _fetch(self, name: str, runs: Sequence[StoredRun]) -> None:
        """Fetch the files of a table that exist only at an address, once."""
        mirror = mirror_of(self._root)
        if mirror is None or name in self._fetched:
            return
        self._fetched.add(name)
        if len(runs) >= _WORTH:
            self._tell(f"fetching {name} of {len(runs)} runs, once: {mirror.shown}")
        self.damaged += mirror.fetch([run.folder for run in runs], (name,))

    def _leave_out_damaged(self, tables: Sequence[str], message: str) -> bool:
        """Find files that cannot be read, after DuckDB failed; return whether any was found."""
        import pyarrow.parquet as pq  # noqa: PLC0415 -- slow to load, and needed only for damaged files

        before = len(self._left_out)
        for look in (pq.read_metadata, pq.read_table):  # metadata at the end may be intact, but not the rest
            for name in tables:
                pack = str(self._pack_path(name))
                if pack in message or (self._packed_runs(name) and not _reads(look, pack)):
                    self._left_out.add(pack)
                damaged = [path for path in self._files(name)[1] if not _reads(look, path)]
                self._left_out.update(damaged)
                self.damaged += [StoreError(f"{path}: damaged; its rows are left out") for path in damaged]
            if len(self._left_out) > before:
                return True
        return False

    def _packed_runs(self, name: str) -> set[tuple[str, str]]:
        if not self._pack_path(name).is_file() or str(self._pack_path(name)) in self._left_out:
            return set()
        query = f"SELECT DISTINCT run, run_attempts FROM {_quoted(self._pack_path(name))}"  # noqa: S608 -- quoted
        try:
            return set(self._connection.execute(query).fetchall())
        except duckdb.Error:  # a power cut, or another version: create it again
            return set()

    def _pack(self, name: str, packed: bool, loose: Mapping[str, StoredRun]) -> bool:
        """Copy the rows of ended runs into the table's file; return whether that was possible."""
        if not os.access(self._root, os.W_OK):
            return False
        ended = {path: run for path, run in loose.items() if run.status not in ("running", "killed")}
        target = self._pack_path(name)
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
        body = f"SELECT *, '' AS run_attempts FROM made.{name}"  # noqa: S608 -- our tables
        if packed:
            body += f" UNION ALL BY NAME {self._packed(name, keep=True)}"
        body += f" UNION ALL BY NAME {_loose(ended, keep=True)}"
        self._tell(f"copying {name} of {len(ended)} files into one, once: {target}")
        try:
            target.parent.mkdir(exist_ok=True)
            self._connection.execute(f"COPY ({body}) TO {_quoted(draft)} (FORMAT parquet, COMPRESSION zstd)")
            draft.replace(target)
        except OSError:  # a read-only or full disk
            return False
        finally:
            with contextlib.suppress(OSError):
                draft.unlink()
        return True

    def _pack_path(self, name: str) -> Path:
        return self._root / PACKED / f"{name}.parquet"

    def _packed(self, name: str, *, keep: bool = False) -> str:
        columns = "packed.*" if keep else "packed.* EXCLUDE (run_attempts)"
        return (
            f"SELECT {columns} FROM {_quoted(self._pack_path(name))} AS packed "  # noqa: S608 -- quoted
            "SEMI JOIN made.all_runs ON packed.run = all_runs.run AND packed.run_attempts = all_runs.attempts"
        )


def _loose(files: Mapping[str, StoredRun], *, keep: bool = False) -> str:
    paths = ", ".join(map(_quoted, files))
    extra = ", all_runs.attempts AS run_attempts" if keep else ""
    return (
        f"SELECT all_runs.run, file.* EXCLUDE (filename){extra} "  # noqa: S608 -- quoted
        f"FROM read_parquet([{paths}], filename = true, union_by_name = true) AS file "
        "JOIN made.all_runs ON all_runs.run = parse_path(file.filename)[-3]"
    )


def _reads(look: Callable[[str], object], path: str) -> bool:
    from pyarrow import ArrowException  # noqa: PLC0415 -- as above

    try:
        look(path)
    except (OSError, ArrowException):
        return False
    return True


def _quoted(path: object) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def _attempts(run: StoredRun) -> str:
    """Return a key that changes whenever rows are added to an ended run."""
    return f"{run.started_at} {run.rounds} {run.elapsed_ns}"


def _add_table(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    columns: Mapping[str, object],
    rows: Iterable[Mapping[str, Any]],
) -> None:
    """Create a table from rows, through JSON: a statement per row takes a second; Arrow is slow to load."""
    connection.execute(
        f"CREATE OR REPLACE TABLE {name} AS SELECT one.* FROM "  # noqa: S608 -- names and types of our own
        f"(SELECT unnest(from_json(?::JSON, {_quoted(json.dumps([columns]))})) AS one)",
        [json.dumps(list(rows))],
    )


_ATTEMPTS: Final = {"run": "VARCHAR", "attempts": "VARCHAR"}


def _row(run: StoredRun) -> dict[str, Any]:
    started = run.started()
    return {
        "run": run.id,
        "started_at": None if started is None else f"{started.astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
        **{name: getattr(run, name) for name in _AS_THEY_ARE},
    }
