"""Batches: the same rows sent to the server in different ways. Takes a strategy, returns the statements.

The workload's SQL reads its rows from ``:batch`` as from a table. The strategy decides what replaces it: one
row of values, many rows, arrays, or a temporary table filled by COPY. So every strategy executes the same
SQL, and only the transfer of the rows differs.

SQL without ``:batch`` can name the columns instead. ``:id`` is then a value where one row is sent at a time,
and the array of all values where arrays are. So a strategy can have a statement of its own, as a client has
that sends each row with ``WHERE id = :id`` and then all rows with ``WHERE id = ANY (:id)``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from uncork.experiment.spec.sqltext import names_in, substitute
from uncork.model.request import Batch, Form, Statement

Strategy = Literal["rows", "transaction", "pipeline", "values", "unnest", "copy"]

BATCH = "batch"
"""The name of the rows in the SQL: ``SELECT ... FROM :batch``."""

MAXIMUM_PARAMETERS = 65_535
"""Maximum number of parameters per statement: the protocol counts them in 16 bits."""

CHUNKED: frozenset[Strategy] = frozenset({"values", "unnest"})
"""Strategies that may send a batch as several statements of many rows each."""

_TABLE = "uncork_batch"
_FORMS: dict[Strategy, Form] = {
    "rows": "scalar",
    "transaction": "scalar",
    "pipeline": "scalar",
    "values": "values",
    "unnest": "arrays",
    "copy": "copy",
}
_NAMING: frozenset[Form] = frozenset({"scalar", "arrays"})
"""Forms in which each column has one placeholder, so that SQL can name it."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The statements that send one batch.

    `transaction`: the statements run between BEGIN and COMMIT. `executions` is the number of statements that
    the server executes, without these two. `round_trips` is how often the client waits, and `commits` the
    number of transactions.
    """

    statements: tuple[Statement, ...]
    transaction: bool
    executions: int
    round_trips: int
    commits: int


def carry(
    name: str,
    texts: Sequence[str],
    columns: Mapping[str, str],
    *,
    strategy: Strategy,
    rows: int,
    chunk: int | None = None,
) -> Carried:
    """Return the statements that send one batch, whose names begin with `name`.

    `texts` are the workload's SQL, complete except for ``:batch`` or the columns; a text that has neither is
    executed once per batch. `columns` are the columns of ``:batch`` with their types, in the order of the
    parameter table. At most `chunk` rows go into a statement, for values and unnest. Raises ValueError if the
    rows cannot be divided into equal chunks of a useful size.
    """
    form = _FORMS[strategy]
    each = chunk_rows(strategy, rows, len(columns), chunk)
    batch = Batch(each, rows // each, form, pipelined=strategy == "pipeline")
    source = {BATCH: _source(form, columns, each)}
    if form in _NAMING:
        source |= {column: f"${number}" for number, column in enumerate(columns, start=1)}
    every = tuple(range(len(columns)))
    statements = _copied(name, columns, batch) if form == "copy" else []
    for number, text in enumerate(texts, start=1):
        own = name if len(texts) == 1 else f"{name}.{number}"
        sql = substitute(text, source).strip().rstrip(";")
        taken = form != "copy" and takes_rows(text, columns, strategy)
        statements.append(Statement(own, sql, every if taken else (), batch if taken else None))
    executions = sum(1 if statement.batch is None else statement.batch.times for statement in statements)
    syncs = sum(_waits(statement.batch) for statement in statements)
    # Without BEGIN, each statement would be its own transaction, but a batch should be one transaction.
    parts = len(statements) if strategy == "pipeline" else executions
    transaction = strategy == "transaction" or (strategy != "rows" and parts > 1)
    return Carried(
        statements=tuple(statements),
        transaction=transaction,
        executions=executions,
        round_trips=syncs + 2 * transaction,
        commits=executions if strategy == "rows" else 1,
    )


def takes_rows(text: str, columns: Collection[str], strategy: Strategy) -> bool:
    """Return whether SQL takes the rows of a batch: from ``:batch``, or by the names of its columns."""
    names = names_in(text)
    return BATCH in names or (_FORMS[strategy] in _NAMING and not names.isdisjoint(columns))


def chunk_rows(strategy: Strategy, rows: int, columns: int, chunk: int | None = None) -> int:
    """Return the rows of each statement, all equal. Raises ValueError if these are few."""
    if strategy == "copy":
        return rows
    if strategy not in CHUNKED:
        return 1
    most = min(chunk or rows, rows)
    if strategy == "values":
        most = min(most, MAXIMUM_PARAMETERS // columns)
    each = next(size for size in range(most, 0, -1) if rows % size == 0)
    if 2 * each < most:
        raise ValueError(
            f"{rows} rows cannot be divided into equal chunks of {most // 2 + 1} to {most} rows; change "
            "batch.rows or chunk so that they divide evenly"
        )
    return each


def plain_values(statement: Statement, parameters: Sequence[Sequence[str | None]]) -> list[str | None] | None:
    """Return the values of ``$1``... in the first execution of a statement; None for the data of a COPY."""
    taken = [parameters[column] for column in statement.columns]
    form = "scalar" if statement.batch is None else statement.batch.form
    rows = 1 if statement.batch is None else statement.batch.rows
    if form == "copy":
        return None
    if form == "arrays":
        return [array_text(column[:rows]) for column in taken]
    return [column[row] for row in range(rows) for column in taken]


def array_text(values: Sequence[str | None]) -> str:
    r"""Return a one-dimensional array in PostgreSQL's notation: ``{"a","b \"c\"",NULL}``."""
    return "{" + ",".join("NULL" if value is None else _quoted(value) for value in values) + "}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _source(form: Form, columns: Mapping[str, str], rows: int) -> str:
    names = ", ".join(columns)
    if form == "copy":
        return f"{_TABLE} AS {BATCH}"
    types = list(columns.values())
    if form == "arrays":
        arrays = ", ".join(f"${number}::{type_}[]" for number, type_ in enumerate(types, start=1))
        return f"unnest({arrays}) AS {BATCH} ({names})"
    first = ", ".join(f"${number}::{type_}" for number, type_ in enumerate(types, start=1))
    tuples = [f"({first})"]
    for row in range(1, rows):
        numbers = range(row * len(types) + 1, (row + 1) * len(types) + 1)
        tuples.append(f"({', '.join(f'${number}' for number in numbers)})")  # types as in the first
    return f"(VALUES {', '.join(tuples)}) AS {BATCH} ({names})"


def _copied(name: str, columns: Mapping[str, str], batch: Batch) -> list[Statement]:
    definition = ", ".join(f"{column} {type_}" for column, type_ in columns.items())
    return [
        Statement(
            f"{name}.table",
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {_TABLE} ({definition}) ON COMMIT DELETE ROWS",
            (),
        ),
        Statement(
            f"{name}.copy",
            f"COPY {_TABLE} ({', '.join(columns)}) FROM STDIN",
            tuple(range(len(columns))),
            batch,
        ),
    ]


def _waits(batch: Batch | None) -> int:
    return 1 if batch is None or batch.pipelined else batch.times
