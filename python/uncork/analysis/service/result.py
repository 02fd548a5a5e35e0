"""Build the result of a stored profile of a service."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from uncork.analysis.stacks.result import samples_of
from uncork.diagnosis.bottleneck import find_bottlenecks
from uncork.diagnosis.service_rules import HotFunction, find_service_findings, one_at_a_time
from uncork.load.traceparent import group_of
from uncork.model.bottleneck import COMMIT_EVENTS, Component, DatabaseUse, LoadUse, MachineUse, Seen
from uncork.model.database.wait_classes import CPU, IDLE
from uncork.model.records import build_from
from uncork.model.results.database import DatabaseResult
from uncork.model.results.load import LoadResult
from uncork.model.results.log import LogResult
from uncork.model.results.service import (
    OriginFacts,
    PlaceKind,
    PoolUse,
    RequestFacts,
    RequestFunctions,
    SentTemplate,
    ServiceResult,
    ServiceRunFacts,
    TimePlace,
    WorkerFacts,
)
from uncork.model.results.stacks import FrameFacts, StackResult
from uncork.model.tables.log import RouteRow
from uncork.model.tables.service import (
    ALL,
    NONE,
    SERVICE_TABLES,
    CountRow,
    ProcessRow,
    ServiceTemplateRow,
    SliceRow,
)
from uncork.profile.stacks import beside, sum_frames
from uncork.stats.load.per_request import Rise, background_rate, per_request
from uncork.stats.load.stall import waits_for_acknowledgements
from uncork.store.layout import read_manifest
from uncork.store.tables import read_evidence, typed_rows

_MOST_ORIGINS: Final = 50
_EVERY_STATEMENT: Final = ("log_min_duration_statement", "0")
_PAUSE_NS: Final = 40e6
"""Linux delays an acknowledgement by 40 ms."""
_ASLEEP: Final = "off-cpu"
_SUMS: Final = re.compile(r"\b(?:count|sum|avg|min|max|array_agg|string_agg) ?\(|\bgroup by\b")
_RANGE: Final = re.compile(r"<|>|\bbetween\b|\bi?like\b|~")
_MOSTLY: Final = 0.5


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """The parts of a profile that are runs of their own; None if they were not recorded.

    `routes` is the table of the log with that name, and `log_texts` are its templates. `apart` are
    the stacks that were recorded while one kind of request was sent at a time.
    """

    load: LoadResult | None
    database: DatabaseResult | None
    code: StackResult | None
    log: LogResult | None
    seen: Seen | None
    activity: pa.Table | None
    routes: pa.Table | None = None
    log_texts: Sequence[str] = ()
    apart: pa.Table | None = None


def stored_service_result(folder: Path, parts: ServiceParts) -> ServiceResult:
    """Return the result of a stored profile, without sentences.

    Raises:
        StoreError: if its files are damaged, or it has no result.
    """
    manifest = read_manifest(folder)
    facts, tables = read_evidence(folder, SERVICE_TABLES)
    seen = parts.seen or _without_load(parts.database)
    texts = {row.template: row.text for row in typed_rows(tables["service_templates"], ServiceTemplateRow)}
    workers = tuple(
        build_from(WorkerFacts, row) for row in typed_rows(tables["service_processes"], ProcessRow)
    )
    pool = _pool(facts["pool"])
    time = () if seen is None else with_branches(time_places(seen, workers), *_branches(parts, pool))
    requests, explained = _requests(tables, texts, parts, facts["trace"])
    bottlenecks = () if seen is None or parts.seen is None else find_bottlenecks(seen)
    if any(place.kind == "process queue" for place in time):  # each process has a connection: no pool is full
        bottlenecks = tuple(bottleneck for bottleneck in bottlenecks if bottleneck.resource != "pool")
    return build_from(
        ServiceResult,
        parts,
        run=build_from(
            ServiceRunFacts,
            manifest,
            elapsed_ns=sum(attempt.elapsed_ns for attempt in manifest.attempts),
            database=facts["database"],
            reproduce=manifest.options.get("command", ""),
        ),
        answer="",
        reasons=(),
        warnings=(),
        findings=find_service_findings(
            time,
            requests,
            bottlenecks,
            workers,
            seen=parts.seen,
            hottest=_hottest(parts.code),
            unindexed=_unindexed(parts.database),
            foreign=0.0 if seen is None else foreign_share(seen),
            paused=_paused(parts.load),
            connect_ns=facts["connect_ns"],
        ),
        bottlenecks=bottlenecks,
        in_flight=None if parts.seen is None else parts.seen.load.in_flight,
        mean_ns=None if parts.seen is None else parts.seen.load.mean_ns,
        time=time,
        requests=requests,
        explained=explained,
        workers=workers,
        origins=_origins(parts.activity, parts.database),
        missing=(*facts["missing"], *_without_traces(facts["trace"], requests, parts)),
        pool=pool,
    )


def _requests(
    tables: Mapping[str, pa.Table], texts: Mapping[int, str], parts: ServiceParts, trace: str | None
) -> tuple[tuple[RequestFacts, ...], float | None]:
    load = parts.load
    if load is None:
        return (), None
    slices = typed_rows(tables["service_slices"], SliceRow)
    counts = typed_rows(tables["service_counts"], CountRow)
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in slices:
        if row.kind == "one":
            sums[row.request][0] += row.sum_ns
            sums[row.request][1] += row.started - row.failed
    scripts = {script.name: script for script in load.scripts}
    sent = {name: script.executions for name, script in scripts.items()}
    join = join_requests(slices, counts, texts, sent)
    traced: dict[str, Traced] = {}
    if trace is not None and parts.routes is not None:
        in_slices = {
            name: {template.text: template for template in of} for name, of in join.templates.items()
        }
        traced = join_traces(parts.routes, parts.log_texts, trace, sent, in_slices)
    functions = {} if parts.apart is None else functions_by_request(parts.apart)
    found = []
    for name, script in scripts.items():
        templates = _templates(name, join.templates.get(name, ()), traced)
        known = (bool(slices) and sums[name][1] > 0) or name in traced
        alone = sums[name]
        times = script.latency
        found.append(
            RequestFacts(
                name=name,
                sent=script.executions,
                failed=script.errors,
                mean_ns=times.mean_ns,
                p99_ns=times.p99_ns,
                alone_ns=alone[0] / alone[1] if alone[1] else None,
                statements=sum(template.calls for template in templates) if known else None,
                rows=_rows(templates) if known else None,
                database_ns=sum(template.ns for template in templates) if known else None,
                templates=templates,
                connections=connections_opened(slices, name),
                traced=traced[name].requests if name in traced else None,
                functions=functions.get(name),
            )
        )
    found.sort(key=lambda one: -(one.mean_ns or 0.0) * one.sent)
    return tuple(found), join.explained


def _without_traces(
    trace: str | None, requests: Sequence[RequestFacts], parts: ServiceParts
) -> Iterator[str]:
    """Say why statements were not counted by trace, if they should have been."""
    if trace is None or any(request.traced for request in requests):
        return
    if parts.log is None:
        yield "counts of statements by trace: no log of the database was read; name it with --logs"
    else:
        yield (
            "counts of statements by trace: no statement in the log has a trace of these requests; the "
            "service must write traceparent into comments, and log_min_duration_statement must be 0"
        )


def _pool(counted: Mapping[str, float] | None) -> PoolUse | None:
    if counted is None:
        return None
    elapsed_ns, many = max(1.0, counted["elapsed_ns"]), counted["transactions"]
    return PoolUse(
        transactions_s=many / elapsed_ns * 1e9,
        waiting=counted["wait_us"] * 1000 / elapsed_ns,
        transaction_ns=counted["transaction_us"] * 1000 / many if many else None,
        wait_ns=counted["wait_us"] * 1000 / many if many else None,
    )


def _branches(parts: ServiceParts, pool: PoolUse | None) -> tuple[float, float, float]:
    """Return how many sessions parse and plan, and how many clients of PgBouncer wait; 0 if unknown.

    The console counts exactly the time of the load; the log's periods are longer.
    """
    steps = () if parts.database is None else parts.database.steps
    parsing, binding = _extended_protocol(parts)
    planning = [step.sessions for step in steps if step.name == "plan"]
    logged = None if parts.log is None else parts.log.pool
    waiting = 0.0 if logged is None else logged.waiting
    return parsing, sum(planning) if planning else binding, waiting if pool is None else pool.waiting


def _extended_protocol(parts: ServiceParts) -> tuple[float, float]:
    """Return how many sessions parse and bind, from the log; 0 unless it has all statements.

    The log's durations cover the whole profile, so only their proportions are those of the load.
    """
    database, log = parts.database, parts.log
    if database is None or log is None or (_EVERY_STATEMENT not in _chosen(database)):
        return 0.0, 0.0
    whole = log.parse.sum_ns + log.bind.sum_ns + log.executions.sum_ns
    working = sum(child.sessions for child in database.tree.children if child.name != IDLE)
    if not whole:
        return 0.0, 0.0
    return working * log.parse.sum_ns / whole, working * log.bind.sum_ns / whole


def _chosen(database: DatabaseResult) -> set[tuple[str, str]]:
    return {(setting.name, setting.value) for setting in database.settings}


def _templates(
    name: str, in_slices: tuple[SentTemplate, ...], traced: Mapping[str, Traced]
) -> tuple[SentTemplate, ...]:
    """Return the statements of a request: by its trace, or by slices if a statement never has a trace.

    Drivers send BEGIN and COMMIT without the comments of an application.
    """
    if name not in traced:
        return in_slices
    tagged = {template.text for of in traced.values() for template in of.templates}
    others = [in_slice_ for in_slice_ in in_slices if in_slice_.text not in tagged]
    return tuple(sorted((*traced[name].templates, *others), key=lambda template: -template.ns))


def _rows(templates: Sequence[SentTemplate]) -> float | None:
    rows = [None if template.rows is None else template.calls * template.rows for template in templates]
    known = [row for row in rows if row is not None]
    return sum(known) if len(known) == len(rows) else None


def _without_load(database: DatabaseResult | None) -> Seen | None:
    """Return what the database's sessions did, as if they were the requests in flight."""
    if database is None or not database.tree.sessions:
        return None
    waits: dict[tuple[str, str], float] = defaultdict(float)
    for of_class in database.tree.children:
        events = [child for child in of_class.children if child.kind == "event"]
        for event in events:
            waits[of_class.name, event.name] += event.sessions
        waits[of_class.name, ""] += max(0.0, of_class.sessions - sum(event.sessions for event in events))
    return Seen(
        load=LoadUse(in_flight=0.0, mean_ns=0.0),
        machine=MachineUse(1),
        sessions=DatabaseUse(waits, sessions=database.tree.sessions),
    )


