"""Events that the runner yields while it works. The consumer decides what to show."""

from __future__ import annotations

from dataclasses import dataclass

from uncork.model.measurement import Measurement
from uncork.model.trial import Cell, Trial


@dataclass(frozen=True, slots=True)
class Preparing:
    """A step before the first trial: `done` of `total`."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A variant gave a different answer than the baseline, and is not measured there."""

    cell: Cell
    workload: str
    variant: str
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A variant is not measured there although its answers are correct.

    `everywhere` is true if it is measured nowhere.
    """

    cell: Cell
    workload: str
    variant: str
    reason: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class BudgetShort:
    """Before the first round: the budget is too short for set-up, the run or a verdict. The run continues."""

    message: str


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A round begins, for `comparisons` that are not settled yet.

    It will run at least `trials` trials. `used_ns` is the used part of the budget.
    """

    number: int
    trials: int
    comparisons: int
    elapsed_ns: int
    used_ns: int = 0


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """One trial has ended, complete or not."""

    trial: Trial
    measurement: Measurement
    done: int
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """The server, or a service beside it, ended and was restarted; the round ended in this cell."""

    cell: Cell
    message: str


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round has ended.

    `settled` of `comparisons` are settled. `widest` is the half-width, as a ratio, of the widest finite
    interval among the others; `widest_name` names that comparison.
    """

    number: int
    settled: int
    comparisons: int
    widest: float | None
    widest_name: str
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Evidenced:
    """Evidence of a variant was collected, or could not be collected for the reason in `lack`."""

    cell: Cell
    workload: str
    variant: str
    lack: str | None
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The run has ended; `reason` is a sentence. `is_empty`: every comparison was refused or skipped."""

    rounds: int
    trials: int
    failed: int
    reason: str
    elapsed_ns: int
    is_empty: bool = False


Event = (
    Preparing
    | Refused
    | Skipped
    | BudgetShort
    | RoundStarted
    | TrialEnded
    | Recovered
    | RoundEnded
    | Evidenced
    | Finished
)
