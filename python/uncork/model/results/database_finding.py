"""Findings on a watched server with their cost, and what they rest on: how transactions spend their time."""

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
    """What sessions of an application do in transactions, between a template and their next statement.

    `sessions` is how many on average ran the template or waited for their client after it. `gap_ns` is the
    typical time from its end to the next statement. `per_transaction` is how often, by that, one transaction
    executes it at least: ages are sampled too long. `length_ns` is how long such a transaction takes on
    average, each weighed by its length, and `part` the fraction of its sessions' busy time, 0 to 1.
    `idle_ns` is the longest wait seen, `open_ns` the longest that such a transaction had been open.
    `held_age` counts transactions begun since the oldest whose dead rows VACUUM must keep for it; None if it
    holds nothing.
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
    """Sessions of an application that do nothing but execute one INSERT again and again, each a commit.

    `sessions` is how many of them were busy on average; `log_share` is the part of their time, 0 to 1, in
    which they waited until the write-ahead log was written.
    """

    application: str
    template: int
    text: str
    sessions: float
    log_share: float


@dataclass(frozen=True, slots=True)
class DatabaseFinding:
    """Something that costs enough to be changed.

    `share` is its part of the time of busy sessions, 0 to 1, `sessions` the same as sessions on average; both
    are 0 of a finding whose cost is not time: `figures` hold what it is, as they hold all its other numbers
    (times in ns, sizes in bytes). `subject` names the application or table, `text` is the template.
    """

    rule: Rule
    share: float
    sessions: float
    subject: str
    template: int | None = None
    text: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