def _paused(load: LoadResult | None) -> float:
    """Return the fraction of the requests' time in which answers paused for delayed acknowledgements."""
    if load is None or load.http is None or not load.operation.mean_ns:
        return 0.0
    stalls, answers = load.http.stalls, sum(load.http.statuses.values())
    if not waits_for_acknowledgements(stalls, answers):
        return 0.0
    return min(1.0, _PAUSE_NS * stalls.answers / answers / load.operation.mean_ns)


def _hottest(code: StackResult | None) -> HotFunction | None:
    """Return the function with the greatest own share, and the deepest that is active half of the time."""
    if code is None:
        return None
    measure = next((measure for measure in code.measures if measure.frames and measure.name != _ASLEEP), None)
    if measure is None:
        return None
    frame = max(measure.frames, key=lambda frame: frame.own)
    mostly = [
        frame
        for frame in measure.frames
        if frame.total >= _MOSTLY and not frame.name.startswith(WHOLE_PROCESS)
    ]
    deepest = min(mostly, key=lambda one: one.total, default=None)
    if deepest is None:
        return HotFunction(frame.name, frame.own)
    return HotFunction(frame.name, frame.own, deepest.name, deepest.total)


def _unindexed(database: DatabaseResult | None) -> dict[str, str]:
    """Return the tables that statements read without a fitting index, by the template's text.

    A statement that counts or sums a range of rows is left out: only its values show whether it
    needs most of the table, and then an index cannot help.
    """
    if database is None:
        return {}
    texts = {template.number: template.text for template in database.templates}
    found = {
        texts[number]: finding.objects[0]
        for finding in database.findings
        if finding.rule == "missing-index" and finding.objects
        for number in finding.templates
        if number in texts
    }
    return {text: table for text, table in found.items() if not (_SUMS.search(text) and _RANGE.search(text))}


