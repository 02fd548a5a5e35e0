"""A recording: transactions that sessions of a server executed, in their order, with values and pauses."""

from __future__ import annotations

from collections.abc import Mapping

from uncork.model.records import Record

TRANSACTIONS = "transactions.jsonl"
"""The file of a recording that has one transaction a line."""


class LoggedStatement(Record):
    """A statement of a log, with the pause of the client before it in microseconds.

    `parameters` is as the log writes them. `bound` is true if the client sent them apart from the text, by
    the extended protocol.
    """

    text: str
    parameters: str
    bound: bool
    pause_us: int


class LoggedTransaction(Record):
    """A transaction of a log, from its first statement to the last; times in microseconds since 1970.

    A statement outside of a transaction block is a transaction of its own. `session` counts from 0.
    """

    session: int
    begin_us: int
    end_us: int
    statements: tuple[LoggedStatement, ...]


class RecordedTransaction(Record):
    """A transaction to send again: a script, and the values of its variables.

    `at_us` is when it began, from the beginning of the recording; `took_us` is how long it took. Variables
    that begin with ``p`` are values of parameters (None is NULL), with ``t`` parts of a statement's text, and
    with ``w`` the pause before a statement, in microseconds.
    """

    at_us: int
    took_us: int
    session: int
    script: str
    values: Mapping[str, str | None]


class Recording(Record):
    """Transactions of `sessions` sessions over `seconds`, with their scripts by name.

    `missing` counts transactions that cannot be sent again, by the reason.
    """

    scripts: Mapping[str, str]
    transactions: tuple[RecordedTransaction, ...]
    sessions: int
    seconds: float
    missing: Mapping[str, int]
