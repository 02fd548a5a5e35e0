"""Divide the requests' time among the parts that cause it. Pure.

A request that waits for a free process, or for a processor, waits because of what the others do there. So the
queue for processes belongs to the places where the processes pass their time, and the queue for the machine's
processors belongs to the components that use them. Where processors are idle, more processes would shorten
the queue: that part is theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from uncork.model.bottleneck import Seen
from uncork.model.results.service import PlaceKind, RequestFacts, TimePlace

DATABASE: Final[tuple[PlaceKind, ...]] = (
    *(
        "database parsing",
        "database planning",
        "database cpu",
        "database queue",
        "locks",
        "commit",
        "storage",
    ),
    *("internal locks", "database other"),
)
_FULL: Final = 0.85
"""Fraction of the processors in use from which on requests queue for them."""


@dataclass(frozen=True, slots=True)
class Causes:
    """Fractions of the requests' time by cause. They add up to 1, as the places do.

    `executing` is the time in which the database executes statements, `parsing` the time in which its
    sessions are busy otherwise: they parse and plan statements, and send rows. `held` is the time between
    statements of open transactions, `code` the service's computing. Each has the queues behind it. `few` is
    the time that more processes would save, and `waiting` the waits in the service that nothing explains.
    `grown` is how many times longer the queue for processes makes the other parts; 1 without one.
    """

    executing: float
    parsing: float
    held: float
    code: float
    few: float
    waiting: float
    grown: float

    @property
    def database(self) -> float:
        """Return the fraction of the time that sessions of the database cause."""
        return self.executing + self.parsing

    @property
    def outside(self) -> float:
        """Return the fraction of the time in the service that its requests themselves cause."""
        return self.held + self.code + self.waiting


def cause_shares(time: Sequence[TimePlace], requests: Sequence[RequestFacts], seen: Seen | None) -> Causes:
    """Divide the places' time among causes; without `seen`, queues for processors stay where they were seen.

    The statements of `requests` say how much of the sessions' time is execution; without them, it all is.
    """
    shares: dict[PlaceKind, float] = {place.kind: place.share for place in time}
    queue = shares.get("process queue", 0.0)
    waiting = shares.get("service wait", 0.0) + shares.get("pool wait", 0.0)
    busy = None if seen is None else seen.machine.busy
    few = 0.0 if busy is None else queue * (1.0 - min(1.0, busy))
    database_queue, service_queue = _processor_queues(shares, seen)
    database = sum(shares.get(kind, 0.0) for kind in DATABASE if kind != "database queue") + database_queue
    held, code = shares.get("idle in transaction", 0.0), shares.get("service cpu", 0.0) + service_queue
    working = database + held + code
    grown = 1.0 + (queue - few) / working if working else 1.0
    executing = database * _executing_part(sum(shares.get(kind, 0.0) for kind in DATABASE), requests)
    return Causes(
        executing * grown,
        (database - executing) * grown,
        held * grown,
        code * grown,
        few,
        waiting,
        grown,
    )


def _executing_part(busy: float, requests: Sequence[RequestFacts]) -> float:
    """Return which fraction of the sessions' time, `busy` of the requests' time, they execute statements."""
    whole = sum((request.mean_ns or 0.0) * request.sent for request in requests)
    executing = sum((request.database_ns or 0.0) * request.sent for request in requests)
    return min(1.0, executing / whole / busy) if whole and executing and busy else 1.0


def _processor_queues(shares: Mapping[PlaceKind, float], seen: Seen | None) -> tuple[float, float]:
    """Return the waits for processors because of the database and of the service.

    On a full machine, both wait for what both use: parallel workers of one statement delay the service too.
    """
    of_database, of_service = shares.get("database queue", 0.0), shares.get("service queue", 0.0)
    if seen is None or seen.database is None or seen.service is None or (seen.machine.busy or 0.0) < _FULL:
        return of_database, of_service
    used = seen.database.cpus + seen.service.cpus
    if not used:
        return of_database, of_service
    whole = of_database + of_service
    return whole * seen.database.cpus / used, whole * seen.service.cpus / used


def outside_shares(requests: Sequence[RequestFacts], causes: Causes) -> dict[str, float]:
    """Divide the time that the service causes outside the database among the requests, by name.

    What a request demands is its time alone: with others, it also waits for them. The part of it outside the
    database is the rest after its statements.
    """
    demands = {
        request.name: (request.alone_ns or request.mean_ns or 0.0) * request.sent for request in requests
    }
    statements = {request.name: (request.database_ns or 0.0) * request.sent for request in requests}
    whole, executing = sum(demands.values()), sum(statements.values())
    if not whole:
        return dict.fromkeys(demands, 0.0)
    explained = causes.outside + causes.database
    parts = {
        name: max(
            0.0,
            demand / whole * explained
            - (statements[name] / executing * causes.database if executing else 0.0),
        )
        for name, demand in demands.items()
    }
    total = sum(parts.values())
    if not total:
        return {name: causes.outside * demand / whole for name, demand in demands.items()}
    return {name: causes.outside * part / total for name, part in parts.items()}
