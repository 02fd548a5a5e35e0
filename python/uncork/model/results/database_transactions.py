"""How transactions of a watched server spend their time, what they keep from VACUUM, and which only write."""

from __future__ import annotations

from typing import Literal

from uncork.model.records import Record


class InTransaction(Record):
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


class HorizonHolder(Record):
    """Something that kept dead rows from VACUUM when the watch ended.

    `name` is the application of a session or a standby, or the name of a prepared transaction or slot.
    `held_age` counts transactions begun since the oldest whose dead rows it keeps. `open_ns` is how long it
    had existed, None if unknown. `idle_ns` is how long a session waited for its client, None while it worked.
    `active` is false for a slot that nobody reads from.
    """

    kind: Literal["session", "standby", "prepared transaction", "replication slot"]
    name: str
    user: str
    held_age: int
    open_ns: int | None
    idle_ns: int | None = None
    pid: int | None = None
    template: int | None = None
    text: str = ""
    active: bool = True


class RowWriter(Record):
    """A role that executes one INSERT, UPDATE or DELETE more often than any other statement.

    `calls` counts its executions during the watch, and `others` those of all other statements of the role,
    except BEGIN and COMMIT, by pg_stat_statements and without statements within functions. The other fields
    describe the sampled sessions of the role that execute the statement. `processes` is how many they are,
    `samples` in how many samples they worked, and `evenness` the time of the one with the least for each
    second of the one with the most. `sessions` is the average number of busy ones, including BEGIN and
    COMMIT. `idle_share` is the share of that time, 0 to 1, in which they waited for the client in a
    transaction, and `log_share` the share in which they waited for the write-ahead log. `application` is the
    application with the most time.
    """

    application: str
    user: str
    template: int
    text: str
    calls: int
    others: int
    processes: int
    samples: int
    evenness: float
    sessions: float
    idle_share: float
    log_share: float