def _origins(activity: pa.Table | None, database: DatabaseResult | None) -> tuple[OriginFacts, ...]:
    """Return busy sessions by the route that their statements' comments name; empty if none does."""
    if activity is None or database is None or not database.watch.samples:
        return ()
    named = Counter(one for one in activity["origin"].to_pylist() if one)
    whole = sum(named.values())
    samples = database.watch.samples
    return tuple(
        OriginFacts(origin, many / samples, many / whole) for origin, many in named.most_common(_MOST_ORIGINS)
    )


# ---- join requests with their statements by the traces that comments in a log's statements name ----


@dataclass(frozen=True, slots=True)
class Traced:
    """What a log shows of one kind of request.

    `requests` is how many of its requests have a statement with their trace: exactly up to a
    thousand, and to 3 % beyond. `templates` come with the longest time first.
    """

    requests: int
    templates: tuple[SentTemplate, ...]


def join_traces(
    routes: pa.Table,
    texts: Sequence[str],
    trace: str,
    sent: Mapping[str, int],
    known: Mapping[str, Mapping[str, SentTemplate]],
) -> dict[str, Traced]:
    """Return the statements of each request that the log shows with its trace, by the request's name.

    `routes` is the table ``log_routes``, and `texts` are its templates. `trace` names the load, and
    `sent` has its requests in their order, with how often each was sent. `known` are the statements
    that slices show, by request and text: they supply the rows of an execution if no plan does. A
    template that they do not have gets a number above theirs.
    """
    numbers = {template.text: template.template for of in known.values() for template in of.values()}
    beyond = 1 + max(numbers.values(), default=-1)
    found = {}
    for place, (name, many) in enumerate(sent.items(), 1):
        rows = typed_rows(routes.filter(pc.equal(routes["trace"], group_of(trace, place))), RouteRow)
        by_template: dict[int, list[RouteRow]] = defaultdict(list)
        for row in rows:
            by_template[row.template].append(row)
        if not rows or not many:
            continue
        senders = {
            (row.route, row.tagged_application, row.application, row.server): row.requests or 0
            for row in rows
        }
        templates = [
            _template(
                numbers.get(texts[number], beyond + number), texts[number], of, many, known.get(name, {})
            )
            for number, of in by_template.items()
        ]
        templates.sort(key=lambda template: (-template.ns, template.text))
        found[name] = Traced(sum(senders.values()), tuple(templates))
    return found


