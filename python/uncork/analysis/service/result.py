"""Build the result of a stored profile of a service."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncork.advise.bottleneck import find_bottlenecks
from uncork.advise.service_rules import HotFunction, find_service_findings
from uncork.analysis.service.functions import WHOLE_PROCESS, functions_by_request
from uncork.analysis.service.places import foreign_share, time_places, with_branches
from uncork.analysis.service.requests import connections_opened, join_requests
from uncork.analysis.service.traces import Traced, join_traces
from uncork.model.bottleneck import DatabaseUse, LoadUse, MachineUse, Seen
from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database import DatabaseResult
from uncork.model.results.load import LoadResult
from uncork.model.results.log import LogResult
from uncork.model.results.service import (
    OriginFacts,
    PoolUse,
    RequestFacts,
    SentTemplate,
    ServiceResult,
    ServiceRunFacts,
    WorkerFacts,
)
from uncork.model.results.stacks import StackResult
from uncork.model.tables.service import SERVICE_TABLES
from uncork.stats.load.stall import waits_for_acknowledgements
from uncork.store.evidence import read_evidence
from uncork.store.layout import Manifest, read_manifest

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

    `routes` is the table of the log with that name, and `log_texts` are its templates. `apart` are the stacks
    that were recorded while one kind of request was sent at a time.
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
    texts = {row["template"]: row["text"] for row in tables["service_templates"].to_pylist()}
    workers = tuple(WorkerFacts(**row) for row in tables["service_processes"].to_pylist())
    pool = _pool(facts["pool"])
    time = () if seen is None else with_branches(time_places(seen, workers), *_branches(parts, pool))
    requests, explained = _requests(tables, texts, parts, facts["trace"])
    bottlenecks = () if seen is None or parts.seen is None else find_bottlenecks(seen)
    if any(place.kind == "process queue" for place in time):  # each process has a connection: no pool is full
        bottlenecks = tuple(bottleneck for bottleneck in bottlenecks if bottleneck.resource != "pool")
    return ServiceResult(
        run=_run(manifest, facts),
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
        load=parts.load,
        database=parts.database,
        code=parts.code,
        log=parts.log,
        pool=pool,
    )


def _run(manifest: Manifest, facts: Mapping[str, Any]) -> ServiceRunFacts:
    return ServiceRunFacts(
        id=manifest.id,
        status=manifest.status,
        started_at=manifest.started_at,
        elapsed_ns=sum(attempt.elapsed_ns for attempt in manifest.attempts),
        server=manifest.server,
        database=facts["database"],
        reproduce=manifest.options.get("command", ""),
        uncork_version=manifest.uncork_version,
    )


def _requests(
    tables: Mapping[str, pa.Table], texts: Mapping[int, str], parts: ServiceParts, trace: str | None
) -> tuple[tuple[RequestFacts, ...], float | None]:
    load = parts.load
    if load is None:
        return (), None
    slices, counts = tables["service_slices"].to_pylist(), tables["service_counts"].to_pylist()
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in slices:
        if row["kind"] == "one":
            sums[row["request"]][0] += row["sum_ns"]
            sums[row["request"]][1] += row["started"] - row["failed"]
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
    """Return what the console of PgBouncer counted; None if it was not read."""
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
    return tuple(sorted((*traced[name].templates, *others), key=lambda one: -one.ns))


def _rows(templates: Sequence[SentTemplate]) -> float | None:
    """Return the rows of one request; None if those of a statement are unknown."""
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
    frame = max(measure.frames, key=lambda one: one.own)
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

    A statement that counts or sums a range of rows is left out: only its values show whether it needs most of
    the table, and then an index cannot help.
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
