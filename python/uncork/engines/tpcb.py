"""Create, fill and index pgbench's tables as `pgbench -i` does, with exactly the same rows, in less time.

The steps are the same as in pgbench 18 (`-I`): d drops the tables, t creates them, g fills them
from the client, G fills them by SQL in the server, v vacuums and analyses, p adds primary keys, f
adds foreign keys. Each step except v is one transaction with an ordinary, durable commit.

Step g puts the same rows on the same pages in the same order as pgbench, but is faster:

- Rows are sent in COPY's binary format, so that the server need not parse text. One message carries many
  rows, where pgbench sends one message per row.
- A block of rows is one numpy array whose big-endian fields are the bytes on the wire. Building it costs next
  to nothing, and the server never waits.
- It uses one connection: COPY with FREEZE marks rows and pages as visible while it writes them, and requires
  that the same transaction truncated the table. Rows from several connections would need another pass over
  the table to be frozen, and would be interleaved, which changes the correlation in the statistics.

If the server's maintenance_work_mem is too small to sort in memory, step p raises it for its own transaction.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import errors, sql

from uncork.engines.connecting import connect_error, reason_of
from uncork.errors import ConnectError, SetupError, UsageError
from uncork.model.server import LOAD_APPLICATION

ACCOUNTS = 100_000
"""Accounts per branch."""

TELLERS = 10
"""Tellers per branch."""

STEPS = {
    "d": "drop tables",
    "t": "create tables",
    "g": "client-side generate",
    "G": "server-side generate",
    "v": "vacuum",
    "p": "primary keys",
    "f": "foreign keys",
}
"""The letters of `-I`, and pgbench's names for the steps."""

LARGE_SCALE = 20_000  # from this scale on, pgbench declares account numbers as bigint
LARGEST_SCALE = (2**31 - 1) // TELLERS  # a larger scale has more tellers than an int can number

# Sorting an account's key takes 24 bytes for the sort tuple, and up to 40 for the index tuple with its
# allocator header. Above the cap the sort spills to disk, as with pgbench: the memory belongs to the server.
SORT_BYTES_PER_ROW = 64
SORT_BYTES_AT_MOST = 512 * 2**20

FREEZE_SHOWS = 140_000  # from this version on, COPY FREEZE marks pages visible, and pgbench uses it

PartitionMethod = Literal["range", "hash"]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of step g: `rows` of `total` rows of pgbench_accounts were sent in `elapsed_ns`."""

    rows: int
    total: int
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Step:
    """One completed step: its letter, pgbench's name for it, and its wall time."""

    letter: str
    name: str
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Initialised:
    """The result of an initialisation. `steps` are in the order in which they ran, without connecting."""

    scale: int
    steps: tuple[Step, ...]

    @property
    def elapsed_ns(self) -> int:
        """The total wall time of all steps."""
        return sum(step.elapsed_ns for step in self.steps)


@dataclass(frozen=True, slots=True)
class PgbenchTables:
    """What to create, as `pgbench -i` takes it.

    `steps` are letters of `STEPS`, run in the given order; spaces are ignored. `foreign_keys` adds
    f at the end if it is missing. With `partitions` 0, pgbench_accounts is not partitioned.
    `progress` is called in the caller's thread after every 100 000 accounts of step g.
    """

    scale: int
    steps: str = "dtgvp"
    fillfactor: int = 100
    foreign_keys: bool = False
    unlogged: bool = False
    tablespace: str | None = None
    index_tablespace: str | None = None
    partitions: int = 0
    partition_method: PartitionMethod = "range"
    progress: Callable[[Progress], None] | None = None

    @property
    def letters(self) -> str:
        """The steps to run, without spaces."""
        steps = self.steps.replace(" ", "")
        return steps + "f" if self.foreign_keys and "f" not in steps else steps


