"""Findings about a profiled service: what its requests wait for, and where that comes from. Pure.

The places of the requests' time add up to the whole, so the largest place is where a change can gain most. A
finding names the request and the statement behind a place, where the statements of each request are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from uncork.model.bottleneck import Bottleneck
from uncork.model.results.service import (
    PlaceKind,
    RequestFacts,
    SentTemplate,
    ServiceFinding,
    TimePlace,
    WorkerFacts,
)
from uncork.model.template_words import short_template
from uncork.model.units import format_duration

__all__ = ["REPEATED", "find_service_findings", "repeated_templates"]

REPEATED: Final = 5.0
"""Executions for each request from which on a statement that returns few rows is repeated."""
_FEW_ROWS: Final = 3.0
_MOSTLY: Final = 0.5
"""Fraction of a request's statements that must be repeated ones before they are its N+1."""
_LEAST: Final = 0.05
"""Fraction of the requests' time below which a finding is not reported."""
_DATABASE: Final[tuple[PlaceKind, ...]] = (
    *("database cpu", "database queue", "locks", "commit", "storage", "internal locks", "database other"),
)
_FIRST: Final = frozenset(
    {
        *("generator", "ephemeral ports", "file descriptors", "listen backlog", "connection limit"),
        *("cpu quota", "machine cpu"),
    }
)
"""Limits that have no place of their own among the requests' time."""
_WAITS: Final[Mapping[PlaceKind, tuple[str, str]]] = {
    "database cpu": ("computing in the database", "look at its plan: uncork profile db"),
    "database queue": (
        "waiting for a processor in the database",
        "make the costliest statement cheaper, or give the database more processors",
    ),
    "locks": (
        "waiting for locks in the database",
        "shorten the transactions that hold these locks, or spread the rows that they change",
    ),
    "commit": (
        "waiting for commits to be safe on disk",
        "commit less often, or consider synchronous_commit = off",
    ),
    "storage": ("waiting for storage in the database", "read less (an index, fewer columns), or add memory"),
    "internal locks": (
        "waiting for each other inside the database",
        "run fewer sessions at once, or spread the data that they all touch",
    ),
    "database other": ("waiting in the database", "look at its waits: uncork profile db"),
}
_UNEVEN: Final = 0.5
"""A process is idle if it used less than this fraction of the busiest one's processor time."""
_BUSY_WORKER: Final = 0.5
_LOCKED: Final = 0.8
"""Fraction of the time that a Python process computes, from which on its threads wait for the interpreter."""
_UNEXPLAINED: Final = 0.5
"""Weight of time that no source explains, when findings are ranked."""
_OWN: Final = 0.5
"""A finding about the service is mostly explained by an N+1 if less than this fraction of it is left."""
_TEXT: Final = 70


def find_service_findings(
    time: Sequence[TimePlace],
    requests: Sequence[RequestFacts],
    bottlenecks: Sequence[Bottleneck],
    workers: Sequence[WorkerFacts],
    *,
    hottest: tuple[str, float] | None = None,
    foreign: float = 0.0,
    paused: float = 0.0,
) -> tuple[ServiceFinding, ...]:
    """Return the findings, the costliest first; limits that refuse requests come before all others.

    `foreign` is the fraction of the machine's busy processors that other programs use. `hottest` is the
    function that uses most of the service's processor time, with its fraction of it. `paused` is the fraction
    of the requests' time in which answers pause for delayed acknowledgements.
    """
    repeated = tuple(_repeated(time, requests))
    left = 1.0 - min(1.0, sum(one.outside for one in repeated))
    found = [
        *(_limit(one, time, foreign) for one in bottlenecks if one.resource in _FIRST),
        *(one.finding for one in repeated),
        *_database(time, requests),
        *_held(time, left),
        *_service(time, bottlenecks, workers, hottest, left * (1.0 - paused)),
        *_idle_workers(workers, time),
        *_pauses(paused),
    ]
    return tuple(sorted((one for one in found if one.share >= _LEAST), key=_rank))


def _rank(one: ServiceFinding) -> float:
    """Return a sort key. What no source explains comes after a cause that is known and half as large."""
    return -one.share * (_UNEXPLAINED if one.name == "service wait" else 1.0)


def repeated_templates(request: RequestFacts) -> tuple[SentTemplate, ...]:
    """Return the statements that a request sends again and again for one or a few rows each (N+1)."""
    return tuple(one for one in request.templates if _is_repeated(one))


