"""The changes between two logs; times are nanoseconds.

Periods may differ in length, so everything is given per second of the log: executions a second, and time in
statements a second (1 s a second is one session that is always busy). These are descriptions of two logs, not
verdicts: nothing is randomised, and whatever else changed between them is included.
"""

from __future__ import annotations

from typing import Literal

from uncork.model.records import Record

LOG_COMPARISON_VERSION = 1

Change = Literal["new", "gone", "slower", "faster", "more", "fewer", "same"]
"""How a template changed: slower or faster by its mean, else more or fewer by its executions a second."""


class Period(Record):
    """Executions of one log, or of one template in it. `mean_ns` is None without executions.

    `list_mean` is the mean length of the longest list of an execution: the size of a batch.
    """

    seconds: float
    executions: int
    sum_ns: int
    mean_ns: float | None
    p50_ns: int | None
    p99_ns: int | None
    max_ns: int
    histogram: tuple[int, ...]
    list_mean: float | None = None

    @property
    def rate(self) -> float:
        """Executions a second."""
        return self.executions / self.seconds

    @property
    def busy(self) -> float:
        """Seconds in statements a second."""
        return self.sum_ns / 1e9 / self.seconds


class TemplateChange(Record):
    """One template in both logs. `busy` is the change of seconds in statements a second.

    It is the sum of `by_count`, the change of executions a second at the old mean, and `by_mean`, the change
    of the mean at the new count.
    """

    text: str
    change: Change
    before: Period
    after: Period
    busy: float
    by_count: float
    by_mean: float


class Part(Record):
    """One application in one log; shares are of all the log's executions and time, 0 to 1.

    `mean_ns` is None without executions.
    """

    executions: int
    sum_ns: int
    mean_ns: float | None
    of_executions: float
    of_time: float


class ApplicationChange(Record):
    """One application in both logs; the name is empty if the log has none."""

    name: str
    before: Part
    after: Part


class LogComparison(Record):
    """Two logs. `templates` are in descending order of the absolute change of time.

    `applications` are in descending order of their larger share of time; of each log, the first 100.
    """

    id: str
    before_id: str
    before_name: str
    after_name: str
    answer: str
    warnings: tuple[str, ...]
    before: Period
    after: Period
    by_count: float
    by_mean: float
    templates: tuple[TemplateChange, ...]
    applications: tuple[ApplicationChange, ...]
    uncork_version: str
    version: int = LOG_COMPARISON_VERSION