def initialise(conninfo: str, **options: Any) -> Initialised:
    """Create pgbench's tables in the database that `conninfo` names, and return how long each step took.

    `options` are the fields of `PgbenchTables`.

    Raises:
        SetupError: if an option is invalid, or the server refuses a step. Earlier steps are not undone.
        ConnectError: if the server cannot be reached, refuses the connection, or goes away.
    """
    wanted = PgbenchTables(**options)
    _check(wanted)
    with _connected(conninfo) as connection:
        steps = tuple(_carry_out(connection, letter, wanted) for letter in wanted.letters)
    return Initialised(wanted.scale, steps)


def scale_of(conninfo: str) -> int:
    """Return the scale of the pgbench tables in a database: the number of rows in pgbench_branches.

    Raises SetupError if there are no such tables, they are empty, or they may not be read;
    ConnectError if the server cannot be reached, or refuses the connection.
    """
    with _connected(conninfo) as connection:
        database = connection.info.dbname
        remedy = f'create them first: uncork load sql -i (in database "{database}")'
        try:
            row = connection.execute("SELECT count(*) FROM pgbench_branches").fetchone()
        except psycopg.errors.UndefinedTable as error:
            raise SetupError(
                f'database "{database}" has no pgbench tables; {remedy}, or name another database'
            ) from error
        except psycopg.Error as error:
            raise _explained(error, connection, "counting the rows of pgbench_branches") from error
    if row is None or row[0] == 0:
        raise SetupError(f'the pgbench tables in database "{database}" are empty; {remedy}')
    return int(row[0])


# ---- the options ----


def _check(wanted: PgbenchTables) -> None:
    unknown = sorted({letter for letter in wanted.letters if letter not in STEPS})
    allowed = ", ".join(f"{letter} ({name})" for letter, name in STEPS.items())
    if unknown:
        found = ", ".join(f'"{letter}"' for letter in unknown)
        raise SetupError(f"unknown initialisation steps {found}; the steps are {allowed}")
    if not wanted.letters:
        raise SetupError(f"no initialisation steps given; the steps are {allowed}")
    if not 1 <= wanted.scale <= LARGEST_SCALE:
        raise SetupError(f"the scale must be from 1 to {LARGEST_SCALE}, not {wanted.scale}")
    if not 10 <= wanted.fillfactor <= 100:
        raise SetupError(f"the fillfactor must be from 10 to 100 (percent), not {wanted.fillfactor}")
    if wanted.partitions < 0:
        raise SetupError(
            f"the number of partitions must be 0 (none) or more, not {wanted.partitions}; "
            "leave it out for a table that is not partitioned"
        )
    if wanted.partition_method not in {"range", "hash"}:
        raise SetupError(f'the partition method must be "range" or "hash", not "{wanted.partition_method}"')


# ---- the steps ----


def _carry_out(connection: psycopg.Connection, letter: str, wanted: PgbenchTables) -> Step:
    where = f'step "{letter}" ({STEPS[letter]})'
    start = time.perf_counter_ns()
    try:
        if letter == "v":  # VACUUM refuses to run in a transaction
            connection.execute(
                "VACUUM (ANALYZE) pgbench_branches, pgbench_tellers, pgbench_accounts, pgbench_history"
            )
        else:
            with connection.transaction():
                _IN_A_TRANSACTION[letter](connection, wanted)
    except psycopg.Error as error:
        raise _explained(error, connection, where, letter) from error
    except SetupError as error:
        raise SetupError(f"{where}: {error}") from error
    return Step(letter, STEPS[letter], time.perf_counter_ns() - start)


def _drop(connection: psycopg.Connection, _: PgbenchTables) -> None:
    connection.execute(
        "DROP TABLE IF EXISTS pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers"
    )


def _create(connection: psycopg.Connection, wanted: PgbenchTables) -> None:
    for command in _tables(wanted):
        connection.execute(command)


