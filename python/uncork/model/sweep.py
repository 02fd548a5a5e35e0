"""A sweep: one load at many levels, to find where the server bends, breaks, or misses an objective.

A *level* is how much is asked at once: clients in a closed loop, streams of each of them, arrivals a second
in an open one. A *visit* is one load at one level. Levels are first *explored*, each in its turn, and then
visited again in *rounds*: every chosen level once, in random order. Only rounds are judged; what exploring
saw chose the levels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from uncork.model.units import parse_duration, parse_share

__all__ = ["BROKEN", "Objective", "SweepAxis", "SweepSpec", "Visit", "parse_objectives"]

SweepAxis = Literal["clients", "rate", "streams"]
"""What is raised: clients, arrivals a second of all of them, or requests under way at once of each."""

BROKEN: Final = 0.01
"""A level at which more of the operations than this fail, or are never sent, does not work any more."""

Quantity = Literal["mean", "p50", "p90", "p95", "p99", "p99.9", "max", "errors"]
_QUANTITIES: Final[tuple[Quantity, ...]] = ("mean", "p50", "p90", "p95", "p99", "p99.9", "max", "errors")
_OBJECTIVE: Final = re.compile(r"\s*([a-z][a-z0-9.]*)\s*<\s*(\S.*?)\s*")


@dataclass(frozen=True, slots=True)
class Objective:
    """What a service promises: `quantity` stays below `limit`.

    The limit is in nanoseconds, or for errors a share of the operations, above 0 to 1. `text` is how it was
    written.
    """

    quantity: Quantity
    limit: float
    text: str


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """What to sweep. Levels lie between `start` and `end`; but for rates they are whole numbers.

    A visit lasts `visit_ns`; when `budget_ns` is spent no further visit begins. `seed` orders rounds.
    """

    axis: SweepAxis
    start: float
    end: float
    visit_ns: int
    budget_ns: int
    objectives: tuple[Objective, ...] = ()
    confidence: float = 0.95
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Visit:
    """One load at one level; `round` is 0 while exploring.

    Times are nanoseconds, of successes; None without any.
    Counts are those of `uncork.model.load.LoadTotals`: ``started = succeeded + failed``; `unsent` holds
    arrivals that were skipped, too. `refused` are connections that could not be opened. `message` is how the
    load ended, where it ended early, or the first error's.
    """

    number: int
    round: int
    level: float
    elapsed_ns: int
    started: int
    succeeded: int
    failed: int
    unsent: int = 0
    refused: int = 0
    complete: bool = True
    message: str | None = None
    errors: Mapping[str, int] = field(default_factory=dict)
    mean_ns: float | None = None
    p50_ns: int | None = None
    p90_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None
    p999_ns: int | None = None
    max_ns: int | None = None
    client_ns: int = 0
    busiest_thread: float = 0.0
    server_user_ns: int | None = None
    server_system_ns: int | None = None
    steal_ns: int = 0

    @property
    def throughput(self) -> float:
        """Return successes a second."""
        return self.succeeded / (self.elapsed_ns / 1e9) if self.elapsed_ns else 0.0

    @property
    def wrong(self) -> int:
        """Count operations that failed or were never sent, and connections refused."""
        return self.failed + self.unsent + self.refused

    @property
    def asked(self) -> int:
        """Count all that was to be done."""
        return self.started + self.unsent + self.refused

    @property
    def works(self) -> bool:
        """Whether so much succeeded that its figures tell of the level, not of its failing."""
        return self.complete and bool(self.succeeded) and self.wrong <= BROKEN * self.asked

    def measured(self, quantity: Quantity) -> float | None:
        """Return a quantity of an objective: nanoseconds, or a share; None when nothing succeeded."""
        if quantity == "errors":
            return self.wrong / self.asked if self.asked else None
        name = {"mean": "mean_ns", "max": "max_ns", "p99.9": "p999_ns"}.get(quantity, f"{quantity}_ns")
        value: float | None = getattr(self, name)
        return value


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Read objectives such as ``p99<250ms, errors<0.1%``.

    Raises:
        ValueError: saying what is wrong, and what could stand there.
    """
    return tuple(_objective(part) for part in text.split(","))


def _objective(text: str) -> Objective:
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text.strip()}" is no objective; write one as p99<250ms or errors<0.1%')
    name, value = match.groups()
    quantity: Quantity | None = next((known for known in _QUANTITIES if known == name), None)
    if quantity is None:
        raise ValueError(f'"{name}" cannot be promised; there are {", ".join(_QUANTITIES)}')
    limit = parse_share(value) if quantity == "errors" else float(parse_duration(value))
    if limit <= 0:
        raise ValueError(f'"{text.strip()}": the limit must be above zero')
    return Objective(quantity, limit, f"{name} < {value}")
