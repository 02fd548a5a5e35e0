"""One metric over many runs, and its change points.

Runs are in order of time, numbered from 1. `uncork.stats.steps` defines change points and their error rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from uncork.model.results.figure import Direction, FigureUnit
from uncork.model.results.run_comparison import EnvironmentDifference, RunVerdict

__all__ = ["HISTORY_VERSION", "History", "HistoryChange", "HistoryRun"]

HISTORY_VERSION = 2
"""Raised whenever a field of the JSON document changes its meaning or is removed."""


@dataclass(frozen=True, slots=True)
class HistoryRun:
    """One run of the series. `level` is the mean of its segment; for `note`, see `RunFigures`."""

    number: int
    id: str
    names: tuple[str, ...]
    started_at: str
    commit: str | None
    value: float
    level: float
    note: str = ""


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """A change point: the metric has another level from run `since` on; `last` is the run before it.

    `chance` is the probability that pure noise shows any point as clear in a series of this length.
    `differences` are known differences between the two runs on either side. `suspected` means that only the
    last one or two runs support it, so that it may be an outlier.
    """

    number: int
    last: str
    since: str
    started_at: str
    commit_before: str | None
    commit: str | None
    before: float
    after: float
    ratio: float | None
    runs_before: int
    runs_after: int
    p_value: float
    chance: float
    verdict: RunVerdict
    suspected: bool
    differences: tuple[EnvironmentDifference, ...]


@dataclass(frozen=True, slots=True)
class History:
    """One metric over comparable runs.

    `changes` are in order of time, the suspected one last. `false_alarms` is the share of series of pure
    noise that show any change. `inflation` is the factor by which dependence between neighbours inflated the
    tests. `left_out` counts runs that did not end, or are damaged; `older` those beyond the most that are
    read; `broken` those that a guard found broken.
    """

    metric: str
    subject: str
    unit: FigureUnit
    better: Direction
    kind_of_runs: str
    question: str
    answer: str
    warnings: tuple[str, ...]
    runs: tuple[HistoryRun, ...]
    changes: tuple[HistoryChange, ...]
    false_alarms: float
    inflation: float
    left_out: int
    uncork_version: str
    older: int = 0
    broken: int = 0
    kind: Literal["history"] = "history"
    version: int = HISTORY_VERSION
