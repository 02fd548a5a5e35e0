"""Runs set beside one of them that were made at different times, and what may be said of their differences.

Nothing was interleaved: `uncork.stats.run_comparison` says what stands in for it. Values are in the figure's
base unit, ratios are after / before.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from uncork.model.results.figure import Direction, FigureUnit, Scale

__all__ = [
    "RUN_COMPARISON_VERSION",
    "EnvironmentDifference",
    "FigureComparison",
    "NextStep",
    "PlanChange",
    "RunComparison",
    "RunPair",
    "RunSeries",
    "RunSide",
    "RunVerdict",
    "SeriesPoint",
]

RUN_COMPARISON_VERSION = 1
"""Raised whenever a field of the JSON document of a comparison of runs changes its meaning or goes away."""


class RunVerdict(StrEnum):
    """What is said of one figure of two runs.

    Of times and throughput the words of `uncork.model.verdict.Verdict`; of costs and shares less and more; of
    what has no noise (sizes) the same, less and more, by the numbers alone.
    """

    FASTER = "faster"
    SLOWER = "slower"
    LESS = "less"
    MORE = "more"
    SAME = "the same"
    NO_PRACTICAL_DIFFERENCE = "no practical difference"
    NOT_ENOUGH_EVIDENCE = "not enough evidence"


@dataclass(frozen=True, slots=True)
class RunSide:
    """One run of a comparison. `names` were given to it; `commit` is None where none is known."""

    id: str
    names: tuple[str, ...]
    kind: str
    status: str
    started_at: str
    question: str
    server: str
    commit: str | None
    command: str


@dataclass(frozen=True, slots=True)
class EnvironmentDifference:
    """A fact that differs between two runs; a value is empty where the run does not tell it.

    `grave` facts are of the machine: figures of other machines say nothing of what was changed.
    """

    section: str
    name: str
    before: str
    after: str
    grave: bool


@dataclass(frozen=True, slots=True)
class FigureComparison:
    """One figure of two runs. `low` and `high` bound the ratio; None where there is no interval.

    Of a share, `ratio`, `low` and `high` are of its odds, None where nothing happened in either run.
    `like_runs` counts the runs besides that tell how much such runs differ from one to the next, `scatter`
    is by how much (standard deviation of the logarithm), None where too few are known. An interval without
    it comes from within the two runs alone, and is too narrow.
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
    doubts: tuple[str, ...]
    like_runs: int
    scatter: float | None
    before_count: int
    before_of: int
    after_count: int
    after_of: int


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A statement that is executed otherwise; `difference` is a unified diff of the shapes of its plans."""

    subject: str
    statement: str
    difference: str


@dataclass(frozen=True, slots=True)
class RunPair:
    """A run beside the one compared with. `alone` are figures that only one of them has, by run."""

    after: RunSide
    differences: tuple[EnvironmentDifference, ...]
    figures: tuple[FigureComparison, ...]
    plans: tuple[PlanChange, ...]
    plans_compared: int
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """How a load went in a second of it, or a sweep at a level.

    `at` is seconds from the beginning, or the level. `throughput` and `failed` are operations a second that
    succeeded and failed; latencies are None where nothing succeeded. `statuses` are answers of HTTP a second,
    by their status: empty of other loads, and of runs that know them in sum only.
    """

    at: float
    throughput: float
    failed: float
    p50_ns: float | None
    p99_ns: float | None
    statuses: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunSeries:
    """How a run went, from its beginning on. `statuses` count answers of HTTP by their status."""

    run: str
    axis: Literal["time", "clients", "rate", "streams"]
    points: tuple[SeriesPoint, ...]
    statuses: dict[str, int]


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do next, with the command that does it if one does."""

    text: str
    command: str


@dataclass(frozen=True, slots=True)
class RunComparison:
    """All that a report says of runs beside one of them (`before`).

    `series` are those of loads and sweeps, that of `before` first.
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
    kind: Literal["comparison of runs"] = "comparison of runs"
    version: int = RUN_COMPARISON_VERSION
