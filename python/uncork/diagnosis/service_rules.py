"""Findings about a profiled service: what its requests wait for, and where that comes from. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from uncork.model.bottleneck import Bottleneck, Seen
from uncork.model.results.service import (
    PlaceKind,
    RequestFacts,
    Runtime,
    SentTemplate,
    ServiceFinding,
    TimePlace,
    WorkerFacts,
)
from uncork.model.template_words import short_template
from uncork.model.units import format_duration

# ---- divide the requests' time among the parts that cause it ----
#
# A request that waits for a free process, or for a processor, waits because of what the others do
# there. So the queue for processes belongs to the places where the processes pass their time, and
# the queue for the machine's processors belongs to the components that use them. Where processors
# are idle, more processes would shorten the queue: that part is theirs.


DATABASE: Final[tuple[PlaceKind, ...]] = (
    *("database parsing", "database planning", "database cpu", "database queue", "locks", "commit"),
    *("storage", "internal locks", "database other"),
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
        executing * grown, (database - executing) * grown, held * grown, code * grown, few, waiting, grown
    )


def _executing_part(busy: float, requests: Sequence[RequestFacts]) -> float:
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

    What a request demands is its time alone: with others, it also waits for them. The part of it
    outside the database is the rest after its statements.
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


# ---- findings about services that do not keep their connections to the database ----


_OFTEN: Final = 0.5
"""Connections for each request from which on a service opens them again and again."""
_PREPARES: Final = re.compile(r"set |show |select (?:pg_catalog\.)?(?:set_config|version|current_schema)\b")
"""Statements with which drivers prepare a connection."""


def prepares(request: RequestFacts, template: SentTemplate) -> bool:
    """Return whether a request sends a statement because it opens a connection."""
    return (request.connections or 0.0) >= _OFTEN and _PREPARES.match(template.text) is not None


def opened_connections(
    requests: Sequence[RequestFacts], causes: Causes, connect_ns: float | None
) -> tuple[ServiceFinding, ...]:
    """Report that requests open connections; `connect_ns` is how long one takes, None if it was not measured.

    The requests wait that long for each connection, and others wait for their processes meanwhile.
    Statements that prepare the connection count too.
    """
    found = [request for request in requests if (request.connections or 0.0) >= _OFTEN]
    whole = sum((request.mean_ns or 0.0) * request.sent for request in requests)
    if not found or not whole or not connect_ns:
        return ()
    outside, executing = outside_shares(requests, causes), _executing_connections(requests)
    shares = {
        request.name: min(
            outside[request.name],
            (request.connections or 0.0) * connect_ns * request.sent / whole * causes.grown,
        )
        for request in found
    }
    preparing = _executing_connections(found, preparing=True) / executing if executing else 0.0
    most = max(found, key=lambda request: shares[request.name])
    every = len(found) == len(requests) > 1
    many = f"{most.connections:.2g} connections" if (most.connections or 0.0) >= 1.5 else "a connection"
    who = "each request" if every else f"{most.name}"
    return (
        ServiceFinding(
            "connections",
            f"{who} opens {many} to the database{'' if every else ' for each request'}; opening "
            f"one takes {format_duration(connect_ns)} under this load, before the first statement",
            "keep connections open: a pool in the service, persistent connections (Django: "
            "CONN_MAX_AGE or pool), or pgbouncer next to the service",
            sum(shares.values()) + causes.executing * preparing,
            most.name,
        ),
    )


def _executing_connections(requests: Sequence[RequestFacts], *, preparing: bool = False) -> float:
    """Return the execution time of the requests' statements, or only of what prepares connections."""
    return sum(
        template.ns * request.sent
        for request in requests
        for template in request.templates
        if not preparing or prepares(request, template)
    )


# ---- which processes of a service answer requests, and whether each answers one at a time ----


_BUSY: Final = 0.5
"""A process with children answers requests itself if it uses at least this fraction of a processor."""
_FORKING: Final[frozenset[Runtime]] = frozenset({"python", "ruby", "php"})
"""Runtimes whose servers often run one process for each request (gunicorn, unicorn, PHP-FPM)."""