def _is_repeated(one: SentTemplate) -> bool:
    reads = one.text.lstrip("( ").startswith(("select", "with", "execute", "values"))
    return reads and one.calls >= REPEATED and one.rows <= _FEW_ROWS


def _limit(one: Bottleneck, time: Sequence[TimePlace], foreign: float) -> ServiceFinding:
    """Report a limit. Other programs on the machine cost their part of the time of waiting for processors."""
    share = one.weight
    if one.resource == "machine cpu":
        queued = (place.share for place in time if place.kind in ("database queue", "service queue"))
        share = sum(queued) * foreign
    return ServiceFinding("bottleneck", one.sentence, one.remedy, share)


def _share_of(request: RequestFacts, requests: Sequence[RequestFacts]) -> float:
    """Return the fraction of all requests' time that passes in one kind of request."""
    whole = sum((one.mean_ns or 0.0) * one.sent for one in requests)
    return (request.mean_ns or 0.0) * request.sent / whole if whole else 0.0


@dataclass(frozen=True, slots=True)
class _Repeated:
    """An N+1; `outside` is the fraction of all time outside the database that it explains."""

    finding: ServiceFinding
    outside: float


def _repeated(time: Sequence[TimePlace], requests: Sequence[RequestFacts]) -> Iterator[_Repeated]:
    """Report requests that send a statement for each row of another one.

    Their time is the execution time of the repeated statements, and the part of the request's time outside
    the database that falls to them: each statement costs the service and the network time too.
    """
    inside = sum(one.share for one in time if one.kind in _DATABASE)
    for request in requests:
        found = repeated_templates(request)
        calls = sum(one.calls for one in found)
        if not found or not request.statements or calls < _MOSTLY * request.statements:
            continue
        mean, part = request.mean_ns or 0.0, _share_of(request, requests)
        own = min(1.0, sum(one.ns for one in found) / mean) if mean else 0.0
        executing = min(1.0, (request.database_ns or 0.0) / mean) if mean else 0.0
        between = (1.0 - executing) * calls / request.statements
        counts = " and ".join(f"{one.calls:.3g} × `{_shown(one.text)}`" for one in found[:3])
        many = f"{request.statements:.3g} statements"
        yield _Repeated(
            ServiceFinding(
                "n+1",
                f"{request.name} sends {many} for each request, {calls:.3g} of them one by one (N+1): "
                f"{counts}",
                "fetch these rows in one statement: a join, = ANY of a list, or the ORM's eager loading "
                "(select_related and prefetch_related, joinedload and selectinload, includes, Preload)",
                min(1.0, own + between) * part,
                request.name,
                found[0].template,
            ),
            min(1.0, between * part / (1.0 - inside)) if inside < 1.0 else 0.0,
        )


def _database(time: Sequence[TimePlace], requests: Sequence[RequestFacts]) -> Iterator[ServiceFinding]:
    """Report the largest place in the database, with the statement that takes most of the time there."""
    places = [one for one in time if one.kind in _DATABASE]
    if not places:
        return
    whole = sum(one.share for one in places)
    largest = max(places, key=lambda one: one.share)
    what, remedy = _WAITS[largest.kind]
    sent = [(one.ns * request.sent, one, request) for request in requests for one in request.templates]
    total = sum(ns for ns, _, _ in sent)
    if not total:
        yield ServiceFinding(
            "bottleneck", f"requests pass {_percent(largest.share)} of their time {what}", remedy, whole
        )
        return
    ns, template, request = max(sent, key=lambda one: one[0])
    share = whole * ns / total
    repeated = template in repeated_templates(request)
    if repeated:
        return  # the finding about N+1 covers it
    yield ServiceFinding(
        "statement",
        f"`{_shown(template.text)}` of {request.name} takes {format_duration(template.ns)} for each request, "
        f"{_percent(ns / total)} of the statements' time; requests pass {_percent(largest.share)} of their "
        f"time {what}",
        remedy,
        share,
        request.name,
        template.template,
    )


def _held(time: Sequence[TimePlace], left: float) -> Iterator[ServiceFinding]:
    """Report time in open transactions; `left` is the fraction of it that no N+1 explains."""
    place = next((one for one in time if one.kind == "idle in transaction"), None)
    if place is None:
        return
    each = "" if place.ns is None else f", {format_duration(place.ns)} each"
    yield ServiceFinding(
        "idle in transaction",
        f"requests pass {_percent(place.share)} of their time between the statements of an open transaction"
        f"{each}: the service works or waits while it holds a connection and its locks{_explained(left)}",
        "send fewer statements for each transaction, and do other work before it begins or after it ends",
        place.share * left,
    )


