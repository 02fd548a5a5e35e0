"""Copy a database to another server: definitions from the catalogue, rows from one snapshot.

The source executes one transaction of reading statements, REPEATABLE READ and READ ONLY, on one connection.
All its settings are local to that transaction, so that a connection pooler does not keep them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from uncork.engines.connecting import connect_errors, connect_to_watch, reason_of
from uncork.engines.conninfo import Address
from uncork.engines.copying.applying import Applier, fatal, refusal
from uncork.engines.copying.chosen_settings import ChosenSetting, apply_settings, read_settings
from uncork.engines.copying.closing import close_sample, links
from uncork.engines.copying.objects import Column, ForeignKey, Schema, Table, identifier
from uncork.engines.copying.rows import Pace, SourceFailed, Transferred, transfer
from uncork.engines.copying.schema import read_lost, read_schema, without
from uncork.engines.planner_statistics import RESTORES, replace_statistics
from uncork.engines.sparse.source_sizes import SourceSizes, read_sizes
from uncork.errors import SetupError, UsageError
from uncork.model.database.copy import CopiedTable, CopyFacts, NotCopied
from uncork.model.database.names import literal
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
_EMPTY: Final = "the table is empty on the copy, so statements on it cannot be measured"


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
    with connect_errors():
        chosen = conninfo_to_dict(conninfo)
        noticed = {name: value for name, value in _NOTICED.items() if name not in chosen}
        connection = connect_to_watch(conninfo, prepare_threshold=None, client_encoding="UTF8", **noticed)
    major = connection.info.server_version // 10000
    if major < _OLDEST:
        connection.close()
        raise SetupError(f"cannot copy from PostgreSQL {major}; the source must have {_OLDEST} or newer")
    try:
        yield connection
    except SourceFailed as failed:
        remedy = "nothing was changed there; start the copy again"
        if isinstance(failed.error, psycopg.errors.LockNotAvailable):
            locked = "another session has locked a table, for example to change it"
            remedy = f"{locked}; start the copy again later"
        message = f"the source stopped the copy: {reason_of(failed.error)}; {remedy}"
        raise SetupError(message) from failed.error


@contextmanager
def _writer(place: str, settings: Sequence[ChosenSetting]) -> Iterator[psycopg.Connection[Any]]:
    with connect_errors():
        connection = connect_to_watch(place, prepare_threshold=None, client_encoding="UTF8")
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


def _read(source: psycopg.Connection[Any]) -> tuple[tuple[ChosenSetting, ...], Schema, tuple[NotCopied, ...]]:
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
    known = {name for table in schema.tables for name in (table.name, table.shown)}
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
        applier.apply(self.schema.before_rows)
        plan = self._plan(needless, disk)
        restores = not (needless or plan.sampled) and min(target, self.schema.version) >= RESTORES
        sizes = self._sizes() if restores else None
        done, missing = self._rows(plan, binary=target == self.schema.version)
        extra, cut = self._close(plan, done, disk) if plan.sampled else (0, ())
        with suppress(psycopg.Error):  # the source has sent everything
            self.source.execute("COMMIT")
            self.source.close()
        self.told("creating indexes and constraints")
        applier.apply(self.schema.after_rows)
        applier.apply(self.schema.filling)
        self.told("analysing the copy")
        applier.analyse()
        kept = sizes is not None and self._with_statistics(plan, sizes)
        absent = apply_settings(self.writer, settings)
        unneeded = tuple(
            NotCopied(f"rows of table {table.shown}", "the request does not need them", _EMPTY)
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
        by_unit = shares(units(chosen, self.schema.foreign_keys), disk)
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
            reason = "the role may not read it"
            if table.readable:
                self.told(f"copying rows of {table.shown}, {table.bytes / _MILLION:,.0f} MB")
                try:
                    done[table.oid] = self._one(table, plan, binary=binary)
                    continue
                except (SourceFailed, psycopg.Error) as error:
                    reason = self._continue(error)
            missing.append(NotCopied(f"rows of table {table.shown}", reason, _EMPTY))
        return done, missing

    def _one(self, table: Table, plan: _Plan, *, binary: bool) -> Transferred:
        name = table.quoted
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

        Raises SourceFailed if the source went away, or ended the transaction; SetupError if the
        copy went away, or its disk is full.
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
        return reason_of(error)

    def _close(
        self, plan: _Plan, done: dict[int, Transferred], disk: int
    ) -> tuple[int, tuple[NotCopied, ...]]:
        """Fetch what the sample references; count the rows anew. Return the bytes read, and what was cut."""
        tables = {table.oid: table for table in plan.tables}
        read = {oid: plan.names(oid) for oid, table in tables.items() if table.kind == "p" or oid in done}
        whole = {oid for oid, share in plan.shares.items() if share >= 1}
        not_null = {(column.table, column.name) for column in self.schema.columns if column.not_null}
        top = roots(plan.tables)
        cycles = cyclic(units(plan.tables, self.schema.foreign_keys))
        loose = {
            (key.table, key.references)
            for key in self.schema.foreign_keys
            if (top.get(key.table), top.get(key.references)) in cycles
        }
        found = links(self.schema.foreign_keys, tables, read, whole, not_null, loose)
        left = max(0, disk - sum(moved.bytes for moved in done.values()))
        self.told(f"copying the rows that {len(found)} foreign keys reference")
        with closing(connect_to_watch(self.place, client_encoding="UTF8")) as keys:
            keys.execute("SET search_path = ''")
            size, cut = close_sample(found, self.source, self.writer, keys, self.pace, left)
        for oid, moved in list(done.items()):
            if plan.shares[oid] < 1:
                count = f"SELECT count(*) FROM ONLY {tables[oid].quoted}"
                row = self.writer.execute(count.encode()).fetchone()
                done[oid] = Transferred(int(row[0]) if row else 0, moved.bytes)
        return size, cut

    def _table(self, table: Table, moved: Transferred, plan: _Plan) -> CopiedTable:
        whole = plan.shares[table.oid] >= 1
        rows = float(moved.rows) if whole or table.rows < 0 else max(table.rows, float(moved.rows))
        return CopiedTable(table.shown, moved.rows, rows, moved.bytes)


# ---- empty database ----


_LOCALE: Final = """
SELECT pg_encoding_to_char(encoding)::text, datcollate::text, datctype::text,
       coalesce(to_jsonb(d) ->> 'datlocprovider', 'c'),
       coalesce(to_jsonb(d) ->> 'datlocale', to_jsonb(d) ->> 'daticulocale')
  FROM pg_database d WHERE datname = current_database()
