"""Ask the server for the plans of statements, without executing them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import pq

from uncork.engines.watch.sampling import read_rows, read_sample
from uncork.engines.watch.session import WatchSession
from uncork.engines.watch.snapshot_sql import COLUMN_VALUES, MARK, SESSION_SETTINGS
from uncork.errors import ServerCrash
from uncork.model.database.plan import ColumnValues, has_plan
from uncork.model.database.workload import RowSample, Sample, SampledExpression, SampledRows

_NAME: Final = b"uncork_plan"
_GENERIC_PLAN: Final = 16
"""The first version of EXPLAIN (GENERIC_PLAN). It prunes no partitions; EXPLAIN EXECUTE with NULLs prunes
them by these NULLs."""
_DENIED: Final = "42501"
_TIMEOUT: Final = "1s"
_LOCK_TIMEOUT: Final = "100ms"
"""How long the server may plan a statement, and wait for the lock of one of its tables."""


@dataclass(frozen=True, slots=True)
class Explained:
    """A plan as EXPLAIN prints it, or the server's reason why there is none.

    `denied` means that this role lacks a privilege on a table, which EXPLAIN checks as the
    statement does. `sqlstate` is the code of the reason.
    """

    output: str | None
    reason: str = ""
    denied: bool = False
    sqlstate: str = ""


class Planner:
    """Plans statements in the read-only session of a watch.

    The server plans a statement and does not execute it. To simplify expressions, it may execute
    functions that are declared IMMUTABLE or STABLE and get constants, as in each plan that it
    makes. Raises psycopg.Error if the server went away; each method does.
    """

    def __init__(self, session: WatchSession, version: int) -> None:
        self._session, self._server, self._version = session, session.connection.pgconn, version
        self._encoding = session.connection.info.encoding
        session.set(statement_timeout=_TIMEOUT, lock_timeout=_LOCK_TIMEOUT)
        if version < _GENERIC_PLAN:
            session.set(plan_cache_mode="force_generic_plan")
        found: dict[str, str] = dict(session.execute(SESSION_SETTINGS).fetchall())
        self.compiled_above = float(found["jit_above_cost"]) if found["jit"] == "on" else None
        """Cost above which the server compiles plans just in time; None if it never does."""
        if self.compiled_above is not None and self.compiled_above < 0:
            self.compiled_above = None
        self.longest_text = int(found["track_activity_query_size"]) - 1
        """The length in bytes at which the server cuts the texts of sessions' statements."""

    def explain(self, statement: str, *, as_json: bool) -> Explained | None:
        """Return the plan of one statement; None if it is no statement with a plan.

        Parameters ($1) in the statement have unknown values: the plan is generic. The statement is
        prepared by the extended protocol, which rejects several statements at once. JSON is
        VERBOSE: it names schemas and the columns that each node returns.
        """
        if not has_plan(statement):
            return None
        with self._session.pinned():
            return self._explain(statement, as_json=as_json)

    def _explain(self, statement: str, *, as_json: bool) -> Explained:
        # A pooler may rename statements that the protocol prepares, but not the unnamed one.
        name = b"" if self._session.pooled else _NAME
        # The text has no mark: it would become that of the application's entry in
        # pg_stat_statements, if there is none yet.
        prepared = self._server.prepare(name, statement.encode(self._encoding))
        if prepared.status != pq.ExecStatus.COMMAND_OK:
            return self._refused(prepared)
        options = ["FORMAT JSON", "VERBOSE"] if as_json else []
        if self._version >= _GENERIC_PLAN:
            query = f"EXPLAIN {MARK} ({', '.join([*options, 'GENERIC_PLAN'])}) {statement}"
        else:
            many = self._server.describe_prepared(name).nparams
            values = f"({', '.join(['NULL'] * many)})" if many else ""
            chosen = f"({', '.join(options)}) " if options else ""
            query = f"EXPLAIN {MARK} {chosen}EXECUTE uncork_plan{values}"
            if self._session.pooled:
                self._run(f"PREPARE uncork_plan AS {statement}")
        if self._session.pooled:
            self._run(f"SAVEPOINT {MARK} before_explain")
        found = self._run(query)
        if self._session.pooled:
            self._run(f"ROLLBACK {MARK} TO before_explain")
        if not self._session.pooled or self._version < _GENERIC_PLAN:
            self._run(f"DEALLOCATE {MARK} uncork_plan")
        if found.status != pq.ExecStatus.TUPLES_OK:
            return self._refused(found)
        lines = (found.get_value(row, 0) or b"" for row in range(found.ntuples))
        return Explained("\n".join(line.decode(self._encoding, "replace") for line in lines))

    def using(self, settings: Mapping[str, str]) -> AbstractContextManager[None]:
        """Plan with the settings of a role until the block ends, as far as this role may set them.

        Whether the plan of a prepared statement is generic is up to `explain`.
        """
        return self._session.using(
            {name: value for name, value in settings.items() if name != "plan_cache_mode"}
        )

    def without_workers(self) -> AbstractContextManager[None]:
        """Plan without parallel workers until the block ends."""
        return self._session.using({"max_parallel_workers_per_gather": "0"})

    def column_values(self, columns: Iterable[tuple[str, str]]) -> Mapping[tuple[str, str], ColumnValues]:
        """Return what ANALYZE stored of columns, each given by its table and its name.

        A table without a schema is searched in the search_path. Columns without statistics are left
        out, and so are columns of arrays.
        """
        wanted = list(columns)
        names = [table.rpartition(".") for table, _ in wanted]
        parameters = {
            "schemas": [schema for schema, _, _ in names],
            "tables": [name for _, _, name in names],
            "columns": [column for _, column in wanted],
        }
        try:
            rows = self._session.execute(COLUMN_VALUES, parameters).fetchall()
        except psycopg.Error:
            if self._session.lost:
                raise
            return {}
        return {
            wanted[number - 1]: ColumnValues(
                tuple(common or ()), tuple(bounds or ()), tuple(frequencies or ())
            )
            for number, common, bounds, frequencies in rows
        }

    def sample(self, wanted: SampledExpression) -> Sample:
        """Return values of an expression in a few rows of its table."""
        return read_sample(self._session, wanted)

    def sample_rows(self, wanted: SampledRows) -> RowSample:
        """Return values that a few rows of a table have together."""
        return read_rows(self._session, wanted)

    def literal(self, value: str) -> str:
        """Return a value as a literal of SQL."""
        escaping = pq.Escaping(self._server)
        return bytes(escaping.escape_literal(value.encode(self._encoding))).decode(self._encoding)

    def _run(self, query: str) -> pq.abc.PGresult:
        found = self._server.exec_(query.encode(self._encoding))
        if self._session.lost:
            raise ServerCrash("the server went away: the connection was lost during EXPLAIN")
        return found

    def _refused(self, found: pq.abc.PGresult) -> Explained:
        reason = found.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b"no reason given"
        sqlstate = (found.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
        return Explained(None, reason.decode(self._encoding, "replace"), sqlstate == _DENIED, sqlstate)
