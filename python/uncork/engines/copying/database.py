"""Copy a database to another server: definitions from the catalogue, rows from one snapshot.

The source executes one transaction of reading statements, REPEATABLE READ and READ ONLY, on one connection.
All its settings are local to that transaction, so that a connection pooler does not keep them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict

from uncork.engines.connecting import connect_error, connect_to_watch
from uncork.engines.conninfo import Address
from uncork.engines.copying.applying import Applier, fatal, refusal
from uncork.engines.copying.chosen_settings import ChosenSetting, apply_settings, read_settings
from uncork.engines.copying.closing import close_sample, links
from uncork.engines.copying.ddl import after_rows, before_rows, identifier, materialise
from uncork.engines.copying.empty_database import drop_database, make_database
from uncork.engines.copying.lost import read_lost, without
from uncork.engines.copying.objects import Column, Schema, Table
from uncork.engines.copying.pace import Pace
from uncork.engines.copying.rows import SourceFailed, Transferred, transfer
from uncork.engines.copying.sampling import cyclic, roots, shares, units
from uncork.engines.copying.schema import read_schema
from uncork.engines.planner_statistics import RESTORES, replace_statistics
from uncork.engines.sparse.source_sizes import SourceSizes, read_sizes
from uncork.errors import SetupError, UsageError
from uncork.model.database.copy import CopiedTable, CopyFacts, NotCopied
from uncork.model.units import count_words

_BEGIN: Final = (
    "BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    "SET LOCAL statement_timeout = '60s'",
    "SET LOCAL lock_timeout = '2s'",
    "SET LOCAL idle_in_transaction_session_timeout = '10min'",
)
_READING: Final = (
    "SET LOCAL search_path = ''",
    "SET LOCAL row_security = off",
    "SET LOCAL synchronize_seqscans = off",
    "SET LOCAL max_parallel_workers_per_gather = 0",
    "SET LOCAL DateStyle = 'ISO, YMD'",
    "SET LOCAL IntervalStyle = 'postgres'",
    "SET LOCAL extra_float_digits = 3",
    "SET LOCAL lc_monetary = 'C'",
)
"""Each row is sent, in the table's order, in a text that does not depend on settings, or the query fails."""

_WRITING: Final = (
    "SET search_path = ''",
    "SET check_function_bodies = off",
    "SET session_replication_role = replica",
    "SET synchronous_commit = off",
    "SET statement_timeout = 0",
    "SET DateStyle = 'ISO, YMD'",
    "SET IntervalStyle = 'postgres'",
    "SET lc_monetary = 'C'",
    "SET xmloption = 'content'",
    "SET client_min_messages = error",
)
_IN_SESSION: Final = ("default_statistics_target", "default_toast_compression")
_OLDEST: Final = 13
_NOTICED: Final = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
"""Notice within a minute that the machine of the source is gone: COPY may send nothing for long."""
_MILLION: Final = 1_000_000
_LONGEST_MS: Final = 2_000_000_000


def copy_source(
    conninfo: str,
    target: Address | str,
    *,
    tables: Collection[str] | None = None,
    max_read: int = 100 * _MILLION,
    disk: int,
    told: Callable[[str], None],
) -> CopyFacts:
    """Copy a database to the database `target`, which is created, or exists and has no tables.

    Args:
        conninfo: the source, which is only read.
        target: the copy, on a server where the role is a superuser and that nobody else uses.
        tables: the tables of which rows are needed, ``name`` or ``schema.name``; their partitions, and the
            tables they reference, are copied too. None for all.
        max_read: how many bytes per second to read from the source at most, on average.
        disk: how many bytes the tables of the copy may have, without indexes; a larger source is sampled.
        told: is called with a message when a stage begins.

    Raises:
        ConnectError: if a server cannot be reached.
        SetupError: if the source or the copy failed on the way. A database that was created is dropped.
        UsageError: if `max_read` or `disk` is not positive, or a name of `tables` does not exist.
    """
    if max_read <= 0 or disk <= 0:
        raise UsageError(f"max_read {max_read} and disk {disk} must be positive numbers of bytes")
    started = time.monotonic()
    place = target.conninfo() if isinstance(target, Address) else target
    with _source(conninfo) as source, closing(source):
        settings, schema, lost = _read(source)
        needless = set() if tables is None else _needless(schema, tables)
        created, locale = make_database(source, place)
        try:
            with _writer(place, settings) as writer:
                job = _Copy(source, writer, place, schema, Pace(max_read), max_read, told)
                facts = job.run(needless, disk, settings)
        except BaseException:
            if created:
                with suppress(psycopg.Error):
                    drop_database(place)
            raise
    seconds = time.monotonic() - started
    return replace(facts, missing=(*locale, *facts.missing, *lost), seconds=seconds)