"""
_USED: Final = """
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%' AND c.relkind IN ('r', 'p', 'v', 'm')
"""
_FALLBACKS: Final = ("C.UTF-8", "C")


def make_database(source: psycopg.Connection[Any], target: str) -> tuple[bool, tuple[NotCopied, ...]]:
    """Return whether the database was created, and what of the source's locale it lacks.

    Raises:
        ConnectError: if the server of the copy cannot be reached.
        SetupError: if the database exists and has tables, or cannot be created.
        UsageError: if `target` names no database.
    """
    name = str(conninfo_to_dict(target).get("dbname") or "")
    if not name:
        raise UsageError("the connection string of the copy names no database; add dbname=NAME")
    with closing(_connect(make_conninfo(target, dbname="postgres"))) as control:
        try:
            if control.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                return False, _existing(source, target)
            return True, _create(source, control, name)
        except psycopg.Error as error:
            raise SetupError(f"cannot create database {name} for the copy: {reason_of(error)}") from error


def _connect(conninfo: str) -> psycopg.Connection[Any]:
    with connect_errors():
        return connect_to_watch(conninfo)


def drop_database(target: str) -> None:
    """Drop the database of a copy that failed. Raises psycopg.Error if that is not possible."""
    name = str(conninfo_to_dict(target)["dbname"])
    with closing(connect_to_watch(make_conninfo(target, dbname="postgres"))) as control:
        control.execute(f"DROP DATABASE IF EXISTS {identifier(name)} WITH (FORCE)".encode())


def _existing(source: psycopg.Connection[Any], target: str) -> tuple[NotCopied, ...]:
    with closing(_connect(target)) as connection:
        row = connection.execute(_USED.encode()).fetchone()
        if row is None or row[0]:
            raise SetupError(
                f"database {connection.info.dbname} has tables already; name a database that does not exist"
            )
        wanted, found = source.execute(_LOCALE).fetchone(), connection.execute(_LOCALE).fetchone()
    if wanted is None or found is None or wanted == found:
        return ()
    if wanted[0] != found[0]:
        raise SetupError(
            f"the source has the encoding {wanted[0]}, the database of the copy {found[0]}; name a database "
            "that does not exist"
        )
    return (_other_locale(wanted[4] or wanted[1], f"the database of the copy has {found[4] or found[1]}"),)


def _create(
    source: psycopg.Connection[Any], control: psycopg.Connection[Any], name: str
) -> tuple[NotCopied, ...]:
    row = source.execute(_LOCALE).fetchone()
    assert row is not None  # noqa: S101 -- a session's own database is in pg_database
    encoding, collate, ctype, provider, locale = row
    create = f"CREATE DATABASE {identifier(name)} TEMPLATE template0 ENCODING {literal(encoding)}"
    libc = f" LC_COLLATE {literal(collate)} LC_CTYPE {literal(ctype)}"
    if control.info.server_version >= 150000:
        kinds = {"i": " LOCALE_PROVIDER icu ICU_LOCALE ", "b": " LOCALE_PROVIDER builtin BUILTIN_LOCALE "}
        own = f"{kinds[provider]}{literal(locale)}" if provider in kinds else " LOCALE_PROVIDER libc"
        plain = " LOCALE_PROVIDER libc"
    else:
        own = plain = ""
    attempts = [own + libc]
    for other in _FALLBACKS:
        same = f" LC_COLLATE {literal(other)} LC_CTYPE {literal(other)}"
        attempts += [own + same] if provider != "c" else []
        attempts.append(plain + same)
    reason = ""
    for place, attempt in enumerate(attempts):
        try:
            control.execute((create + attempt).encode())
        except psycopg.Error as error:
            if control.broken or isinstance(error, psycopg.errors.DiskFull) or place == len(attempts) - 1:
                raise
            reason = reason or reason_of(error)
            continue
        kept = place == 0 or (provider != "c" and attempt.startswith(own))
        return () if kept else (_other_locale(locale or collate, reason),)
    return ()


def _other_locale(locale: str, why: str) -> NotCopied:
    return NotCopied(
        f"locale {locale} of the database",
        why,
        "text sorts and compares in another order, so plans and timings of ORDER BY, ranges and LIKE differ",
    )


# ---- decide which share of each table is copied, so that the copy fits a number of bytes ----
#
# 1. A partitioned table and its partitions are one unit. Units are copied whole, the smallest first,
#    while they fit in half of the budget.
# 2. All other units get one common share: `TABLESAMPLE SYSTEM` with a fixed seed chooses their pages,
#    which reads only these pages, and chooses the same ones again while the table does not change.
# 3. Rows that the chosen rows reference by foreign keys are added (`closing`). Their expected number is
#    part of the budget: of `N` rows, `r` references that are spread evenly hit `N (1 - exp(-r / N))`.
#    Where references form a cycle, such as a table that references itself, they can lead to every row. A
#    part of the budget is kept for these, and they are cut when it is used.
#
# Sizes are those of the tables without indexes, which need about as much disk again.


_WHOLE: Final = 0.5
_FOR_CYCLES: Final = 0.3
_STEPS: Final = 40
_ROUNDS: Final = 20
_ROW_BYTES: Final = 100
"""The size of a row, if a table was never analysed."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A table, or a partitioned table with all its partitions. `references` are the units it references."""

    oid: int
    bytes: int
    rows: float
    references: tuple[int, ...] = ()


