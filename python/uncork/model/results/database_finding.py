"""Findings on a watched server with their cost, and their basis: how transactions spend their time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["DatabaseFinding", "InTransaction", "RowWriter", "Rule"]

Rule = Literal[
    "forgotten-transaction",
    "one-by-one",
    "missing-index",
    "lock-wait",
    "row-by-row-commit",
    "slow-statement",
    "temporary-files",
    "jit",
    "bloat",
    "dead-rows",
    "checkpoints",
]


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
    """Sessions of an application that only execute one INSERT again and again, each in its own commit.

    `sessions` is the average number that were busy; `log_share` is the share of their time, 0 to 1, in which
    they waited for the write-ahead log.
    """

    application: str
    template: int
    text: str
    sessions: float
    log_share: float


@dataclass(frozen=True, slots=True)
class DatabaseFinding:
    """Something that costs enough to be worth changing.

    `share` is its share of the time of busy sessions, 0 to 1, and `sessions` the same as an average number of
    sessions; both are 0 if its cost is not time. `figures` holds its other numbers (times in ns, sizes in
    bytes). `subject` names the application or table, `text` is the template.
    """

    rule: Rule
    share: float
    sessions: float
    subject: str
    template: int | None = None
    text: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