# ---- connections ----


@contextmanager
def _source(conninfo: str) -> Iterator[psycopg.Connection[Any]]:
    """Open the reading transaction; whatever the source refuses becomes one sentence."""
    try:
        chosen = conninfo_to_dict(conninfo)
        noticed = {name: value for name, value in _NOTICED.items() if name not in chosen}
        connection = connect_to_watch(conninfo, prepare_threshold=None, client_encoding="UTF8", **noticed)
    except psycopg.Error as error:
        raise connect_error(error) from error
    major = connection.info.server_version // 10000
    if major < _OLDEST:
        connection.close()
        raise SetupError(f"cannot copy from PostgreSQL {major}; the source must have {_OLDEST} or newer")
    try:
        yield connection
    except SourceFailed as failed:
        raise SetupError(_gone(failed.error)) from failed.error


def _gone(error: psycopg.Error) -> str:
    reason = error.diag.message_primary or " ".join(str(error).split())
    if isinstance(error, psycopg.errors.LockNotAvailable):
        remedy = "another session has locked a table, for example to change it; start the copy again later"
    else:
        remedy = "nothing was changed there; start the copy again"
    return f"the source stopped the copy: {reason}; {remedy}"


@contextmanager
def _writer(place: str, settings: Sequence[ChosenSetting]) -> Iterator[psycopg.Connection[Any]]:
    try:
        connection = connect_to_watch(place, prepare_threshold=None, client_encoding="UTF8")
    except psycopg.Error as error:
        raise connect_error(error) from error
    with closing(connection):
        try:
            for statement in _WRITING:
                connection.execute(statement.encode())
            for setting in settings:
                if setting.name in _IN_SESSION:
                    connection.execute("SELECT set_config(%s, %s, false)", [setting.name, setting.value])
            yield connection
        except psycopg.Error as error:
            raise SetupError(refusal(error, "the copy was written")) from error


def _read(
    source: psycopg.Connection[Any],
) -> tuple[tuple[ChosenSetting, ...], Schema, tuple[NotCopied, ...]]:
    """Begin the transaction, and read all definitions."""
    try:
        for statement in _BEGIN:
            source.execute(statement.encode())
        settings = read_settings(source)
        for statement in _READING:
            source.execute(statement.encode())
        schema = read_schema(source)
        return settings, schema, read_lost(source, schema)
    except psycopg.Error as error:
        raise SourceFailed(error) from error


def _needless(schema: Schema, names: Collection[str]) -> set[int]:
    known = {name for table in schema.tables for name in (table.name, f"{table.schema}.{table.name}")}
    if unknown := sorted(set(names) - known):
        raise UsageError(f'the source has no table "{unknown[0]}"; name tables as name or schema.name')
    return without(schema, names)


# ---- the copy ----


@dataclass(frozen=True, slots=True)
class _Plan:
    """Which rows to copy: the tables, the share of each, and the columns that a statement lists."""

    tables: tuple[Table, ...]
    shares: dict[int, float]
    columns: dict[int, tuple[Column, ...]]

    @property
    def sampled(self) -> bool:
        return any(share < 1 for share in self.shares.values())

    def names(self, oid: int) -> tuple[str, ...]:
        return tuple(identifier(column.name) for column in self.columns.get(oid, ()))