def _template(
    number: int, text: str, rows: Sequence[RouteRow], sent: int, known: Mapping[str, SentTemplate]
) -> SentTemplate:
    executions, micros = sum(row.executions for row in rows), sum(row.sum_us for row in rows)
    plans, planned = sum(row.rows_plans for row in rows), sum(row.rows_sum for row in rows)
    in_slices = known.get(text)
    from_slices = None if in_slices is None else in_slices.rows
    return SentTemplate(
        template=number,
        text=text,
        calls=executions / sent,
        calls_low=None,
        calls_high=None,
        rows=planned / plans if plans else from_slices,
        call_ns=micros * 1000 / executions if executions else 0.0,
        ns=micros * 1000 / sent,
        traced=True,
    )


# ---- divide the requests in flight among the places where they pass their time ----
#
# The generator knows how many requests are in flight; the database's sessions show how many of them are
# there and what they wait for; the processor times of both show how many compute. What is left waits in
# the service.


_READS: Final = frozenset({"BufferIO", "BufferIo"})
"""Waits for a page that another session reads at this moment."""
_KINDS: Final[Mapping[str, PlaceKind]] = {
    "Lock": "locks",
    "IO": "storage",
    "LWLock": "internal locks",
    "BufferPin": "internal locks",
    "IPC": "internal locks",
    IDLE: "idle in transaction",
}
_ALL_BUSY: Final = 0.7
"""Requests in progress for each process from which on all processes are busy."""
_MORE: Final = 2.0
"""Requests in progress for each process from which on processes answer several at a time."""
_QUEUED: Final = 0.25
"""Fraction of the requests in flight that must wait for a process before they form a queue."""


