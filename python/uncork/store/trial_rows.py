"""What `RunReader` reads about the trials of an experiment. A cell is its name."""

from __future__ import annotations

from typing import NamedTuple, TypedDict


class TrialValue(NamedTuple):
    """The place and value of one trial."""

    round: int
    block: int
    position: int
    cell: str
    workload: str
    variant: str
    again: bool
    value: float | None
    succeeded: int
    started: int
    long_slices: bool | None


class RoundValue(TypedDict):
    """A value of one round."""

    round: int
    value: float


class ArmValues(NamedTuple):
    """One arm's trials, failures, geometric mean of the metric, and share of success, also by round."""

    cell: str
    workload: str
    variant: str
    again: bool
    trials: int
    failed: int
    value: float | None
    rounds: list[RoundValue] | None
    share: float | None
    shares: list[RoundValue] | None


class RequestSums(NamedTuple):
    """One variant's operations; `statuses` and `errors` are counts as JSON, one text for each trial."""

    cell: str
    workload: str
    variant: str
    started: int
    succeeded: int
    failed: int
    statuses: list[str] | None
    errors: list[str]
    throughput: float | None
    mean_ns: float | None
    longest_ns: int | None


class Histograms(NamedTuple):
    """One variant's operation histograms, and how many operations they count."""

    cell: str
    workload: str
    variant: str
    histograms: list[bytes]
    executions: int


class FailedTrials(NamedTuple):
    """How many trials failed alike."""

    cell: str
    workload: str
    variant: str
    outcome: str
    message: str
    trials: int
