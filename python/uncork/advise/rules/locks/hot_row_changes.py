"""What to do about rows for which sessions queue. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from uncork.advise.evidence import Statement
from uncork.advise.rules.writes.written import Written
from uncork.model.database.finding import Candidate
from uncork.model.database.names import quoted, sql_name

_PARTS: Final = 16
"""Rows into which a counter is split. With as many as busy sessions, two of them seldom meet; reading sums
up a few rows of one page."""
_OF_UPDATE: Final = re.compile(r"\bfor\s+(?:no\s+key\s+)?update(?:\s+of\s+[\w$\", .]+?)?(?=\s*(?:;|$))", re.I)


def changes(table: str, statements: Sequence[tuple[Statement, Written]]) -> Iterator[Candidate]:
    """Yield what could shorten the queue for a table's rows, the best first."""
    locking = next((pair for pair in statements if pair[1].kind == "lock"), None)
    if locking is not None and locking[1].limited and not locking[1].skips:
        yield _skip_locked(locking[0])
        return
    counting = next((pair for pair in statements if pair[1].counter), None)
    if counting is not None and _draws(*counting):
        yield _sequence(table, counting[1])
    elif counting is not None:
        yield _split(table, counting[1])
        yield _append(table, counting[1])
    elif locking is not None:
        yield Candidate(
            "statement",
            f"Replace SELECT ... FOR UPDATE and the change of {table} by one UPDATE ... RETURNING: "
            "the row stays locked for one statement instead of several. For numbers that may have gaps, use "
            "a sequence.",
        )
    yield Candidate(
        "client",
        f"Change {table} last in the transaction, right before COMMIT, so that the row is locked only for "
        "the commit.",
        habit="locks early",
        against=("Transactions that change several rows must keep one order, or they deadlock.",),
    )
    yield Candidate(
        "client",
        "Add up several changes in the application, and write their sum with one UPDATE.",
        against=("A crash of the application loses the sums that it has not written.",),
    )


def _skip_locked(one: Statement) -> Candidate:
    sql = _OF_UPDATE.sub(lambda match: f"{match[0]} SKIP LOCKED", one.sql or one.text, count=1)
    return Candidate(
        "statement",
        "Add SKIP LOCKED, so that each worker takes the next job that no other worker has locked.",
        sql=sql if "SKIP LOCKED" in sql else "",
        undo=one.sql or one.text,
        same_answers=False,
        against=("Jobs are no longer taken in strict order.",),
    )


def _draws(one: Statement, what: Written) -> bool:
    """Return whether a statement returns the counter that it raises: its value is a number for the client."""
    returned = (one.sql or one.text).lower().rpartition(" returning ")
    return (
        bool(returned[1]) and re.search(rf"\*|\b{re.escape(what.counter.lower())}\b", returned[2]) is not None
    )


def _sequence(table: str, what: Written) -> Candidate:
    name = sql_name(f"{table}_{what.counter}_seq")
    return Candidate(
        "ddl",
        f"If the numbers may have gaps, draw them from a sequence, which locks no row of {table}.",
        sql=f"CREATE SEQUENCE {name};\nSELECT setval('{name}', max({quoted(what.counter)}) + 1, false) "
        f"FROM {sql_name(table)};\nSELECT nextval('{name}');",
        undo=f"DROP SEQUENCE {name};",
        same_answers=False,
        against=(
            "A transaction that rolls back leaves a gap. Each key of the table needs its own sequence.",
        ),
    )


def _split(table: str, what: Written) -> Candidate:
    name = sql_name(f"{table}_part")
    keys = [*map(quoted, (key for key in what.keys if key != what.counter)), "part"]
    counter, key = quoted(what.counter), ", ".join(keys)
    values = [*(f"${number}" for number in range(1, len(keys))), f"(random() * {_PARTS - 1})::int", "1"]
    copied = ", ".join([*keys[:-1], "0::smallint AS part", counter])
    return Candidate(
        "ddl",
        f"Split {what.counter} of {table} over {_PARTS} rows for each key: add to a random one of them "
        "(INSERT ... ON CONFLICT DO UPDATE), and read their sum.",
        sql=f"CREATE TABLE {name} WITH (fillfactor = 50) AS SELECT {copied} FROM {sql_name(table)};\n"  # noqa: S608
        f"ALTER TABLE {name} ADD PRIMARY KEY ({key});\n"
        f"INSERT INTO {name} ({key}, {counter}) VALUES ({', '.join(values)})\n"
        f"  ON CONFLICT ({key}) DO UPDATE SET {counter} = {name}.{counter} + excluded.{counter};",
        undo=f"DROP TABLE {name};",
        habit="counts in one row",
        against=(
            f"Statements that read {what.counter} must add up the parts, so one row cannot check a limit "
            "on its value, such as a balance that must not become negative.",
        ),
    )


def _append(table: str, what: Written) -> Candidate:
    name = sql_name(f"{table}_change")
    columns = ", ".join(map(quoted, dict.fromkeys([*what.keys, what.counter])))
    return Candidate(
        "ddl",
        f"Insert each change into a table of its own, and let a job add them to {table} every few seconds.",
        sql=f"CREATE TABLE {name} AS SELECT {columns} FROM {sql_name(table)} WITH NO DATA;",  # noqa: S608
        undo=f"DROP TABLE {name};",
        against=(f"{what.counter} is a few seconds old, unless readers add the changes that are left.",),
    )