def _kind_of_wait(of_class: str, event: str) -> PlaceKind:
    """Return the place of a busy session by its wait, `of_class` as in `profile.activity.wait_class`."""
    if event in COMMIT_EVENTS:
        return "commit"
    if event in _READS:
        return "storage"
    return _KINDS.get(of_class, "database other")


def time_places(seen: Seen, workers: Sequence[WorkerFacts] = ()) -> tuple[TimePlace, ...]:
    """Return where the requests in flight are, the most frequent place first.

    Without a load of uncork's own, the requests are the busy sessions. `workers` are the service's processes.
    """
    found = dict(_places(seen, one_at_a_time(workers)))
    flying = seen.load.in_flight or sum(found.values())
    mean = seen.load.mean_ns
    places = [
        TimePlace(kind, many, many / flying, mean * many / flying if mean else None)
        for kind, many in found.items()
        if many > 0 and flying
    ]
    return tuple(sorted(places, key=lambda place: -place.requests))


def _places(seen: Seen, processes: int) -> Iterator[tuple[PlaceKind, float]]:
    sessions = seen.sessions
    sums: dict[PlaceKind, float] = {}
    computing = 0.0
    for (of_class, event), many in ({} if sessions is None else sessions.waits).items():
        if of_class == CPU:
            computing += many
        else:
            kind = _kind_of_wait(of_class, event)
            sums[kind] = sums.get(kind, 0.0) + many
    flying = seen.load.in_flight
    busy = computing + sum(sums.values())
    if flying and busy > flying:  # other clients' sessions are not this load's requests
        scale = flying / busy
        computing *= scale
        sums = {kind: many * scale for kind, many in sums.items()}
        busy = flying
    running = computing if seen.database is None else min(computing, seen.database.cpus)
    yield "database cpu", running
    yield "database queue", computing - running
    held = sums.pop("idle in transaction", 0.0)
    yield from sums.items()
    yield from _service(seen.service, held, max(0.0, flying - busy), busy - held, processes)


def _service(
    service: Component | None, held: float, outside: float, inside: float, processes: int
) -> Iterator[tuple[PlaceKind, float]]:
    """Divide the requests that are in the service. `held` of them keep a transaction open meanwhile.

    `inside` is the number of those in the database. If `processes` answer one request at a time and are all
    busy, the other requests queue for them: so whatever computes does so for the requests in progress.
    Otherwise computing and waiting for processors take their parts of both groups alike.
    """
    whole = held + outside
    if not whole:
        return
    running = 0.0 if service is None else min(service.cpus, whole)
    queued = 0.0 if service is None or service.waiting is None else min(service.waiting, whole - running)
    working = max(held, running + queued)
    if processes and _ALL_BUSY <= (inside + working) / processes <= _MORE:
        queue = whole - working
        if queue >= _QUEUED * (whole + inside):
            yield "service cpu", running
            yield "service queue", queued
            yield "idle in transaction", working - running - queued
            yield "process queue", queue
            return
    rest = whole - running - queued
    yield "service cpu", running
    yield "service queue", queued
    yield "idle in transaction", rest * held / whole
    yield "service wait", rest * outside / whole


def with_branches(
    time: Sequence[TimePlace], parsing: float, planning: float, waiting_for_pool: float
) -> tuple[TimePlace, ...]:
    """Take the time of parsing, planning, and waiting for a pooler, out of the places that contain them.

    `parsing` and `planning` are how many sessions parse and plan on average: they compute, or wait
    for a processor. `waiting_for_pool` is how many clients of a pooler wait for a connection: to
    the service, that is a wait.
    """
    found = {place.kind: place for place in time}
    branches: tuple[tuple[PlaceKind, float, tuple[PlaceKind, ...]], ...] = (
        ("database parsing", parsing, ("database cpu", "database queue")),
        ("database planning", planning, ("database cpu", "database queue")),
        ("pool wait", waiting_for_pool, ("service wait", "process queue")),
    )
    for kind, many, sources in branches:
        parts = [found[source] for source in sources if source in found]
        whole = sum(part.requests for part in parts)
        part = min(1.0, many / whole) if whole else 0.0
        if not part:
            continue
        taken = [_scaled(place, part) for place in parts]
        found.update({place.kind: _scaled(place, 1.0 - part) for place in parts})
        found[kind] = TimePlace(
            kind,
            sum(place.requests for place in taken),
            sum(place.share for place in taken),
            None if taken[0].ns is None else sum(place.ns or 0.0 for place in taken),
        )
    return tuple(
        sorted((place for place in found.values() if place.requests), key=lambda place: -place.requests)
    )


