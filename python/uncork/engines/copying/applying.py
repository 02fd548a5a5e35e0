"""Execute statements on the copy. What fails is tried again, since objects depend on each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import psycopg

from uncork.engines.connecting import reason_of
from uncork.engines.copying.objects import Step, identifier
from uncork.errors import SetupError
from uncork.model.database.copy import NotCopied

_MEANING: Final = {
    "schema": "nothing in this schema is in the copy",
    "extension": "statements that use it fail on the copy",
    "collation": "text sorts in another order, and its indexes serve other statements",
    "type": "tables and functions that use it are missing too",
    "domain": "tables and functions that use it are missing too",
    "function": "statements, defaults and indexes that use it fail on the copy",
    "aggregate": "statements that use it fail on the copy",
    "sequence": "columns that take their default from it have none",
    "table": "statements that use it fail on the copy",
    "partition": "statements on its partitioned table do not see its rows",
    "inheritance of table": "statements on its parent do not see its rows",
    "view": "statements that use it fail on the copy",
    "materialised view": "statements that use it fail on the copy",
    "rows of materialised view": "it cannot be read on the copy",
    "constraint": "the planner and statements that rely on it behave differently",
    "foreign key": "writes do not pay for its check, and the planner estimates its joins without it",
    "index": "plans that use it on the source differ on the copy",
    "part of index": "plans on the partitioned table do not use it",
    "statistics": "the planner's estimates differ",
    "trigger": "writes do not pay for it",
    "rule": "statements on its table are not rewritten",
    "planner statistics of": "the planner estimates without statistics, so plans differ",
    "default of column": "rows that are inserted without a value for it get NULL",
}
_ANALYSED: Final = """
SELECT n.nspname::text, c.relname::text
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'm') AND n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'
"""
_SMALL: Final = "the copy has the default instead"
_PASSES: Final = 50


def fatal(error: psycopg.Error, connection: psycopg.Connection[Any]) -> bool:
    """Whether nothing more can be written: the connection is lost, or the disk is full."""
    return connection.broken or connection.closed or isinstance(error, psycopg.errors.DiskFull)


class Applier:
    """Execute the steps of a copy, and remember those that failed.

    Args:
        connection: the copy's, in autocommit mode, with an empty search path.
        search_path: the source's own; what fails without it is tried with it once nothing else helps.
    """

    def __init__(self, connection: psycopg.Connection[Any], search_path: str) -> None:
        self._connection = connection
        self._search_path = search_path
        self._failed: list[tuple[Step, str]] = []
        self._refused: list[Step] = []

    def apply(self, steps: Iterable[Step]) -> None:
        """Execute steps in their order, then those that failed, here or before, until no more succeed.

        Raises SetupError if the copy's server went away, or its disk is full.
        """
        for step in steps:
            if step.refused:
                self._refused.append(step)
            elif (reason := self._execute(step)) is not None:
                self._failed.append((step, reason))
        for _ in range(_PASSES):
            before = len(self._failed)
            if before:
                self._pass()
            if before and len(self._failed) == before:
                self._with_search_path()
            if len(self._failed) in (0, before):
                return

    def _pass(self) -> None:
        failed, self._failed = self._failed, []
        for step, _ in failed:
            if (reason := self._execute(step)) is not None:
                self._failed.append((step, reason))

    def _with_search_path(self) -> None:
        """Try again with the search path of the source's sessions, which functions may need."""
        reasons = {step: reason for step, reason in self._failed}
        self._connection.execute("SELECT set_config('search_path', %s, false)", [self._search_path])
        self._pass()
        self._connection.execute("SELECT set_config('search_path', '', false)")
        self._failed = [(step, reasons[step]) for step, _ in self._failed]

    def _execute(self, step: Step) -> str | None:
        """Return None, or why the server refused."""
        try:
            self._connection.execute(step.text.encode())
        except psycopg.Error as error:
            if fatal(error, self._connection):
                raise SetupError(refusal(error, f"{step.what} was created")) from error
            return reason_of(error)
        return None

    def analyse(self) -> None:
        """Vacuum and analyse the database; if a table refuses, each table on its own.

        Raises SetupError if the copy's server went away, or its disk is full.
        """
        if self._execute(Step("planner statistics", "of the database", "VACUUM (ANALYZE)")) is None:
            return
        rows = self._connection.execute(_ANALYSED.encode()).fetchall()
        steps = [
            Step("planner statistics of", f"{schema}.{name}", f"VACUUM (ANALYZE) {identifier(schema, name)}")
            for schema, name in rows
        ]
        self._failed += [(step, reason) for step in steps if (reason := self._execute(step)) is not None]

    @property
    def missing(self) -> tuple[NotCopied, ...]:
        """The objects that could not be created, with the server's reason, each named once."""
        found = [(step, step.refused) for step in self._refused] + self._failed
        return tuple(
            {
                step.what: NotCopied(step.what, why, _MEANING.get(step.kind, _SMALL)) for step, why in found
            }.values()
        )


def refusal(error: psycopg.Error, when: str) -> str:
    """Return the message about a copy that cannot be completed."""
    reason = reason_of(error)
    if isinstance(error, psycopg.errors.DiskFull):
        return (
            f"the disk of the copy's server became full while {when} ({reason}); free some space, set "
            "UNCORK_SERVERS to a folder on a larger disk, or copy a sample of the rows with --disk"
        )
    if error.sqlstate is None or error.sqlstate.startswith(("57P", "08")):
        return f"the copy's server went away while {when}: {reason}; start the copy again"
    return f"the copy's server refused to continue while {when}: {reason}"