def serving(workers: Sequence[WorkerFacts]) -> list[WorkerFacts]:
    """Return the processes that answer requests: without parents that only start the others, and helpers.

    If some processes have sessions of the database, the others are helpers, such as a resource tracker.
    """
    parents = {worker.parent for worker in workers}
    found = [worker for worker in workers if worker.pid not in parents or worker.cpus >= _BUSY]
    if any(worker.sessions for worker in found):
        found = [worker for worker in found if worker.sessions]
    return found


def one_at_a_time(workers: Sequence[WorkerFacts]) -> int:
    """Return how many processes answer requests if each answers one at a time, or else 0.

    Such a process has one thread, and at most one session of the database. An event loop that has so far
    opened only one session looks the same, but more requests are in progress than it has processes.
    """
    found = serving(workers)
    single = all(
        worker.threads == 1 and worker.runtime in _FORKING and (worker.sessions or 0) <= 1 for worker in found
    )
    return len(found) if single else 0


# ---- findings about a profiled service: what its requests wait for, and where that comes from ----
#
# The places of the requests' time add up to the whole, so the largest place is where a change can
# gain most. A finding names the request and the statement behind a place, where the statements of
# each request are known. Queues count for what the requests ahead do meanwhile (`service_causes`).


REPEATED: Final = 5.0
"""Executions for each request from which on a statement that returns few rows is repeated."""
_FEW_ROWS: Final = 3.0
_MOSTLY: Final = 0.5
"""Fraction of a request's statements that must be repeated ones before they are its N+1."""
_LEAST: Final = 0.05
"""Fraction of the requests' time below which a finding is not reported."""
_FIRST: Final = frozenset(
    {
        *("generator", "ephemeral ports", "file descriptors", "listen backlog", "connection limit"),
        *("cpu quota", "machine cpu"),
    }
)
"""Limits that have no place of their own among the requests' time."""
_WAITS: Final[Mapping[PlaceKind, tuple[str, str]]] = {
    "database parsing": (
        "parsing statements in the database",
        "prepare statements and keep their connections",
    ),
    "database planning": (
        "planning statements in the database",
        "prepare statements and keep their connections, or make them simpler to plan (fewer partitions)",
    ),
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
_IN_SERVICE: Final = frozenset({"service cpu", "service queue", "pool wait", "service wait"})
_UNEVEN: Final = 0.5
"""A process is idle if it used less than this fraction of the busiest one's processor time."""
_BUSY_WORKER: Final = 0.5
_DOMINANT: Final = 0.2
"""Own share of processor time from which on one function explains what the service computes."""
_MOST_STATEMENTS: Final = 2
_LOCKED: Final = 0.8
"""Fraction of the time that a Python process computes, from which on its threads wait for the interpreter."""
_UNEXPLAINED: Final = 0.5
"""Weight of time whose cause is unknown, when findings are ranked."""
_OPENING: Final = 2.0
"""Weight of the time to open connections, when findings are ranked. The service also closes them
and prepares each one, and the server's new process has empty caches. A site of Wagtail answered 30
to 35 % fewer requests with a connection for each, where opening them explained 12 to 15 %."""
_SEVERAL: Final = 1.5
"""Executions for each request from which on a finding states their number."""
_OWN: Final = 0.5
"""A finding about the service is mostly explained by an N+1 if less than this fraction of it is left."""
_TEXT: Final = 70


@dataclass(frozen=True, slots=True)
class HotFunction:
    """The function of the service with the greatest own share of its processor time.

    `deepest` is the function that calls no other one that is active half of the time, `within` its
    share with what it calls; empty if unknown.
    """

    name: str
    own: float
    deepest: str = ""
    within: float = 0.0

    def place(self) -> str:
        """Return where the service computes: in one function, or else in the deepest one with half of it."""
        if self.own >= _DOMINANT or not self.deepest:
            return f"{_percent(self.own)} of it is in {self.name}"
        return f"{_percent(self.within)} of it is in {self.deepest} and what that calls"


def find_service_findings(
    time: Sequence[TimePlace],
    requests: Sequence[RequestFacts],
    bottlenecks: Sequence[Bottleneck],
    workers: Sequence[WorkerFacts],
    *,
    seen: Seen | None = None,
    hottest: HotFunction | None = None,
    unindexed: Mapping[str, str] = MappingProxyType({}),
    foreign: float = 0.0,
    paused: float = 0.0,
    connect_ns: float | None = None,
) -> tuple[ServiceFinding, ...]:
    """Return the findings, the costliest first; limits that refuse requests come before all others.

    `foreign` is the fraction of the machine's busy processors that other programs use. `unindexed` are the
    tables that statements read without a fitting index, by the template's text. `paused` is the fraction of
    the requests' time in which answers pause for delayed acknowledgements. `connect_ns` is how long it takes
    to open a connection to the database, None if that was not measured.
    """
    causes = cause_shares(time, requests, seen)
    repeated = tuple(_repeated(requests, causes, unindexed, hottest))
    opened = opened_connections(requests, causes, connect_ns)
    outside = sum(request.outside for request in repeated)
    outside += sum(finding.share for finding in opened) / causes.outside if causes.outside else 0.0
    left = 1.0 - min(1.0, outside)
    found = [
        *(_limit(bottleneck, time, foreign) for bottleneck in bottlenecks if bottleneck.resource in _FIRST),
        *_unindexed(requests, causes, unindexed),
        *(request.finding for request in repeated),
        *opened,
        *_statements(time, requests, causes, unindexed),
        *_held(time, causes, left),
        *_service(time, bottlenecks, workers, hottest, causes, left * (1.0 - paused)),
        *_few_processes(time, workers, causes, seen),
        *_idle_workers(workers, time),
        *_pauses(paused),
    ]
    ranked = sorted(
        (finding for finding in found if finding.share >= _LEAST), key=lambda finding: _rank(finding, hottest)
    )
    return tuple(ranked)


def _rank(finding: ServiceFinding, hottest: HotFunction | None) -> float:
    """Return a sort key. What has no known cause comes after a cause that is known and half as large.

    This holds for waits that no source explains, and for computing of which no function uses much.
    """
    if finding.name == "connections":
        return -finding.share * _OPENING
    vague = finding.name == "service code" and (hottest is None or hottest.own < _DOMINANT)
    return -finding.share * (_UNEXPLAINED if finding.name == "service wait" or vague else 1.0)


def repeated_templates(request: RequestFacts) -> tuple[SentTemplate, ...]:
    """Return the statements that a request sends again and again for one or a few rows each (N+1)."""
    return tuple(template for template in request.templates if _is_repeated(template))


def _is_repeated(template: SentTemplate) -> bool:
    reads = template.text.lstrip("( ").startswith(("select", "with", "execute", "values"))
    return reads and template.calls >= REPEATED and template.rows is not None and template.rows <= _FEW_ROWS


def _limit(bottleneck: Bottleneck, time: Sequence[TimePlace], foreign: float) -> ServiceFinding:
    """Report a limit. Other programs on the machine cost their part of the time of waiting for processors."""
    share = bottleneck.weight
    if bottleneck.resource == "machine cpu":
        queued = (place.share for place in time if place.kind in ("database queue", "service queue"))
        share = sum(queued) * foreign
    return ServiceFinding("bottleneck", bottleneck.sentence, bottleneck.remedy, share)


@dataclass(frozen=True, slots=True)
class _Repeated:
    """An N+1; `outside` is the fraction of all time outside the database that it explains."""

    finding: ServiceFinding
    outside: float


def _repeated(
    requests: Sequence[RequestFacts],
    causes: Causes,
    unindexed: Mapping[str, str],
    hottest: HotFunction | None,
) -> Iterator[_Repeated]:
    """Report requests that send a statement for each row of another one.

    Their time is the execution time of the repeated statements, and their part of the other time:
    each statement costs the service and the network time too, and the database has to parse it. The
    execution time of a statement that lacks an index counts for the index.
    """
    outside, total = outside_shares(requests, causes), _executing(requests)
    sent = sum((request.statements or 0.0) * request.sent for request in requests)
    for request in requests:
        found = repeated_templates(request)
        calls = sum(template.calls for template in found)
        if not found or not request.statements or calls < _MOSTLY * request.statements:
            continue
        own = sum(template.ns for template in found if template.text not in unindexed) * request.sent
        inside = causes.executing * own / total if total else 0.0
        inside += causes.parsing * calls * request.sent / sent
        between = outside[request.name] * calls / request.statements
        counts = " and ".join(f"{template.calls:.3g} × `{_shown(template.text)}`" for template in found[:3])
        many = f"{request.statements:.3g} statements"
        mostly = hottest is not None and hottest.deepest and between >= _MOSTLY * causes.outside
        place = ""
        if hottest is not None and mostly:
            place = f"; {_percent(hottest.within)} of the service's computing is in {hottest.deepest}"
        yield _Repeated(
            ServiceFinding(
                "n+1",
                f"{request.name} sends {many} for each request, {calls:.3g} of them one by one "
                f"(N+1): {counts}{place}",
                "fetch these rows in one statement: a join, = ANY of a list, or the ORM's eager loading "
                "(select_related and prefetch_related, joinedload and selectinload, includes, Preload)",
                min(1.0, inside + between),
                request.name,
                found[0].template,
            ),
            min(1.0, between / causes.outside) if causes.outside else 0.0,
        )


def _executing(requests: Sequence[RequestFacts]) -> float:
    return sum(template.ns * request.sent for request in requests for template in request.templates)


def _unindexed(
    requests: Sequence[RequestFacts], causes: Causes, unindexed: Mapping[str, str]
) -> Iterator[ServiceFinding]:
    total = _executing(requests)
    for text, table in unindexed.items():
        sent = [
            (template.ns * request.sent, template, request)
            for request in requests
            for template in request.templates
            if template.text == text
        ]
        ns = sum(part for part, _, _ in sent)
        if not ns:
            continue
        _, most, request = max(sent, key=lambda each: each[0])
        times = "" if most.calls < _SEVERAL else f"{most.calls:.3g} × "
        took = f"takes {format_duration(most.ns)} for each request, {_percent(ns / total)}"
        yield ServiceFinding(
            "missing index",
            f"an index is missing on {table}: {times}`{_shown(text)}` of {request.name} reads the "
            f"whole table and {took} of the statements' time",
            f"create an index on {table} for the columns that this statement compares",
            causes.executing * ns / total,
            request.name,
            most.template,
        )


def _statements(
    time: Sequence[TimePlace], requests: Sequence[RequestFacts], causes: Causes, unindexed: Mapping[str, str]
) -> Iterator[ServiceFinding]:
    """Report the statements that take most of the time in the database, and what they do there.

    Repeated statements and statements without an index have findings of their own.
    """
    places = [place for place in time if place.kind in DATABASE]
    if not places:
        return
    largest = max(places, key=lambda place: place.share)
    what, remedy = _WAITS[largest.kind]
    doing = f"requests pass {_percent(largest.share)} of their time {what}"
    total = _executing(requests)
    if not total:
        yield ServiceFinding("bottleneck", doing, remedy, causes.database)
        return
    sent = [
        (template.ns * request.sent, template, request)
        for request in requests
        for template in request.templates
        if template.text not in unindexed and not _is_repeated(template) and not prepares(request, template)
    ]
    for ns, template, request in sorted(sent, key=lambda item: -item[0])[:_MOST_STATEMENTS]:
        share = causes.executing * ns / total
        took = f"takes {format_duration(template.ns)} for each request, {_percent(ns / total)}"
        text = f"`{_shown(template.text)}` of {request.name} {took} of the statements' time"
        yield ServiceFinding(
            "statement",
            text if causes.grown > 1.0 else f"{text}; {doing}",
            remedy,
            share,
            request.name,
            template.template,
        )


def _held(time: Sequence[TimePlace], causes: Causes, left: float) -> Iterator[ServiceFinding]:
    """Report time in open transactions; `left` is the fraction of it that no N+1 explains."""
    place = next((place for place in time if place.kind == "idle in transaction"), None)
    if place is None:
        return
    each = "" if place.ns is None else f", {format_duration(place.ns)} each"
    yield ServiceFinding(
        "idle in transaction",
        f"requests pass {_percent(place.share)} of their time between the statements of an open transaction"
        f"{each}: the service works or waits while it holds a connection and its locks{_explained(left)}",
        "send fewer statements for each transaction, and do other work before it begins or after it ends",
        causes.held * left,
    )


def _service(
    time: Sequence[TimePlace],
    bottlenecks: Sequence[Bottleneck],
    workers: Sequence[WorkerFacts],
    hottest: HotFunction | None,
    causes: Causes,
    left: float,
) -> Iterator[ServiceFinding]:
    """Report the time in the service: computing, or waiting for a connection, an interpreter or a thread.

    `left` is the fraction of it that no N+1 explains.
    """
    shares = {place.kind: place.share for place in time}
    computing = shares.get("service cpu", 0.0) + shares.get("service queue", 0.0)
    named = "" if hottest is None else f"; {hottest.place()}"
    code, waiting = causes.code, causes.waiting
    pool = next((bottleneck for bottleneck in bottlenecks if bottleneck.resource == "pool"), None)
    threads = next((bottleneck for bottleneck in bottlenecks if bottleneck.resource == "service cpu"), None)
    full = (worker for worker in workers if worker.runtime == "python" and worker.cpus >= _LOCKED)
    locked = next(full, None)
    if pool is not None:
        yield ServiceFinding("bottleneck", pool.sentence, pool.remedy, max(pool.weight, waiting) * left)
        waiting = 0.0
    elif threads is not None or locked is not None:  # requests queue for the threads that compute
        code, computing, waiting = code + waiting, computing + waiting, 0.0
    if code:
        sentence = f"requests pass {_percent(computing)} of their time in the service's own code{named}"
        if locked is not None:
            sentence = (
                f"the Python process {locked.pid} computes {_percent(locked.cpus)} of the time, "
                f"and only one of its threads can at once{named}"
            )
        elif threads is not None:
            sentence = f"{threads.sentence}{named}"
        elif causes.grown > 1.0:
            sentence = f"the service's own code keeps its processes busy{named}"
        yield ServiceFinding(
            "service code",
            f"{sentence}{_explained(left)}",
            "make that function cheaper, or run more processes of the service"
            if hottest is not None
            else "find what it computes, and make that cheaper, or run more processes of the service",
            code * left,
        )
    if waiting:
        yield ServiceFinding(
            "service wait",
            f"requests wait {_percent(waiting)} of their time in the service, where it does not "
            f"compute{_explained(left)}",
            "look for a full pool of connections, too few workers, a lock of the interpreter, or a "
            "call to another service",
            waiting * left,
        )


def _few_processes(
    time: Sequence[TimePlace], workers: Sequence[WorkerFacts], causes: Causes, seen: Seen | None
) -> Iterator[ServiceFinding]:
    queue = next((place for place in time if place.kind == "process queue"), None)
    if queue is None or not causes.few:
        return
    many = len(serving(workers))
    busy = "its only process is" if many == 1 else f"its {many} processes are all"
    idle = 1.0 - (0.0 if seen is None else seen.machine.busy or 0.0)
    yield ServiceFinding(
        "few processes",
        f"the service has too few processes: {busy} busy with one request at a time, and "
        f"{queue.requests:.1f} requests wait, while {_percent(idle)} of the machine's processors are idle",
        "run more processes of the service, or let each answer several requests at once (threads)",
        causes.few,
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
    waiting = sum(place.share for place in time if place.kind in _IN_SERVICE)
    found = serving(workers)
    if len(found) < 2:
        return
    busiest, idlest = max(found, key=lambda worker: worker.cpus), min(found, key=lambda worker: worker.cpus)
    same = [worker for worker in found if worker.command == busiest.command]
    if busiest.cpus < _BUSY_WORKER or idlest not in same or idlest.cpus >= _UNEVEN * busiest.cpus:
        return
    yield ServiceFinding(
        "idle processes",
        f"the work is not divided evenly: process {busiest.pid} used {busiest.cpus:.2f} "
        f"processors, process {idlest.pid} only {idlest.cpus:.2f}",
        "spread the connections over the processes: a balancer that counts requests, SO_REUSEPORT, "
        "or fewer keep-alive connections to each process",
        waiting * (1.0 - idlest.cpus / busiest.cpus) / 2,
    )


def _explained(left: float) -> str:
    """Say that an N+1 explains most of a finding, if only the fraction `left` of it remains."""
    return "; the statements that are sent one by one explain most of it" if left < _OWN else ""


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %"


def _shown(text: str) -> str:
    return short_template(text, _TEXT)