def _scaled(place: TimePlace, part: float) -> TimePlace:
    ns = None if place.ns is None else place.ns * part
    return TimePlace(place.kind, place.requests * part, place.share * part, ns)


def foreign_share(seen: Seen) -> float:
    """Return the fraction of the machine's busy processors that programs other than these components use."""
    busy = (seen.machine.busy or 0.0) * seen.machine.processors
    components = (seen.database, seen.service, seen.generator)
    used = sum(component.cpus for component in components if component is not None)
    return max(0.0, busy - used) / busy if busy else 0.0


# ---- functions of a service by request, from stacks ----


WHOLE_PROCESS: Final = "process "
"""How the frame of a whole process begins, with py-spy."""
_WHOLE: Final = (WHOLE_PROCESS, "<module>")
"""How frames begin that every stack of a process or of a thread has."""
_FEWEST: Final = 5
"""Samples from which on functions are reported."""
_LINE: Final = r":\d+\)"
"""The line of a frame of py-spy: functions are added up over their lines."""


def functions_by_request(stacks: pa.Table) -> dict[str, RequestFunctions]:
    """Return the functions of each request; the column `route` of the stacks has its name.

    Requests with too few samples are left out: they hardly use the processor of the service.
    """
    units = dict(zip(stacks["measure"].to_pylist(), stacks["unit"].to_pylist(), strict=True))
    # A profile of Go has its samples both ways: as a count and as time.
    measures = sorted(units, key=lambda name: (name == _ASLEEP, units[name] != "nanoseconds"))
    if not measures or measures[0] == _ASLEEP:
        return {}
    stacks = stacks.filter(pc.equal(stacks["measure"], measures[0]))
    merged = pc.replace_substring_regex(stacks["stack"], _LINE, ")")
    stacks = stacks.set_column(stacks.schema.get_field_index("stack"), "stack", merged)
    found = {
        name: _functions(stacks.filter(pc.equal(stacks["route"], name)), units[measures[0]])
        for name in pc.unique(stacks["route"]).to_pylist()
        if name
    }
    return {name: one for name, one in found.items() if one is not None}


def _functions(stacks: pa.Table, unit: str) -> RequestFunctions | None:
    sums = sum_frames(beside(stacks, None))
    total = sums.total[0]
    samples = samples_of(total, unit)
    frames = [_frame(row, total) for row in sums.frames if not row["name"].startswith(_WHOLE)]
    if samples is None or samples < _FEWEST or not frames:
        return None
    mostly = [frame for frame in frames if frame.total >= _MOSTLY]
    depth = _depths(stacks["stack"].to_pylist())
    return RequestFunctions(
        hottest=max(frames, key=lambda frame: (frame.own, frame.name)),
        mostly=min(mostly, key=lambda one: (one.total, -depth.get(one.name, 0), one.name), default=None),
        samples=samples,
    )


def _depths(stacks: Sequence[str]) -> dict[str, int]:
    """Return how deep each frame is at most: callers often have the same time as what they call."""
    found: dict[str, int] = {}
    for stack in stacks:
        for place, name in enumerate(stack.split(";")):
            found[name] = max(place, found.get(name, 0))
    return found


def _frame(row: dict[str, Any], total: int) -> FrameFacts:
    return FrameFacts(row["name"], row["kernel"], row["own"] / total, row["total"] / total, None, None)


# ---- join requests with the statements that they send, from slices of each request alone ----


Counts = Mapping[int, CountRow]
"""What was counted in one slice, by template."""
_LEAST_CALLS = 0.01
"""Executions for each request below which a template does not belong to it."""


class Join(NamedTuple):
    """The statements of each request, and how well they explain the time when all were sent together."""

    templates: Mapping[str, tuple[SentTemplate, ...]]
    explained: float | None