def _tables(wanted: PgbenchTables) -> Iterator[sql.Composed]:
    """Yield the CREATE TABLE commands, with the same columns, types and sizes as in pgbench."""
    number = "bigint" if wanted.scale >= LARGE_SCALE else "int"
    fill = f"WITH (fillfactor={wanted.fillfactor})"
    place = _clause("TABLESPACE {}", wanted.tablespace)
    # A partitioned table cannot be unlogged, and pgbench then leaves the other tables logged too.
    kind = "UNLOGGED TABLE" if wanted.unlogged and not wanted.partitions else "TABLE"
    accounts = f"PARTITION BY {wanted.partition_method} (aid)" if wanted.partitions else fill
    for name, columns, ending in (
        ("history", f"tid int, bid int, aid {number}, delta int, mtime timestamp, filler char(22)", ""),
        ("tellers", "tid int NOT NULL, bid int, tbalance int, filler char(84)", fill),
        ("accounts", f"aid {number} NOT NULL, bid int, abalance int, filler char(84)", accounts),
        ("branches", "bid int NOT NULL, bbalance int, filler char(88)", fill),
    ):
        yield sql.SQL("CREATE {} {} ({}) {}{}").format(
            sql.SQL(kind), sql.Identifier(f"pgbench_{name}"), sql.SQL(columns), sql.SQL(ending), place
        )
    for part in range(1, wanted.partitions + 1):
        yield sql.SQL("CREATE {} TABLE {} PARTITION OF pgbench_accounts FOR VALUES {} {}").format(
            sql.SQL("UNLOGGED" if wanted.unlogged else ""),
            sql.Identifier(f"pgbench_accounts_{part}"),
            sql.SQL(_bounds(part, wanted)),
            sql.SQL(fill),
        )


def _bounds(part: int, wanted: PgbenchTables) -> str:
    """Return the bounds of a partition. The outer ranges are unbounded, so that every number fits."""
    count = wanted.partitions
    if wanted.partition_method == "hash":
        return f"WITH (MODULUS {count}, REMAINDER {part - 1})"
    size = -(-ACCOUNTS * wanted.scale // count)
    low = "MINVALUE" if part == 1 else str((part - 1) * size + 1)
    high = "MAXVALUE" if part == count else str(part * size + 1)
    return f"FROM ({low}) TO ({high})"


def _generate_there(connection: psycopg.Connection, wanted: PgbenchTables) -> None:
    _truncate(connection)
    for command in (
        "INSERT INTO pgbench_branches (bid, bbalance) "
        "SELECT bid, 0 FROM generate_series(1, {branches}) AS bid",
        "INSERT INTO pgbench_tellers (tid, bid, tbalance) "
        "SELECT tid, (tid - 1) / {a_branch} + 1, 0 FROM generate_series(1, {a_branch} * {branches}) AS tid",
        "INSERT INTO pgbench_accounts (aid, bid, abalance, filler) "
        "SELECT aid, (aid - 1) / {accounts} + 1, 0, '' "
        "FROM generate_series(1, {accounts}::bigint * {branches}) AS aid",
    ):
        connection.execute(
            sql.SQL(command).format(branches=wanted.scale, a_branch=TELLERS, accounts=ACCOUNTS)
        )


def _add_primary_keys(connection: psycopg.Connection, wanted: PgbenchTables) -> None:
    _make_room_for_sorting(connection, wanted.scale)
    place = _clause("USING INDEX TABLESPACE {}", wanted.index_tablespace)
    for table, column in (("branches", "bid"), ("tellers", "tid"), ("accounts", "aid")):
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD PRIMARY KEY ({}){}").format(
                sql.Identifier(f"pgbench_{table}"), sql.Identifier(column), place
            )
        )


def _make_room_for_sorting(connection: psycopg.Connection, scale: int) -> None:
    """Raise maintenance_work_mem for this transaction to the need of the largest key, if it is lower."""
    kilobytes = min(SORT_BYTES_PER_ROW * ACCOUNTS * scale, SORT_BYTES_AT_MOST) // 1024
    connection.execute(
        "SELECT set_config(name, %s, true) FROM pg_settings "
        "WHERE name = 'maintenance_work_mem' AND setting::bigint < %s",
        (str(kilobytes), kilobytes),
    )


