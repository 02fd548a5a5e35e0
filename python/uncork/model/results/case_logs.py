"""The log half of a case: the same batch before and after a change, each with its own log.

One application, the *updater*, sends a batch in some *way* (a variant of the case's experiment). Another, the
*background*, sends statements at a fixed rate all the time. The *spike* is the time that the batch took
before the change, from when the updater connects until it has its answer. In the log after the change, the
period of the same length from the batch's beginning counts, so that the two periods compare. If the batch
took longer after the change, both periods have that length.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uncork.model.results.log_comparison import LogComparison

__all__ = ["CASE_LOGS_VERSION", "CaseLogs", "LogFigure", "SentBatch"]

CASE_LOGS_VERSION = 1
"""Raised whenever a field of the JSON document changes its meaning or is removed."""


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch that was sent while the server logged.

    `begin_us` and `end_us` are when it was sent and answered, `until_us` when the background ended, in
    microseconds since 1970 in UTC. `log_bytes` is how much the server logged in all.
    """

    variant: str
    title: str
    begin_us: int
    end_us: int
    until_us: int
    log_bytes: int

    @property
    def length_us(self) -> int:
        """How long the batch took."""
        return self.end_us - self.begin_us


@dataclass(frozen=True, slots=True)
class LogFigure:
    """A published number, and what corresponds to it in the logs.

    `before` and `after` are the published texts, empty if none was published. `measured` are two numbers in
    `unit` (nanoseconds, a share from 0 to 1, or a count), None if a log does not show it.
    """

    name: str
    before: str
    after: str
    unit: Literal["ns", "share", "count"]
    measured: tuple[float | None, float | None]
    note: str


@dataclass(frozen=True, slots=True)
class CaseLogs:
    """The result of the log half of a case. `levels` are those of the experiment's factors.

    `idle_mean_ns` is the background's mean before the batch came; None if it sent nothing then. `comparison`
    compares the spike with the period of the same length after the change.
    """

    case: str
    question: str
    source: str
    levels: tuple[tuple[str, str], ...]
    rows: int
    updater: str
    background: str
    before: SentBatch
    after: SentBatch
    idle_mean_ns: float | None
    answer: str
    figures: tuple[LogFigure, ...]
    comparison: LogComparison
    version: int = CASE_LOGS_VERSION
