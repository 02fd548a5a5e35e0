"""How transactions of a watched server spend their time, and which sessions only write rows."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["InTransaction", "RowWriter"]


@dataclass(frozen=True, slots=True)
class InTransaction:
    """What an application's sessions do in transactions, between a template and their next statement.

    `sessions` is the average number that ran the template or waited for their client after it. `gap_ns` is
    the typical time from its end to the next statement. `per_transaction` is how often one transaction
    executes it, by that, at least: sampled ages are too long. `length_ns` is the average length of such a
    transaction, weighted by its length, and `part` its share of its sessions' busy time, 0 to 1. `idle_ns` is
    the longest wait seen, `open_ns` the longest that such a transaction had been open. `held_age` counts
    transactions begun since the oldest whose dead rows VACUUM must keep for it; None if it holds nothing.
    """

    application: str
    user: str
    template: int | None
    text: str
    sessions: float
    gap_ns: int
    per_transaction: float
    length_ns: int
    part: float
    idle_ns: int
    open_ns: int
    held_age: int | None
    samples: int


@dataclass(frozen=True, slots=True)
class RowWriter:
    """Sessions of an application that only execute one INSERT, UPDATE or DELETE again and again.

    `sessions` is the average number that were busy, and `processes` how many sessions did so; the time of
    BEGIN and COMMIT is part of it. `log_share` is the share of their time, 0 to 1, in which they waited for
    the write-ahead log; half of their pauses within transactions counts, that after BEGIN does not.
    """

    application: str
    template: int
    text: str
    sessions: float
    log_share: float
    processes: int = 1