def _add_foreign_keys(connection: psycopg.Connection, _: PgbenchTables) -> None:
    for table, column, other in (
        ("tellers", "bid", "branches"),
        ("accounts", "bid", "branches"),
        ("history", "bid", "branches"),
        ("history", "tid", "tellers"),
        ("history", "aid", "accounts"),
    ):
        connection.execute(
            sql.SQL("ALTER TABLE {} ADD CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {}").format(
                sql.Identifier(f"pgbench_{table}"),
                sql.Identifier(f"pgbench_{table}_{column}_fkey"),
                sql.Identifier(column),
                sql.Identifier(f"pgbench_{other}"),
            )
        )


def _clause(text: str, name: str | None) -> sql.Composable:
    return sql.SQL("") if name is None else sql.SQL(f" {text}").format(sql.Identifier(name))


# ---- step g: rows made here ----


@dataclass(frozen=True, slots=True)
class _Rows:
    """Consecutive rows of one table, in the order of its columns, with an empty filler column at the end.

    A single number is repeated for all rows. `filler` is the length of the text in the last column:
    0, which char(n) pads with blanks, or -1 for NULL.
    """

    columns: tuple[IntArray | int, ...]
    filler: int

    def binary(self, widths: Sequence[int]) -> bytes:
        """Return the rows in COPY's binary format; `widths` are the bytes of each integer column.

        A row is the number of its fields, then the length and the bytes of each field, all
        big-endian. Raises SetupError if a number does not fit into its column.
        """
        for width, values in zip(widths, self.columns, strict=True):
            if (largest := int(np.max(values))) >= 2 ** (8 * width - 1):
                raise SetupError(f"{largest} does not fit into a column of {width} bytes; {_AFRESH}")
        fields = [("fields", ">i2")]
        for number, width in enumerate(widths):
            fields += [(f"length{number}", ">i4"), (f"value{number}", f">i{width}")]
        rows = np.empty(self._count, np.dtype([*fields, ("filler", ">i4")]))
        rows["fields"] = len(widths) + 1
        for number, (width, values) in enumerate(zip(widths, self.columns, strict=True)):
            rows[f"length{number}"] = width
            rows[f"value{number}"] = values
        rows["filler"] = self.filler
        return rows.tobytes()

    def text(self) -> bytes:
        """Return the rows in COPY's text format."""
        columns = (np.broadcast_to(values, self._count).tolist() for values in self.columns)
        ending = "\t\\N\n" if self.filler < 0 else "\t\n"
        return "".join("\t".join(map(str, row)) + ending for row in zip(*columns, strict=True)).encode()

    @property
    def _count(self) -> int:
        return next(len(values) for values in self.columns if not isinstance(values, int))


def _branches(scale: int) -> Iterator[_Rows]:
    yield _Rows((np.arange(1, scale + 1), 0), filler=-1)


def _tellers(scale: int) -> Iterator[_Rows]:
    numbers = np.arange(TELLERS * scale)
    yield _Rows((numbers + 1, numbers // TELLERS + 1, 0), filler=-1)


def _accounts(scale: int, progress: Callable[[Progress], None] | None) -> Iterator[_Rows]:
    """Yield the accounts of each branch, and report progress after each."""
    start = time.perf_counter_ns()
    numbers = np.arange(1, ACCOUNTS + 1)
    for branch in range(scale):
        yield _Rows((numbers + branch * ACCOUNTS, branch + 1, 0), filler=0)
        if progress is not None:
            elapsed_ns = time.perf_counter_ns() - start
            progress(Progress((branch + 1) * ACCOUNTS, scale * ACCOUNTS, elapsed_ns))


def _generate_here(connection: psycopg.Connection, wanted: PgbenchTables) -> None:
    _truncate(connection)
    # This order also works if the foreign keys already exist.
    _copy(connection, "pgbench_branches", _branches(wanted.scale))
    _copy(connection, "pgbench_tellers", _tellers(wanted.scale))
    _copy(connection, "pgbench_accounts", _accounts(wanted.scale, wanted.progress))


def _copy(connection: psycopg.Connection, table: str, blocks: Iterator[_Rows]) -> None:
    kind, types = connection.execute(_COLUMNS, (table,)).fetchone() or ("", [])
    widths = [_WIDTHS[name] for name in types[:-1] if name in _WIDTHS]
    binary = len(widths) == len(types) - 1 and types[-1] in _TEXTS
    options = ["FORMAT binary"] if binary else []
    if kind == "r" and connection.info.server_version >= FREEZE_SHOWS:
        options.append("FREEZE")
    command = sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))
    if options:
        command += sql.SQL(" WITH ({})").format(sql.SQL(", ").join(map(sql.SQL, options)))
    with connection.cursor().copy(command) as stream:
        if binary:
            stream.write(_BINARY_START)
        for rows in blocks:
            stream.write(rows.binary(widths) if binary else rows.text())
        if binary:
            stream.write(_BINARY_END)


