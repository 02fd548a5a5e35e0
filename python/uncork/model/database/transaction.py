"""A captured transaction: which statements a client sends in it, in which order, and where it pauses."""

from __future__ import annotations

from typing import Literal

from uncork.model.database.workload import CapturedStatement
from uncork.model.records import Record

TransactionOrigin = Literal["log", "samples"]
"""Where the order of the statements comes from: the server's log, or samples of sessions."""


class OrderedStatement(Record):
    """A statement of a transaction by its template, with the mean pause of the client after it."""

    template: int
    pause_ns: float = 0.0


class StatementOrder(Record):
    """The statements of an application's transactions in their order.

    `block` is false for a statement that is a transaction of its own, without BEGIN. `first_ns` is the mean
    pause between BEGIN and the first statement. `count` is the number of these transactions in the `seconds`
    of the watch or the log, `sessions` how many of them were open at once on average, and `basis` says what
    the order rests on, in sentences.
    """

    statements: tuple[OrderedStatement, ...]
    count: float
    seconds: float
    sessions: float
    origin: TransactionOrigin
    block: bool = True
    first_ns: float = 0.0
    basis: tuple[str, ...] = ()


class CapturedTransaction(Record):
    """A transaction that can be sent again.

    `pauses_ns` has the pause of the client before each statement, and the pause before COMMIT at its end.
    `per_hour` is how many transactions are executed, `source_ns` how long one is open on the source, and
    `clients` how many sessions execute them at once. Without `block` its only statement has no BEGIN. With
    `one_row`, its contended statement always has the same values.
    """

    statements: tuple[CapturedStatement, ...]
    pauses_ns: tuple[float, ...]
    per_hour: float
    source_ns: float
    clients: int
    origin: TransactionOrigin
    block: bool = True
    basis: tuple[str, ...] = ()
    one_row: bool = False

    @property
    def changes(self) -> bool:
        """Return whether it changes rows."""
        return any(statement.changes for statement in self.statements)