def join_requests(
    slices: Sequence[SliceRow], counts: Sequence[CountRow], texts: Mapping[int, str], sent: Mapping[str, int]
) -> Join:
    """Return the statements of each request by its name.

    `slices` and `counts` are rows of the tables ``service_slices`` and ``service_counts``; `sent`
    is how often each request was sent while all were sent together.

    The execution time of a template in that time is divided among requests in proportion to their
    executions, each weighed with the mean execution time that it had for that request alone.
    """
    by_slice: dict[int, dict[int, CountRow]] = defaultdict(dict)
    for counted in counts:
        by_slice[counted.slice][counted.template] = counted
    alone: dict[str, list[SliceRow]] = defaultdict(list)
    for row in slices:
        if row.kind == "one":
            alone[row.request].append(row)
    idle = [row for row in slices if row.kind == NONE]
    together = [row for row in slices if row.kind == ALL]
    totals = _sums(by_slice[row.slice] for row in together)
    found: dict[str, dict[int, tuple[Any, ...]]] = defaultdict(dict)
    weights: dict[int, float] = defaultdict(float)
    expected: dict[int, float] = defaultdict(float)
    background = {template: background_rate(_rises(idle, by_slice, template)) for template in texts}
    for name, of in alone.items():
        sums = _sums(by_slice[row.slice] for row in of)
        for template, (calls, execution_ns, rows) in sums.items():
            estimate = per_request(_rises(of, by_slice, template), background[template])
            if estimate is None or estimate.mean < _LEAST_CALLS:
                continue
            call_ns = execution_ns / calls
            found[name][template] = (estimate, rows / calls, call_ns)
            expected[template] += estimate.mean * sent.get(name, 0)
            weights[template] += estimate.mean * sent.get(name, 0) * call_ns
    templates = {
        name: tuple(
            sorted(
                (
                    SentTemplate(
                        template,
                        texts[template],
                        estimate.mean,
                        estimate.low,
                        estimate.high,
                        rows,
                        call_ns,
                        _ns(estimate.mean * call_ns, weights[template], totals.get(template)),
                    )
                    for template, (estimate, rows, call_ns) in of.items()
                ),
                key=lambda sent: -sent.ns,
            )
        )
        for name, of in found.items()
    }
    return Join(templates, _explained(together, totals, expected, background))


def connections_opened(slices: Sequence[SliceRow], name: str) -> float | None:
    """Return how many connections to the database a request opens; None if the server does not count them."""
    counted = [row for row in slices if row.sessions is not None]
    idle = [_began(row) for row in counted if row.kind == NONE]
    found = per_request(
        [_began(row) for row in counted if row.kind == "one" and row.request == name],
        background_rate(idle),
    )
    return None if found is None else found.mean


def _began(row: SliceRow) -> Rise:
    return Rise(row.started, row.elapsed_ns / 1e9, float(row.sessions or 0))


def _ns(alone_ns: float, weight: float, total: tuple[int, float, int] | None) -> float:
    """Return a template's time for each request when all were sent; without such a time, its time alone."""
    return alone_ns if total is None or not weight else alone_ns * total[1] / weight


def _explained(
    together: Sequence[SliceRow],
    totals: Mapping[int, tuple[int, float, int]],
    expected: Mapping[int, float],
    background: Mapping[int, float],
) -> float | None:
    """Return the fraction of executions that requests and background account for, 1 if all are."""
    seconds = sum(row.elapsed_ns for row in together) / 1e9
    seen = sum(calls for calls, _, _ in totals.values())
    if not seen:
        return None
    unlike: float = sum(
        abs(calls - expected.get(template, 0.0) - background.get(template, 0.0) * seconds)
        for template, (calls, _, _) in totals.items()
    )
    return max(0.0, 1.0 - unlike / seen)


def _sums(of: Iterable[Counts]) -> dict[int, tuple[int, float, int]]:
    sums: dict[int, tuple[int, float, int]] = {}
    for rows in of:
        for template, row in rows.items():
            calls, ns, many = sums.get(template, (0, 0.0, 0))
            sums[template] = (calls + row.calls, ns + row.execution_ns, many + row.rows)
    return sums


def _rises(slices: Sequence[SliceRow], by_slice: Mapping[int, Counts], template: int) -> list[Rise]:
    return [
        Rise(
            row.started,
            row.elapsed_ns / 1e9,
            float(by_slice[row.slice][template].calls) if template in by_slice[row.slice] else 0.0,
        )
        for row in slices
    ]