def _truncate(connection: psycopg.Connection) -> None:
    connection.execute("TRUNCATE TABLE pgbench_accounts, pgbench_branches, pgbench_history, pgbench_tellers")


_IN_A_TRANSACTION: Final[Mapping[str, Callable[[psycopg.Connection, PgbenchTables], None]]] = {
    "d": _drop,
    "t": _create,
    "g": _generate_here,
    "G": _generate_there,
    "p": _add_primary_keys,
    "f": _add_foreign_keys,
}

# Binary COPY must know the types. Tables with other types get text, which any type can read.
_COLUMNS = """
SELECT c.relkind::text, array_agg(format_type(a.atttypid, NULL) ORDER BY a.attnum)
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
 WHERE c.oid = to_regclass(%s) AND a.attnum > 0 AND NOT a.attisdropped
 GROUP BY c.relkind
"""
_WIDTHS: Final = {"smallint": 2, "integer": 4, "bigint": 8}
_TEXTS: Final = {"character", "character varying", "text"}
_BINARY_START: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_BINARY_END: Final = b"\xff\xff"
_AFRESH: Final = "put steps d and t before it to start over"


# ---- connection and errors ----


@contextlib.contextmanager
def _connected(conninfo: str) -> Iterator[psycopg.Connection]:
    try:
        connection = psycopg.connect(
            conninfo, autocommit=True, application_name=LOAD_APPLICATION, connect_timeout=10
        )
    except (psycopg.OperationalError, psycopg.ProgrammingError) as error:
        raise connect_error(error) from error
    with connection:
        yield connection


def _explained(
    error: psycopg.Error, connection: psycopg.Connection, where: str, letter: str = ""
) -> UsageError:
    """Return the error for a request that the server refused, with a remedy if there is one."""
    if connection.broken:
        return ConnectError(f"{where}: the server went away: {reason_of(error)}")
    message = reason_of(error)
    remedy = next((text for kind, text in _REMEDIES if isinstance(error, kind)), "")
    if letter == "f" and isinstance(error, errors.UndefinedObject):
        remedy = "put step p (primary keys) before it"
    if isinstance(error, errors.InsufficientPrivilege):
        remedy = f'the role is "{connection.info.user}"; {remedy}'
    return SetupError("; ".join(filter(None, (f"{where}: {message}", remedy))))


_REMEDIES: Final[tuple[tuple[type[psycopg.Error], str], ...]] = (
    (errors.UndefinedTable, "put step t (create tables) before it"),
    (errors.DuplicateTable, "put step d (drop tables) before it"),
    (errors.InsufficientPrivilege, "connect as a role that may create tables and owns the pgbench tables"),
    (errors.DiskFull, "free some space for the server's data, or choose a smaller scale"),
    (errors.InvalidTableDefinition, _AFRESH),
    (errors.DuplicateObject, _AFRESH),
    (errors.UndefinedObject, "name one that exists"),
    (errors.ReadOnlySqlTransaction, "connect to a server that accepts writes, not to a standby"),
    (errors.QueryCanceled, "set statement_timeout to 0, for example by PGOPTIONS='-c statement_timeout=0'"),
)
