"""Runs made at different times beside one of them, and what their differences support.

Nothing was interleaved: `uncork.stats.run_comparison` explains what replaces it. Values are in the metric's
base unit, ratios are after / before.
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Literal

from uncork.model.records import Record
from uncork.model.results.figure import Direction, FigureUnit, Scale

RUN_COMPARISON_VERSION = 1


class RunVerdict(StrEnum):
    """The verdict on one metric of two runs.

    Times and throughput have the verdicts of `uncork.model.verdict.Verdict`; costs and shares are less or
    more; metrics without noise (sizes) are the same, less or more, by the numbers alone.
    """

    FASTER = "faster"
    SLOWER = "slower"
    LESS = "less"
    MORE = "more"
    SAME = "the same"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    NOT_ENOUGH_EVIDENCE = "not enough evidence"


class RunSide(Record):
    """One run of a comparison. `names` were given to it; `commit` is None if unknown."""

    id: str
    names: tuple[str, ...]
    kind: str
    status: str
    started_at: str
    question: str
    server: str
    commit: str | None
    command: str


class EnvironmentDifference(Record):
    """A fact that differs between two runs; a value is empty if the run does not have it.

    `grave` facts are of the machine: metrics of another machine say nothing about what was changed.
    """

    section: str
    name: str
    before: str
    after: str
    grave: bool


class FigureComparison(Record):
    """One metric of two runs. `low` and `high` bound the ratio; None if there is no interval.

    For a share, `ratio`, `low` and `high` are of its odds, None if nothing happened in either run.
    `like_runs` counts the other comparable runs, which show how much such runs differ from one to the next;
    `std_dev` is by how much (standard deviation of the logarithm), None if too few are known. An interval
    without it comes from within the two runs alone, and is too narrow, unless the variation from run to run
    is `assumed`. `before_count` and `after_count` are the calls of a statement's mean time.
    """

    subject: str
    name: str
    unit: FigureUnit
    better: Direction
    scale: Scale
    before: float
    after: float
    ratio: float | None
    low: float | None
    high: float | None
    verdict: RunVerdict
    reason: str
    warnings: tuple[str, ...]
    like_runs: int
    std_dev: float | None
    before_count: int
    before_of: int
    after_count: int
    after_of: int
    assumed: bool = False


class PlanChange(Record):
    """A statement whose plan changed; `difference` is a unified diff of the plans' shapes."""

    subject: str
    statement: str
    difference: str


class RunPair(Record):
    """A run beside the one compared with. `alone` are metrics that only one of them has, by run.

    `changed` are the subjects of the statements that a cure changed.
    """

    after: RunSide
    differences: tuple[EnvironmentDifference, ...]
    figures: tuple[FigureComparison, ...]
    plans: tuple[PlanChange, ...]
    plans_compared: int
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    warnings: tuple[str, ...]
    changed: tuple[str, ...] = ()


class SeriesPoint(Record):
    """One second of a load, or one level of a sweep.

    `at` is seconds from the beginning, or the level. `throughput` and `failed` are operations a second that
    succeeded and failed; latencies are None if nothing succeeded. `statuses` counts answers of HTTP a second,
    by status: empty for other loads, and for runs that only know their totals.
    """

    at: float
    throughput: float
    failed: float
    p50_ns: float | None
    p99_ns: float | None
    statuses: dict[str, float] = field(default_factory=dict)


class RunSeries(Record):
    """The time series of a run. `statuses` counts answers of HTTP by status."""

    run: str
    axis: Literal["time", "clients", "rate", "streams"]
    points: tuple[SeriesPoint, ...]
    statuses: dict[str, int]


class NextStep(Record):
    """What to do next, with the command that does it if there is one."""

    text: str
    command: str


class RunComparison(Record):
    """Everything in a report on runs beside one of them (`before`).

    `series` are those of loads and sweeps, that of `before` first. `cure` is the run of the cure whose watch
    `before` is, empty for other runs.
    """

    before: RunSide
    answer: str
    reasons: tuple[str, ...]
    pairs: tuple[RunPair, ...]
    steps: tuple[NextStep, ...]
    confidence: float
    practical: float
    uncork_version: str
    series: tuple[RunSeries, ...] = ()
    cure: str = ""
    kind: Literal["comparison of runs"] = "comparison of runs"
    version: int = RUN_COMPARISON_VERSION
