"""The log half of a case: the same batch before and after, each in a log of its own, and what both tell.

One application, the *updater*, sends a batch in a *way* (a variant of the case's experiment). Another, the
*background*, sends at a fixed rate all the time. The *spike* is the time that the batch took before, from
when the updater connects until it has its answer. Of the log after, the same length from the batch's
beginning counts (and of both what the batch took after, if that is longer), so that the two compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uncork.model.results.log_comparison import LogComparison

__all__ = ["CASE_LOGS_VERSION", "CaseLogs", "LogFigure", "SentBatch"]

CASE_LOGS_VERSION = 1
"""Raised whenever a field of the JSON document of a case's log half changes its meaning or goes away."""


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch that was sent while the server logged.

    `begin_us` and `end_us` are when it was sent and answered, `until_us` when the background ended: in
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
    """A published figure, and what corresponds to it in the logs.

    `before` and `after` are the published texts, empty where none was. `measured` are two numbers in `unit`
    (nanoseconds, a share from 0 to 1, or a count), None where a log does not tell.
    """

    name: str
    before: str
    after: str
    unit: Literal["ns", "share", "count"]
    measured: tuple[float | None, float | None]
    note: str


@dataclass(frozen=True, slots=True)
class CaseLogs:
    """What the log half of a case has shown. `levels` are those of the experiment's factors.

    `idle_mean_ns` is the background's mean before the batch came; None if it sent nothing then. `comparison`
    is of the spike and the same length after.
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