def roots(tables: Iterable[Table]) -> dict[int, int]:
    """Return for each table the partitioned table at the top of its tree, or itself."""
    parents = {table.oid: table.parents[0] for table in tables if table.partition and table.parents}
    found = {}
    for table in tables:
        top = table.oid
        while top in parents:
            top = parents[top]
        found[table.oid] = top
    return found


def units(tables: Sequence[Table], keys: Iterable[ForeignKey]) -> tuple[Unit, ...]:
    """Return the units of tables, with the references of their foreign keys."""
    top = roots(tables)
    sizes = dict.fromkeys(top.values(), 0)
    rows = dict.fromkeys(top.values(), 0.0)
    references: dict[int, list[int]] = {}
    for table in tables:
        sizes[top[table.oid]] += table.bytes
        if table.kind == "r":
            rows[top[table.oid]] += table.rows if table.rows >= 0 else table.bytes / _ROW_BYTES
    for key in keys:
        if not key.derived and key.table in top and key.references in top:
            references.setdefault(top[key.table], []).append(top[key.references])
    return tuple(Unit(oid, sizes[oid], rows[oid], tuple(references.get(oid, ()))) for oid in sizes)


def cyclic(parts: Sequence[Unit]) -> set[tuple[int, int]]:
    """Return the references, each as two units, that are part of a cycle."""
    direct = {part.oid: set(part.references) for part in parts}
    reached: dict[int, set[int]] = {}
    for start in direct:
        found: set[int] = set()
        ahead = [start]
        while ahead:
            new = direct[ahead.pop()] - found
            found |= new
            ahead += new
        reached[start] = found
    return {
        (child, parent) for child, found in direct.items() for parent in found if child in reached[parent]
    }


def shares(parts: Sequence[Unit], budget: int) -> dict[int, float]:
    """Return the share of each unit, 0 to 1, so that the copy is expected to have `budget` bytes at most."""
    if sum(part.bytes for part in parts) <= budget:
        return {part.oid: 1.0 for part in parts}
    whole: set[int] = set()
    used = 0
    for part in sorted(parts, key=lambda part: (part.bytes, part.oid)):
        if used + part.bytes > _WHOLE * budget:
            break
        used += part.bytes
        whole.add(part.oid)
    loose = cyclic(parts)
    if any(child not in whole and parent not in whole for child, parent in loose):
        budget -= int(_FOR_CYCLES * (budget - used))
    parts = [
        replace(part, references=tuple(to for to in part.references if (part.oid, to) not in loose))
        for part in parts
    ]
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _expected(parts, whole, middle) <= budget else (low, middle)
    return {part.oid: 1.0 if part.oid in whole else low for part in parts}


def _expected(parts: Sequence[Unit], whole: set[int], share: float) -> float:
    """Return the bytes that are expected if all units but `whole` have a share, and their references come."""
    chosen: Mapping[int, float] = {part.oid: 1.0 if part.oid in whole else share for part in parts}
    start = dict(chosen)
    for _ in range(_ROUNDS):
        hits = dict.fromkeys(chosen, 0.0)
        for part in parts:
            for other in part.references:
                hits[other] += chosen[part.oid] * part.rows
        chosen = {
            part.oid: 1 - (1 - start[part.oid]) * math.exp(-hits[part.oid] / max(part.rows, 1.0))
            for part in parts
        }
    return sum(chosen[part.oid] * part.bytes for part in parts)
