"""A sweep: one load at many levels, to find where the server saturates, breaks, or misses an objective.

A *level* is how much is asked at once: clients in a closed loop, streams of each of them, or arrivals a
second in an open loop. A *load step* is one load at one level. The sweep first *explores* levels one after
the other, and then repeats the chosen ones in *rounds*: each level once, in random order. Only rounds are
judged; exploring only chooses the levels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from uncork.model.units import parse_duration, parse_share

SweepAxis = Literal["clients", "rate", "streams"]
"""What a sweep raises: clients, total arrivals a second, or requests in flight on each connection."""

BROKEN: Final = 0.01
"""A level is broken if more than this fraction of its operations fail or are never sent."""

STEADY: Final = 0.7
"""Fraction of the knee's throughput at which to run a server, by convention."""

Quantity = Literal["mean", "p50", "p90", "p95", "p99", "p99.9", "max", "errors"]
_QUANTITIES: Final[tuple[Quantity, ...]] = ("mean", "p50", "p90", "p95", "p99", "p99.9", "max", "errors")
_OBJECTIVE: Final = re.compile(r"\s*([a-z][a-z0-9.]*)\s*<\s*(\S.*?)\s*")


@dataclass(frozen=True, slots=True)
class Objective:
    """An objective of a service: `quantity` stays below `limit`.

    The limit is in nanoseconds, or for errors a fraction of the operations, above 0 to 1. `text` is the
    objective as written.
    """

    quantity: Quantity
    limit: float
    text: str


@dataclass(frozen=True, slots=True)
class SweepSpec:
    """What to sweep. Levels lie between `start` and `end`; they are whole numbers except for rates.

    A load step lasts `step_ns`; once `budget_ns` is spent no further step begins. `seed` orders rounds.
    """

    axis: SweepAxis
    start: float
    end: float
    step_ns: int
    budget_ns: int
    objectives: tuple[Objective, ...] = ()
    confidence: float = 0.95
    seed: int = 1


@dataclass(frozen=True, slots=True)
class LoadStep:
    """One load step: the load at one level; `round` is 0 while exploring.

    Times are nanoseconds, of successes; None if there are none. Counts are those of
    `uncork.model.load.LoadTotals`: ``started = succeeded + failed``; `unsent` includes arrivals that were
    skipped. `refused` counts connections that could not be opened. `message` says why the load ended, if it
    ended early, or is the first error's.
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
        """Count all operations that should have been sent."""
        return self.started + self.unsent + self.refused

    @property
    def works(self) -> bool:
        """Say whether enough succeeded for its metrics to describe the level rather than its failures."""
        return self.complete and bool(self.succeeded) and self.wrong <= BROKEN * self.asked

    def measured(self, quantity: Quantity) -> float | None:
        """Return a quantity of an objective: nanoseconds, or a fraction; None if nothing succeeded."""
        if quantity == "errors":
            return self.wrong / self.asked if self.asked else None
        name = {"mean": "mean_ns", "max": "max_ns", "p99.9": "p999_ns"}.get(quantity, f"{quantity}_ns")
        value: float | None = getattr(self, name)
        return value


@dataclass(frozen=True, slots=True)
class Verification:
    """A load after a sweep, with arrivals that do not wait, at a fraction of the knee's throughput.

    `knee` is the knee's level, and `step` the load; its level is the rate, in arrivals a second.
    """

    knee: float
    step: LoadStep


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Parse objectives such as ``p99<250ms, errors<0.1%``.

    Raises:
        ValueError: if the text is no list of objectives; the message says what is wrong and what is allowed.
    """
    return tuple(_objective(part) for part in text.split(","))


def _objective(text: str) -> Objective:
    match = _OBJECTIVE.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text.strip()}" is not an objective; write p99<250ms or errors<0.1%')
    name, value = match.groups()
    quantity: Quantity | None = next((known for known in _QUANTITIES if known == name), None)
    if quantity is None:
        raise ValueError(f'"{name}" is not a quantity of an objective; choose from {", ".join(_QUANTITIES)}')
    limit = parse_share(value) if quantity == "errors" else float(parse_duration(value))
    if limit <= 0:
        raise ValueError(f'"{text.strip()}": the limit must be above zero')
    return Objective(quantity, limit, f"{name} < {value}")
