"""Build the result of a stored profile of a service."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncork.advise.bottleneck import find_bottlenecks
from uncork.advise.service_rules import HotFunction, find_service_findings
from uncork.analysis.service.places import foreign_share, time_places
from uncork.analysis.service.requests import connections_opened, join_requests
from uncork.model.bottleneck import DatabaseUse, LoadUse, MachineUse, Seen
from uncork.model.results.database import DatabaseResult
from uncork.model.results.load import LoadResult
from uncork.model.results.log import LogResult
from uncork.model.results.service import (
    OriginFacts,
    RequestFacts,
    ServiceResult,
    ServiceRunFacts,
    WorkerFacts,
)
from uncork.model.results.stacks import StackResult
from uncork.model.tables.service import SERVICE_TABLES
from uncork.stats.load.stall import waits_for_acknowledgements
from uncork.store.evidence import read_evidence
from uncork.store.layout import Manifest, read_manifest

__all__ = ["ServiceParts", "stored_service_result"]

_MOST_ORIGINS: Final = 50
_PAUSE_NS: Final = 40e6
"""Linux delays an acknowledgement by 40 ms."""
_ASLEEP: Final = "off-cpu"
_SUMS: Final = re.compile(r"\b(?:count|sum|avg|min|max|array_agg|string_agg) ?\(|\bgroup by\b")
_RANGE: Final = re.compile(r"<|>|\bbetween\b|\bi?like\b|~")
_MOSTLY: Final = 0.5
_PROCESS: Final = "process "
"""How the frame of a whole process begins, with py-spy."""


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """The parts of a profile that are runs of their own; None if they were not recorded."""

    load: LoadResult | None
    database: DatabaseResult | None
    code: StackResult | None
    log: LogResult | None
    seen: Seen | None
    activity: pa.Table | None


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
    time = () if seen is None else time_places(seen, workers)
    requests, explained = _requests(tables, texts, parts.load)
    bottlenecks = () if seen is None or parts.seen is None else find_bottlenecks(seen)
    if any(one.kind == "process queue" for one in time):  # each process has a connection: no pool is full
        bottlenecks = tuple(one for one in bottlenecks if one.resource != "pool")
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
            connect_ns=facts.get("connect_ns"),
        ),
        bottlenecks=bottlenecks,
        in_flight=None if parts.seen is None else parts.seen.load.in_flight,
        mean_ns=None if parts.seen is None else parts.seen.load.mean_ns,
        time=time,
        requests=requests,
        explained=explained,
        workers=workers,
        origins=_origins(parts.activity, parts.database),
        missing=tuple(facts["missing"]),
        load=parts.load,
        database=parts.database,
        code=parts.code,
        log=parts.log,
    )


def _run(manifest: Manifest, facts: Mapping[str, Any]) -> ServiceRunFacts:
    return ServiceRunFacts(
        id=manifest.id,
        status=manifest.status,
        started_at=manifest.started_at,
        elapsed_ns=sum(one.elapsed_ns for one in manifest.attempts),
        server=manifest.server,
        database=facts["database"],
        reproduce=manifest.options.get("command", ""),
        uncork_version=manifest.uncork_version,
    )


def _requests(
    tables: Mapping[str, pa.Table], texts: Mapping[int, str], load: LoadResult | None
) -> tuple[tuple[RequestFacts, ...], float | None]:
    if load is None:
        return (), None
    slices, counts = tables["service_slices"].to_pylist(), tables["service_counts"].to_pylist()
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in slices:
        if row["kind"] == "one":
            sums[row["request"]][0] += row["sum_ns"]
            sums[row["request"]][1] += row["started"] - row["failed"]
    scripts = {one.name: one for one in load.scripts}
    sent = {name: one.executions for name, one in scripts.items()}
    join = join_requests(slices, counts, texts, sent)
    found = []
    for name, script in scripts.items():
        templates = join.templates.get(name, ())
        known = bool(slices) and sums[name][1] > 0
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
                statements=sum(one.calls for one in templates) if known else None,
                rows=sum(one.calls * one.rows for one in templates) if known else None,
                database_ns=sum(one.ns for one in templates) if known else None,
                templates=templates,
                connections=connections_opened(slices, name),
            )
        )
    found.sort(key=lambda one: -(one.mean_ns or 0.0) * one.sent)
    return tuple(found), join.explained


def _without_load(database: DatabaseResult | None) -> Seen | None:
    """Return what the database's sessions did, as if they were the requests in flight."""
    if database is None or not database.tree.sessions:
        return None
    waits: dict[tuple[str, str], float] = defaultdict(float)
    for of_class in database.tree.children:
        events = [one for one in of_class.children if one.kind == "event"]
        for one in events:
            waits[of_class.name, one.name] += one.sessions
        waits[of_class.name, ""] += max(0.0, of_class.sessions - sum(one.sessions for one in events))
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
    measure = next((one for one in code.measures if one.frames and one.name != _ASLEEP), None)
    if measure is None:
        return None
    frame = max(measure.frames, key=lambda one: one.own)
    mostly = [one for one in measure.frames if one.total >= _MOSTLY and not one.name.startswith(_PROCESS)]
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
    texts = {one.number: one.text for one in database.templates}
    found = {
        texts[number]: one.objects[0]
        for one in database.findings
        if one.rule == "missing-index" and one.objects
        for number in one.templates
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