def _service(
    time: Sequence[TimePlace],
    bottlenecks: Sequence[Bottleneck],
    workers: Sequence[WorkerFacts],
    hottest: tuple[str, float] | None,
    left: float,
) -> Iterator[ServiceFinding]:
    """Report the time in the service: computing, or waiting for a connection, a worker or a lock.

    `left` is the fraction of it that no N+1 explains.
    """
    shares = {one.kind: one.share for one in time}
    computing = shares.get("service cpu", 0.0) + shares.get("service queue", 0.0)
    named = "" if hottest is None else f"; {_percent(hottest[1])} of it is in {hottest[0]}"
    waiting = shares.get("service wait", 0.0)
    pool = next((one for one in bottlenecks if one.resource == "pool"), None)
    threads = next((one for one in bottlenecks if one.resource == "service cpu"), None)
    locked = next((one for one in workers if one.runtime == "python" and one.cpus >= _LOCKED), None)
    if pool is not None:
        yield ServiceFinding("bottleneck", pool.sentence, pool.remedy, max(pool.weight, waiting) * left)
        waiting = 0.0
    elif threads is not None or locked is not None:  # requests queue for the threads that compute
        computing, waiting = computing + waiting, 0.0
    if computing:
        sentence = f"requests pass {_percent(computing)} of their time in the service's own code{named}"
        if locked is not None:
            sentence = (
                f"the Python process {locked.pid} computes {_percent(locked.cpus)} of the time, and only one "
                f"of its threads can at once{named}"
            )
        elif threads is not None:
            sentence = f"{threads.sentence}{named}"
        yield ServiceFinding(
            "service code",
            f"{sentence}{_explained(left)}",
            "make that function cheaper, or run more processes of the service"
            if hottest is not None
            else "find what it computes, and make that cheaper, or run more processes of the service",
            computing * left,
        )
    if waiting:
        yield ServiceFinding(
            "service wait",
            f"requests wait {_percent(waiting)} of their time in the service, where it does not compute"
            f"{_explained(left)}",
            "look for a full pool of connections, too few workers, a lock of the interpreter, or a call to "
            "another service",
            waiting * left,
        )


def _pauses(paused: float) -> Iterator[ServiceFinding]:
    yield ServiceFinding(
        "bottleneck",
        f"answers pause midway for 40 ms, {_percent(paused)} of their time, although nothing is busy: the "
        "service holds the rest back until the receiver acknowledges the beginning (Nagle's algorithm)",
        "set TCP_NODELAY on the service's sockets, or write header and body of an answer at once",
        paused,
    )


def _idle_workers(workers: Sequence[WorkerFacts], time: Sequence[TimePlace]) -> Iterator[ServiceFinding]:
    """Report that some of the processes that serve requests work, while others are hardly used."""
    waiting = sum(one.share for one in time if one.kind in ("service cpu", "service queue", "service wait"))
    parents = {one.parent for one in workers}
    serving = [one for one in workers if one.pid not in parents or one.cpus >= _BUSY_WORKER]
    if any(one.sessions for one in serving):  # the others may be helpers, such as a resource tracker
        serving = [one for one in serving if one.sessions]
    if len(serving) < 2:
        return
    busiest, idlest = max(serving, key=lambda one: one.cpus), min(serving, key=lambda one: one.cpus)
    same = [one for one in serving if one.command == busiest.command]
    if busiest.cpus < _BUSY_WORKER or idlest not in same or idlest.cpus >= _UNEVEN * busiest.cpus:
        return
    yield ServiceFinding(
        "idle processes",
        f"the work is not divided evenly: process {busiest.pid} used {busiest.cpus:.2f} processors, process "
        f"{idlest.pid} only {idlest.cpus:.2f}",
        "spread the connections over the processes: a balancer that counts requests, SO_REUSEPORT, or fewer "
        "keep-alive connections to each process",
        waiting * (1.0 - idlest.cpus / busiest.cpus) / 2,
    )


def _explained(left: float) -> str:
    """Say that an N+1 explains most of a finding, if only the fraction `left` of it remains."""
    return "; the statements that are sent one by one explain most of it" if left < _OWN else ""


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _shown(text: str) -> str:
    return short_template(text, _TEXT)