@dataclass(frozen=True, slots=True)
class _Copy:
    """One copy on its way."""

    source: psycopg.Connection[Any]
    writer: psycopg.Connection[Any]
    place: str
    schema: Schema
    pace: Pace
    max_read: int
    told: Callable[[str], None]

    def run(self, needless: set[int], disk: int, settings: Sequence[ChosenSetting]) -> CopyFacts:
        target = self.writer.info.server_version // 10000
        path = next(
            (setting.value for setting in settings if setting.name == "search_path"), '"$user", public'
        )
        applier = Applier(self.writer, path)
        self.told(f"creating {count_words(len(self.schema.tables), 'table')}")
        applier.apply(before_rows(self.schema, target))
        plan = self._plan(needless, disk)
        restores = not (needless or plan.sampled) and min(target, self.schema.version) >= RESTORES
        sizes = self._sizes() if restores else None
        done, missing = self._rows(plan, binary=target == self.schema.version)
        extra, cut = self._close(plan, done, disk) if plan.sampled else (0, ())
        self._leave()
        self.told("creating indexes and constraints")
        applier.apply(after_rows(self.schema))
        applier.apply(materialise(self.schema))
        self.told("analysing the copy")
        applier.analyse()
        kept = sizes is not None and self._with_statistics(plan, sizes)
        absent = apply_settings(self.writer, settings)
        unneeded = tuple(
            NotCopied(
                f"rows of table {table.schema}.{table.name}",
                "the request does not need them",
                "the table is empty on the copy, so statements on it cannot be measured",
            )
            for table in self.schema.tables
            if table.oid in needless and table.kind == "r"
        )
        return CopyFacts(
            how="by COPY of a sample from one snapshot" if plan.sampled else "by COPY from one snapshot",
            tables=tuple(
                self._table(table, done[table.oid], plan) for table in plan.tables if table.oid in done
            ),
            missing=(*applier.missing, *missing, *cut, *unneeded, *absent),
            bytes=sum(transferred.bytes for transferred in done.values()) + extra,
            seconds=0.0,
            sampled=plan.sampled,
            source_statistics=kept,
        )

    def _sizes(self) -> SourceSizes | None:
        """Read what the source's planner knows; None if the source refuses."""
        try:
            return read_sizes(self.source)
        except psycopg.Error as error:
            if self.source.closed or self.source.broken:
                raise SourceFailed(error) from error
            return None

    def _with_statistics(self, plan: _Plan, sizes: SourceSizes) -> bool:
        """Replace the copy's statistics by the source's; return whether that succeeded."""
        tables = [(table.schema, table.name) for table in plan.tables if table.readable]
        try:
            replace_statistics(self.writer, tables, sizes.relations, sizes.statistics)
        except psycopg.Error as error:
            if fatal(error, self.writer):
                raise
            return False
        return True

    def _leave(self) -> None:
        """End the transaction on the source, which has sent everything."""
        with suppress(psycopg.Error):
            self.source.execute("COMMIT")
            self.source.close()

    def _plan(self, needless: set[int], disk: int) -> _Plan:
        there = {
            (str(schema), str(name))
            for schema, name in self.writer.execute(
                "SELECT n.nspname::text, c.relname::text FROM pg_catalog.pg_class c "
                "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')"
            ).fetchall()
        }
        chosen = tuple(
            table
            for table in self.schema.tables
            if table.oid not in needless and (table.schema, table.name) in there
        )
        columns: dict[int, list[Column]] = {}
        for column in self.schema.columns:
            if not column.generated:
                columns.setdefault(column.table, []).append(column)
        top = roots(chosen)
        by_unit = shares(units(chosen, self.schema.constraints), disk)
        return _Plan(
            chosen,
            {table.oid: by_unit[top[table.oid]] for table in chosen},
            {oid: tuple(own) for oid, own in columns.items()},
        )

    def _rows(self, plan: _Plan, *, binary: bool) -> tuple[dict[int, Transferred], list[NotCopied]]:
        done: dict[int, Transferred] = {}
        missing = []
        for table in plan.tables:
            if table.kind != "r" or not plan.columns.get(table.oid):
                continue
            shown = f"{table.schema}.{table.name}"
            reason = "the role may not read it"
            if table.readable:
                self.told(f"copying rows of {shown}, {table.bytes / _MILLION:,.0f} MB")
                try:
                    done[table.oid] = self._one(table, plan, binary=binary)
                    continue
                except (SourceFailed, psycopg.Error) as error:
                    reason = self._continue(error)
            lost = "the table is empty on the copy, so statements on it cannot be measured"
            missing.append(NotCopied(f"rows of table {shown}", reason, lost))
        return done, missing

    def _one(self, table: Table, plan: _Plan, *, binary: bool) -> Transferred:
        name = identifier(table.schema, table.name)
        columns = ", ".join(plan.names(table.oid))
        share = plan.shares[table.oid]
        fast = binary and all(column.binary for column in plan.columns[table.oid])
        if share < 1:
            percent = f"{100 * share:.6f}"
            chosen = f"SELECT {columns} FROM ONLY {name} TABLESAMPLE SYSTEM ({percent}) REPEATABLE (1)"
            read = f"COPY ({chosen}) TO STDOUT"
        else:
            read = f"COPY {name} ({columns}) TO STDOUT"
        write = f"COPY {name} ({columns}) FROM STDIN (FREEZE{', FORMAT binary' if fast else ''})"
        longest = min(_LONGEST_MS, 600_000 + 10_000 * table.bytes // self.max_read)
        self._ask("SAVEPOINT one_table")
        self._ask(f"SET LOCAL statement_timeout = {longest}")
        with self.writer.transaction():
            self.writer.execute(f"TRUNCATE ONLY {name}".encode())
            read += " (FORMAT binary)" if fast else ""
            moved = transfer(self.source, self.writer, read, write, self.pace)
        self._ask("RELEASE SAVEPOINT one_table")
        return moved

    def _ask(self, statement: str) -> None:
        try:
            self.source.execute(statement.encode())
        except psycopg.Error as error:
            raise SourceFailed(error) from error

    def _continue(self, failure: SourceFailed | psycopg.Error) -> str:
        """Return why a table could not be copied, if other tables still can; else raise.

        Raises:
            SourceFailed: if the source went away, or ended the transaction.
            SetupError: if the copy went away, or its disk is full.
        """
        error = failure.error if isinstance(failure, SourceFailed) else failure
        if not isinstance(failure, SourceFailed) and fatal(failure, self.writer):
            raise SetupError(refusal(failure, "rows were copied")) from failure
        if self.source.closed or self.source.broken:
            raise SourceFailed(error)
        try:
            self.source.execute("ROLLBACK TO SAVEPOINT one_table")
        except psycopg.Error as late:
            raise SourceFailed(error if isinstance(failure, SourceFailed) else late) from error
        return error.diag.message_primary or " ".join(str(error).split())

    def _close(
        self, plan: _Plan, done: dict[int, Transferred], disk: int
    ) -> tuple[int, tuple[NotCopied, ...]]:
        """Fetch what the sample references; count the rows anew. Return the bytes read, and what was cut."""
        tables = {table.oid: table for table in plan.tables}
        read = {oid: plan.names(oid) for oid, table in tables.items() if table.kind == "p" or oid in done}
        whole = {oid for oid, share in plan.shares.items() if share >= 1}
        not_null = {(column.table, column.name) for column in self.schema.columns if column.not_null}
        top = roots(plan.tables)
        cycles = cyclic(units(plan.tables, self.schema.constraints))
        loose = {
            (constraint.table, constraint.references)
            for constraint in self.schema.constraints
            if constraint.kind == "f"
            and (top.get(constraint.table), top.get(constraint.references)) in cycles
        }
        found = links(self.schema.constraints, tables, read, whole, not_null, loose)
        left = max(0, disk - sum(moved.bytes for moved in done.values()))
        self.told(f"copying the rows that {len(found)} foreign keys reference")
        with closing(connect_to_watch(self.place, client_encoding="UTF8")) as keys:
            keys.execute("SET search_path = ''")
            size, cut = close_sample(found, self.source, self.writer, keys, self.pace, left)
        for oid, moved in list(done.items()):
            if plan.shares[oid] < 1:
                name = identifier(tables[oid].schema, tables[oid].name)
                row = self.writer.execute(f"SELECT count(*) FROM ONLY {name}".encode()).fetchone()
                done[oid] = Transferred(int(row[0]) if row else 0, moved.bytes)
        return size, cut

    def _table(self, table: Table, moved: Transferred, plan: _Plan) -> CopiedTable:
        whole = plan.shares[table.oid] >= 1
        rows = float(moved.rows) if whole or table.rows < 0 else max(table.rows, float(moved.rows))
        return CopiedTable(f"{table.schema}.{table.name}", moved.rows, rows, moved.bytes)
