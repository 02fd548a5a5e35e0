"""A sweep: one load at many levels, to find where the server saturates, breaks, or misses an objective.

A *level* is how much is asked at once: clients in a closed loop, streams of each of them, or arrivals a
second in an open loop. A *load step* is one load at one level. The sweep first *explores* levels one after
the other, and then repeats the chosen ones in *rounds*: each level once, in random order. Only rounds are
judged; exploring only chooses the levels.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from uncork.model.records import Record
from uncork.model.tables.sweep import LoadStep
from uncork.model.units import parse_duration, parse_share

SweepAxis = Literal["clients", "rate", "streams"]
"""What a sweep raises: clients, total arrivals a second, or requests in flight on each connection."""

STEADY: Final = 0.7
"""Fraction of the knee's throughput at which to run a server, by convention."""

Quantity = Literal["mean", "p50", "p90", "p95", "p99", "p99.9", "max", "errors"]
_QUANTITIES: Final[tuple[Quantity, ...]] = ("mean", "p50", "p90", "p95", "p99", "p99.9", "max", "errors")
_OBJECTIVE: Final = re.compile(r"\s*([a-z][a-z0-9.]*)\s*<\s*(\S.*?)\s*")


class Objective(Record):
    """An objective of a service: `quantity` stays below `limit`.

    The limit is in nanoseconds, or for errors a fraction of the operations, above 0 to 1. `text` is the
    objective as written.
    """

    quantity: Quantity
    limit: float
    text: str


class SweepSpec(Record):
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


class Verification(Record):
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
