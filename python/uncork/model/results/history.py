"""One metric over many runs, and its change points.

Runs are in order of time, numbered from 1. `uncork.stats.steps` defines change points and their error rate.
"""

from __future__ import annotations

from typing import Literal

from uncork.model.records import Record
from uncork.model.results.figure import Direction, FigureUnit
from uncork.model.results.guard import GateOutcome
from uncork.model.results.run_comparison import EnvironmentDifference, RunVerdict

HISTORY_VERSION = 1


class HistoryRun(Record):
    """One run of the series. `level` is the mean of its segment; for `note`, see `RunFigures`."""

    number: int
    id: str
    names: tuple[str, ...]
    started_at: str
    commit: str | None
    value: float
    level: float
    note: str = ""


class HistoryChange(Record):
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


class NewestRun(Record):
    """The newest run, judged against up to `window` runs before it; `runs` is the number that there are.

    `before` is their median; for shares, the share of all their operations; for metrics without noise, the
    value of the run just before. `verdict` is the direction of a certain change, even if `outcome` is kept.
    `ratio` is the change against it with its interval, for shares of odds.
    `practical` is the smallest change that matters, for shares a difference. `changed_at` is the last run in
    the window with a change of level.
    """

    id: str
    window: int
    runs: int
    value: float
    before: float | None
    ratio: float | None
    low: float | None
    high: float | None
    outcome: GateOutcome
    verdict: RunVerdict
    reason: str
    warnings: tuple[str, ...]
    changed_at: str | None
    confidence: float
    practical: float


class History(Record):
    """One metric over comparable runs.

    `changes` are in order of time, the suspected one last. `false_alarms` is the share of series of pure
    noise that show any change. `inflation` is the factor by which dependence between neighbours inflated the
    tests. `left_out` counts runs that did not end or are damaged. `older` counts runs beyond the most that
    are read, `broken` runs with a broken gate, and `without_branch` runs of an unknown branch. `since` and
    `branch` select the runs; empty means all. `newest` is None unless --window asks about the newest run.
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
    since: str = ""
    branch: str = ""
    without_branch: int = 0
    newest: NewestRun | None = None
    kind: Literal["history"] = "history"
    version: int = HISTORY_VERSION


def history_status(history: History) -> int:
    """Return the exit status: 3 if the newest run is worse, 4 if that is undecided, else 0."""
    if history.newest is None or history.newest.outcome is GateOutcome.KEPT:
        return 0
    return 3 if history.newest.outcome is GateOutcome.BROKEN else 4
