"""What the runner tells the world while it works. Whoever listens decides what to show."""

from __future__ import annotations

from dataclasses import dataclass

from uncork.model.measurement import Measurement
from uncork.model.trial import Cell, Trial

__all__ = [
    "BudgetShort",
    "Event",
    "Evidenced",
    "Finished",
    "Preparing",
    "Recovered",
    "Refused",
    "RoundEnded",
    "RoundStarted",
    "Skipped",
    "TrialEnded",
]


@dataclass(frozen=True, slots=True)
class Preparing:
    """A step before the first trial: `done` of `total`."""

    what: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A variant gave another answer than the baseline, and is not measured there."""

    cell: Cell
    workload: str
    variant: str
    reason: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A variant is not measured there, though it answers rightly; `everywhere` if nowhere at all."""

    cell: Cell
    workload: str
    variant: str
    reason: str
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class BudgetShort:
    """Before the first round: the budget cannot hold the rounds that a verdict needs. The run goes on."""

    message: str


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A new life of the server, for `comparisons` that are not yet done.

    At least `trials` will be run in it. `used_ns` is how much of the budget is used: making the data is not
    part of it.
    """

    number: int
    trials: int
    comparisons: int
    elapsed_ns: int
    used_ns: int = 0


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """One trial is over, complete or not."""

    trial: Trial
    measurement: Measurement
    done: int
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Recovered:
    """The server, or a service beside it, went away and was started again; the round ended in this cell."""

    cell: Cell
    message: str


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """A round is over.

    `settled` of `comparisons` are done. `widest` is the half-width, as a ratio, of the widest interval
    among the others, if it is finite; `widest_name` says which.
    """

    number: int
    settled: int
    comparisons: int
    widest: float | None
    widest_name: str
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Evidenced:
    """Evidence of a variant was gathered, or could not be for the reason in `lack`."""

    cell: Cell
    workload: str
    variant: str
    lack: str | None
    elapsed_ns: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The run is over; `reason` is a sentence. `is_empty`: every comparison was refused or skipped."""

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
