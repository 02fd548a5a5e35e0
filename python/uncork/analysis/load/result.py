"""Build the result of a stored load."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from uncork.analysis.database.steps import active_sessions, commit_sessions, waits_of_statements
from uncork.diagnosis.bottleneck import find_bottlenecks
from uncork.errors import StoreError
from uncork.load.merging import MeasuredPart, merged_measurement, quantiles_by_interval
from uncork.load.run import INTERVAL_NS
from uncork.load.sql import merge_histograms
from uncork.model.http import request_text
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.records import build_from
from uncork.model.results.database import DatabaseResult
from uncork.model.results.load import (
    Connections,
    Distribution,
    FailureFacts,
    GeneratorFacts,
    HttpFacts,
    HttpProtocol,
    LoadCounts,
    LoadOfTogether,
    LoadResult,
    LoadRunFacts,
    LoadSettings,
    LoadStep,
    LoadStepName,
    LoginFacts,
    PartFacts,
    PartsFacts,
    ScriptFacts,
    SecondFacts,
    StatementFacts,
    SteadyFacts,
    StepGap,
    TogetherResult,
    TogetherRunFacts,
)
from uncork.model.server import is_local
from uncork.model.system import DATABASE, SERVICE, SystemUse
from uncork.model.tables.load import LoadInterval, LoadTimes
from uncork.profile.system import system_use
from uncork.stats.load.generator import GeneratorLoad, GeneratorVerdict, Lateness, generator_verdict
from uncork.stats.load.parts import disagreements
from uncork.stats.steady import find_steady_part
from uncork.store.layout import Manifest, part_of, read_manifest
from uncork.store.loads import LoadReader
from uncork.store.parts import part_folder, read_merged
from uncork.store.run_documents import Pressed, read_pressed
from uncork.store.system import read_system

_VERSIONS: Final[dict[str, HttpProtocol]] = {
    "1.1": "HTTP/1.1",
    "2": "HTTP/2",
    "3": "HTTP/3",
    "negotiated": "HTTP/2 or HTTP/1.1",
}
CURVE_POINTS = 240
"""Points of a latency curve: enough for a chart as wide as a page."""


def build_load_result(folder: Path) -> LoadResult:
    """Build the result of a stored load.

    Raises:
        StoreError: if its files are damaged, or it has no result yet.
    """
    with closing(LoadReader(folder)) as reader:
        result = load_result(
            reader.manifest,
            reader.plan(),
            reader.measurement(),
            reader.environment(),
            system_use(read_system(folder)),
            read_pressed(folder),
        )
    watch = part_of(folder, "database")
    if watch is not None:
        from uncork.analysis.database.result import stored_database_result  # noqa: PLC0415 -- only with --advise

        seen = stored_database_result(watch)
        result = replace(result, findings=seen.findings, database=seen.run.server)
        watched = watched_of(reader.manifest.options)
        if watched is not None and result.settings.pipeline_depth == 1:
            steps = load_steps(watched, seen)
            gaps = step_gaps(watched, result.settings.protocol) if steps else ()
            result = replace(result, steps=steps, step_gaps=gaps)
    parts = parts_facts(folder, build_load_result)
    if parts is None:
        return result
    # Each part has a verdict of its own; the sum of several generators has none.
    return replace(result, parts=parts, generator=replace(result.generator, limit=None, sentence=""))


def build_measured_result(folder: Path, manifest: Manifest) -> LoadResult:
    """Build the result of a stored load for its metrics: without observations, in a third of the time.

    Raises:
        StoreError: as `build_load_result`.
    """
    with closing(LoadReader(folder, manifest)) as reader:
        return load_result(manifest, reader.plan(), reader.measurement(), reader.environment())


def went_wrong(result: LoadResult) -> bool:
    """Say whether anything failed while a load ran, or nothing succeeded."""
    counts = result.counts
    return bool(
        result.run.outcome is not LoadOutcome.COMPLETE
        or not counts.succeeded
        or counts.failed
        or counts.connect_errors
        or result.connections.lost
        or (result.parts is not None and any(part.ended != "complete" for part in result.parts.parts))
    )


def load_result(
    manifest: Manifest,
    plan: Mapping[str, Any],
    measured: LoadMeasurement,
    environment: dict[str, dict[str, str]],
    system: SystemUse | None = None,
    pressed: Sequence[Pressed] = (),
) -> LoadResult:
    """Build the result of a load from the contents of its run. Pure, except that it decodes histograms."""
    totals, settings = measured.totals, _settings(plan)
    verdict, http = _verdict(plan, measured, environment, system), totals.http is not None
    operation = _distribution(_of(measured, "operation"))
    series = tuple(_series(measured))
    opened = totals.connections_opened
    return LoadResult(
        run=build_from(
            LoadRunFacts,
            manifest,
            outcome=totals.outcome,
            message=totals.message,
            elapsed_ns=totals.elapsed_ns,
            reproduce=str(manifest.options.get("command", "uncork load sql")),
            start_late_ns=totals.start_late_ns,
        ),
        answer="",
        warnings=(),
        settings=settings,
        operations_per_second=totals.succeeded / (totals.elapsed_ns / 1e9) if totals.elapsed_ns else 0.0,
        counts=build_from(
            LoadCounts,
            totals,
            errors=dict(totals.errors),
            connect_errors=dict(totals.connect_errors),
            retries=dict(totals.retries),
            failures=tuple(FailureFacts(**asdict(failure)) for failure in totals.failures),
        ),
        operation=operation,
        service=_distribution(_of(measured, "service")) if settings.open_loop else operation,
        lateness=_distribution(_of(measured, "lateness")) if settings.open_loop else None,
        connect=_distribution(_of(measured, "connect")),
        connections=Connections(
            opened=opened,
            lost=totals.connections_lost,
            most=totals.connections_most,
            mean_ns=totals.connect_sum_ns / opened if opened else None,
            max_ns=totals.connect_max_ns if opened else None,
        ),
        generator=build_from(
            GeneratorFacts,
            totals,
            user_ns=totals.client_user_ns,
            system_ns=totals.client_system_ns,
            limit=None if verdict is None else verdict.limit,
            # The option for threads has h2load's name there.
            sentence="" if verdict is None else verdict.reason.replace("(-j ", "(-t " if http else "(-j "),
        ),
        scripts=tuple(_scripts(plan, measured)),
        statements=tuple(_statements(measured.times)),
        series=series,
        environment=environment,
        system=system,
        http=_http(measured),
        bottlenecks=tuple(bottleneck for at in pressed for bottleneck in find_bottlenecks(at.seen)),
        missing=(
            *(lacking for at in pressed for lacking in at.missing),
            *manifest.options.get("not_watched", ()),
        ),
        steady=steady_facts(series, measured.series, open_loop=settings.open_loop),
    )


def _http(measured: LoadMeasurement) -> HttpFacts | None:
    totals, found = measured.totals, measured.totals.http
    if found is None:
        return None
    failed = sum(number for kind, number in totals.errors.items() if kind.startswith(("status ", "check ")))
    timed_out = totals.errors.get("timed out", 0)
    tls = _of(measured, "tls")
    return build_from(
        HttpFacts,
        found,
        not_started=max(0, (found.planned or 0) - totals.started - totals.skipped),
        failed=failed,
        errored=sum(totals.errors.values()) - failed - timed_out,
        timed_out=timed_out,
        cut_short=totals.failed - sum(totals.errors.values()),
        statuses=dict(found.statuses),
        first_byte=_distribution(_of(measured, "first byte")),
        tls=None if tls is None else _distribution(tls),
        logins=tuple(
            LoginFacts(row.name, row.executions, row.errors, _distribution(row))
            for row in measured.times
            if row.kind == "login"
        ),
    )


def _settings(plan: Mapping[str, Any]) -> LoadSettings:
    arrivals, stop = plan["arrivals"] or {}, plan["stop"]
    clients, http = plan["clients"], plan.get("http") or {}
    each = stop.get("operations_each")
    if not http and each is None and arrivals.get("kind") not in (None, "trace") and "operations" in stop:
        each = stop["operations"] // clients
    return LoadSettings(
        clients=clients,
        max_clients=plan["max_clients"] or clients,
        threads=plan["threads"],
        protocol=_VERSIONS[http["version"]] if http else plan["protocol"],
        pipeline_depth=plan["pipeline_depth"],
        arrivals=arrivals.get("kind"),
        rate=arrivals.get("rate"),
        burst_size=arrivals.get("size"),
        latency_limit_ns=plan["latency_limit_ns"],
        max_tries=plan.get("max_tries", 1),
        connect_each=plan["connect_each"],
        operations_each=each,
        duration_ns=stop.get("duration_ns"),
        seed=plan["seed"],
        variables=dict(plan.get("variables", {})),
        operations=stop.get("operations") if http else None,
        request_timeout_ns=http.get("request_timeout_ns"),
        on_close=plan["on_lost"] if http else None,
        warmup_ns=plan["warmup_ns"],
        recorded=_recorded(plan),
    )


def _recorded(plan: Mapping[str, Any]) -> Literal["replay", "mix"] | None:
    recorded = plan.get("recorded")
    if recorded is None:
        return None
    return "replay" if recorded["clients"] else "mix"


def _verdict(
    plan: Mapping[str, Any],
    measured: LoadMeasurement,
    environment: Mapping[str, Mapping[str, str]],
    system: SystemUse | None,
) -> GeneratorVerdict | None:
    """Judge whether the generator was the bottleneck; None if nothing was measured."""
    totals, clients = measured.totals, measured.totals.connections_most
    if not totals.elapsed_ns or not clients:
        return None
    operation, service = _of(measured, "operation"), _of(measured, "service")
    late = _of(measured, "lateness")
    server = None
    if totals.server_user_ns is not None and totals.server_system_ns is not None:
        server = totals.server_user_ns + totals.server_system_ns
    elif system is not None and any(process.role == SERVICE for process in system.processes):
        server = system.cpu_ns(SERVICE) + system.cpu_ns(DATABASE)
    lateness = None
    if plan["arrivals"] is not None:
        found = _distribution(late)
        lateness = Lateness(found.count, found.p99_ns or 0, found.p999_ns or 0)
    load = build_from(
        GeneratorLoad,
        totals,
        clients=clients,
        threads=min(plan["threads"], clients),
        cpus=int(environment.get("machine", {}).get("processors", "1")),
        generator_ns=totals.client_user_ns + totals.client_system_ns,
        server_ns=server,
        local=is_local(str((plan.get("http") or plan["connection"])["host"])),
        operations=totals.succeeded,
        latency_p99_ns=None if operation is None else operation.p99_ns,
        service_p99_ns=None if service is None else service.p99_ns,
        lateness=lateness,
    )
    return generator_verdict(load)


# ---- times ----


def _of(measured: LoadMeasurement, kind: str) -> LoadTimes | None:
    return next((row for row in measured.times if row.kind == kind), None)


def _distribution(row: LoadTimes | None) -> Distribution:
    succeeded = 0 if row is None else row.executions - row.errors
    if row is None or succeeded <= 0 or row.p50_ns is None:
        return Distribution(0)
    mean = row.sum_ns / succeeded
    return build_from(
        Distribution,
        row,
        count=succeeded,
        mean_ns=mean,
        stddev_ns=math.sqrt(max(0.0, row.sum_squares_ns2 / succeeded - mean * mean)),
        points=_thinned(merge_histograms([row.histogram])) if row.histogram else (),
    )


def _thinned(points: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Keep points evenly along the axis on which quantiles are drawn, so that the tail keeps its own."""
    kept: list[tuple[float, float]] = []
    step = -math.log10(1 - points[-2][0]) / CURVE_POINTS if len(points) > CURVE_POINTS else 0.0
    reached = -math.inf
    for quantile, value in points[:-1]:
        place = -math.log10(1 - quantile)
        if place >= reached:
            kept.append((quantile, value))
            reached = place + step
    return (*kept, *points[-1:])


def _scripts(plan: Mapping[str, Any], measured: LoadMeasurement) -> Iterator[ScriptFacts]:
    in_order = plan.get("order") == "sequential"
    weights = {script["name"]: 1 if in_order else script["weight"] for script in plan["scripts"]}
    rows = {row.script: row for row in measured.times if row.kind == "script"}
    http = measured.totals.http
    requests = {} if http is None else {request.name: request for request in http.requests}
    for script in plan["scripts"]:
        row, counts = rows.get(script["name"]), requests.get(script["name"])
        yield ScriptFacts(
            name=script["name"],
            weight=script["weight"],
            share=weights[script["name"]] / sum(weights.values()),
            text=request_text(script["request"]) if "request" in script else script["text"],
            executions=0 if row is None else row.executions,
            errors=0 if row is None else row.errors,
            latency=_distribution(row),
            sent_bytes=None if counts is None else counts.sent_bytes,
            received_bytes=None if counts is None else counts.received_bytes,
            errors_by_kind={} if counts is None else dict(counts.errors),
            examples={} if counts is None else dict(counts.examples),
        )


def _statements(times: Sequence[LoadTimes]) -> Iterator[StatementFacts]:
    for row in times:
        if row.kind == "statement":
            latency = _distribution(row)
            yield StatementFacts(
                row.script, row.line, row.name, row.executions, row.errors, row.rows, latency
            )


def _series(measured: LoadMeasurement) -> Iterator[SecondFacts]:
    """Yield every interval of the measured part, also empty ones, for which no row is stored."""
    elapsed_ns = measured.totals.elapsed_ns
    rows: dict[int, list[LoadInterval]] = defaultdict(list)
    answers: dict[int, dict[str, int]] = defaultdict(dict)
    for row in measured.series:
        rows[row.start_ns].append(row)
    for status in measured.statuses:
        answers[status.start_ns][str(status.status)] = status.answers
    silent = range(0, elapsed_ns, INTERVAL_NS) if rows else ()
    for start in sorted({*rows, *answers, *silent}):
        scripts = rows[start]
        points = merge_histograms([row.histogram for row in scripts if row.histogram])
        yield SecondFacts(
            start_ns=start,
            length_ns=max(1, min(INTERVAL_NS, elapsed_ns - start)),
            started=sum(row.started for row in scripts),
            succeeded=sum(row.succeeded for row in scripts),
            failed=sum(row.failed for row in scripts),
            skipped=sum(row.skipped for row in scripts),
            retries=sum(row.retries for row in scripts),
            p50_ns=_at(points, 0.5),
            p99_ns=_at(points, 0.99),
            max_ns=_at(points, 1.0),
            statuses=answers[start],
        )


def _at(points: Sequence[tuple[float, float]], quantile: float) -> int | None:
    """Return the smallest value known to cover the quantile; None if there are no points."""
    return next((round(value) for q, value in points if q >= quantile), None)


# ---- divide the time of a load's transactions by step ----


_MOST: Final = 1.15
"""Statements that a source may count for each statement of the load; more are of other clients."""
_LEAST_POOLED: Final = 0.85
_LEAST_LOGGED: Final = 0.75
"""Fractions of the load's statements that PgBouncer and the log must have at least. A log whose times are
whole seconds lacks up to one of five seconds."""
_LEAST_BOUND: Final = 0.9
"""Durations of bind for each execution in a log that has all; one with a threshold lacks the short ones."""


@dataclass(frozen=True, slots=True)
class WatchedLoad:
    """What was counted while a load was watched.

    `load` is what the clients saw, `pool` what PgBouncer's console counted for the load's database, and `log`
    the durations in the server's log by kind; both are None unless they were read. `path` says whether the
    load goes through a pooler, and how long an empty statement takes on its way; empty if unknown.
    """

    load: Mapping[str, int]
    pool: Mapping[str, float] | None = None
    log: Mapping[str, Mapping[str, int]] | None = None
    path: Mapping[str, Any] = field(default_factory=dict)


def watched_of(options: Mapping[str, Any]) -> WatchedLoad | None:
    """Return what a manifest's options hold of a load that was watched; None if it was not."""
    load = options.get("watched_load")
    if load is None:
        return None
    path = options.get("load_path", {})
    return WatchedLoad(load, options.get("watched_pool"), options.get("watched_log"), path)


def load_steps(watched: WatchedLoad, database: DatabaseResult) -> tuple[LoadStep, ...]:
    """Return where the time of a transaction went while the load was watched. The steps add up to the whole.

    No step exceeds what the steps before it left. Empty if pg_stat_statements was not read, or if other
    clients sent statements too. The load must not have several transactions in flight on a connection.
    """
    load, counted = watched.load, database.counted
    whole_ns, operations = load["operations_ns"], load["operations"]
    if counted is None or not operations or not whole_ns:
        return ()
    elapsed_us = load["elapsed_ns"] / 1000
    begun_us = load["ended_us"] - elapsed_us
    seen_us = min(load["ended_us"], counted.ended_us) - max(begun_us, counted.begun_us)
    if seen_us <= 0 or counted.calls * elapsed_us / seen_us > _MOST * load["statements"]:
        return ()

    def steps() -> Iterator[tuple[LoadStepName, float]]:
        rate = elapsed_us / seen_us
        yield "generator", float(max(0, whole_ns - load["statements_ns"]))
        if watched.pool is not None and _pool_gap(watched) is None:
            yield "pool", watched.pool["wait_us"] * 1000
        trip_ns = watched.path.get("round_trip_ns") or database.watch.round_trip_ns
        if trip_ns is not None:
            yield "network", load["round_trips"] * trip_ns
        committing = commit_sessions(database.tree) * load["elapsed_ns"]
        yield "commit", committing
        planning = (counted.planning_ns or 0.0) * rate
        parsing, binding = _logged(watched, planning)
        if parsing is not None and binding is not None:
            yield "parse", parsing
            yield "bind", binding
        if counted.planning_ns is not None:
            yield "plan", planning
        active = active_sessions(database.tree) * load["elapsed_ns"]
        known = committing + planning + counted.execution_ns * rate + (parsing or 0.0) + (binding or 0.0)
        executing = counted.execution_ns * rate
        for wait, sessions in waits_of_statements(database.tree):
            inside = min(executing, sessions * load["elapsed_ns"])
            executing -= inside
            yield wait, inside
        yield "execute", executing
        yield "server", max(0.0, active - known)

    left, found = float(whole_ns), []
    for name, ns in steps():
        taken = min(ns, left)
        left -= taken
        found.append(LoadStep(name, taken / operations, taken / whole_ns))
    return (*found, LoadStep("unknown", left / operations, left / whole_ns))


def _logged(watched: WatchedLoad, planning: float) -> tuple[float | None, float | None]:
    """Return the time of parsing, and of binding without `planning`, from the log; None if unknown.

    The log may lack the statements of a moment, so the durations of those it has stand for all.
    """
    log = watched.log
    if log is None or _log_gap(watched, log) is not None:
        return None, None
    for_all = watched.load["statements"] / log["execute"]["count"]
    return log["parse"]["ns"] * for_all, max(0.0, log["bind"]["ns"] * for_all - planning)


# ---- what no source counted ----


def step_gaps(watched: WatchedLoad, protocol: str) -> tuple[StepGap, ...]:
    """Return the steps that no source counted. `protocol` is the load's."""
    if protocol == "simple":
        parse: StepGap | None = StepGap("parse", "simple protocol")
    elif watched.log is None:
        parse = StepGap("parse", "no source")
    else:
        parse = _log_gap(watched, watched.log)
    return tuple(gap for gap in (_pool_gap(watched), parse) if gap is not None)


def _pool_gap(watched: WatchedLoad) -> StepGap | None:
    if watched.pool is None:
        return StepGap("pool", "no source") if watched.path.get("pooled") else None
    seen, sent = round(watched.pool["queries"]), watched.load["round_trips"]
    if seen < _LEAST_POOLED * sent:
        return StepGap("pool", "incomplete", seen, sent)
    return StepGap("pool", "others", seen, sent) if seen > _MOST * sent else None


def _log_gap(watched: WatchedLoad, log: Mapping[str, Mapping[str, int]]) -> StepGap | None:
    """Return why a log does not have the time of parsing of the load's statements; None if it has."""
    executed, sent = log["execute"]["count"], watched.load["statements"]
    seen = executed + log["statement"]["count"]
    if log["untold"]["count"] > seen:
        return StepGap("parse", "unlabelled", seen, sent)
    if seen > _MOST * sent:
        return StepGap("parse", "others", seen, sent)
    if log["statement"]["count"] > executed:
        return StepGap("parse", "simple protocol", seen, sent)
    if not executed or seen < _LEAST_LOGGED * sent or log["bind"]["count"] < _LEAST_BOUND * executed:
        return StepGap("parse", "incomplete", seen, sent)
    return None


# ---- what a merged load knows about its parts ----


_COMPARED: Final = {"p50": 0.5, "p99": 0.99}


def parts_facts(folder: Path, build: Callable[[Path], LoadResult]) -> PartsFacts | None:
    """Return the parts of a stored load; None if it was not merged. `build` reads a part's own result.

    Raises:
        StoreError: if a part is damaged.
    """
    merged = read_merged(folder)
    if merged is None:
        return None
    stored = {part["number"]: part for part in merged["parts"] if part["stored"]}
    results = {number: build(part_folder(folder, number)) for number in stored}
    measured = {number: _measured(part_folder(folder, number)) for number in stored}
    with closing(LoadReader(folder)) as reader:
        alike = _equal_clients(reader.plan())
    factors = _factors({number: (measured[number], one["shift"]) for number, one in stored.items()}, alike)
    parts = tuple(_part(part, results.get(part["number"]), factors) for part in merged["parts"])
    others = [
        MeasuredPart(part.number, measured[part.number], stored[part.number]["shift"])
        for part in parts
        if part.number in stored and part.limit != "yes"
    ]
    without = _figures(others) if others and len(others) < len(stored) else None
    return PartsFacts(merged["count"], parts, without)


def _measured(folder: Path) -> LoadMeasurement:
    with closing(LoadReader(folder)) as reader:
        return reader.measurement()


def _part(
    account: Mapping[str, Any], result: LoadResult | None, factors: Mapping[int, dict[str, float]]
) -> PartFacts:
    number, node = account["number"], account.get("node")
    lost = None if node is None else node["lost"]
    if result is None:
        ended, seconds = "missing" if lost is None else "lost", 0.0
    else:
        ended = str(result.run.outcome) if account["finished"] else "killed" if lost is None else "lost"
        seconds = (account["shift"] * INTERVAL_NS + result.run.elapsed_ns) / 1e9
    return PartFacts(
        number=number,
        run=account.get("run"),
        host=account.get("host") or ("" if node is None else node["host"]),
        ended=ended,
        seconds=seconds,
        planned=account["planned"],
        started=account["started"],
        not_started=account["not_started"],
        unknown=account["unknown"],
        start_late_ns=None if result is None else result.run.start_late_ns,
        began_after_ns=account.get("began_after_ns"),
        # Nothing is known about the generator of a part that was killed.
        limit=result.generator.limit if result is not None and account["finished"] else None,
        operations_per_second=0.0 if result is None else result.operations_per_second,
        p50_ns=None if result is None else result.operation.p50_ns,
        p99_ns=None if result is None else result.operation.p99_ns,
        disagrees=factors.get(number, {}),
        **_node_facts(node),
    )


def _node_facts(node: Mapping[str, Any] | None) -> dict[str, Any]:
    if node is None:
        return {}
    return {
        "clock_offset_ns": node["offset_ns"],
        "clock_bound_ns": node["bound_ns"],
        "clock_drift_ns": node["drift_ns"],
        "lost": node["lost"],
        "lost_s": None if node["lost"] is None else node["lost_ns"] / 1e9,
    }


def _equal_clients(plan: Mapping[str, Any]) -> bool:
    """Return whether each part of a closed loop has as many clients, so that their throughputs are alike."""
    return plan.get("arrivals") is None and plan["clients"] % plan["threads"] == 0


def _factors(
    parts: Mapping[int, tuple[LoadMeasurement, int]], equal_clients: bool
) -> dict[int, dict[str, float]]:
    """Return the parts that disagree, and by which factors they differ from the others.

    Their quantiles are compared, and their throughputs if all have `equal_clients` in a closed loop.
    Only whole intervals are compared: the last one of a part is usually shorter. Nothing is compared if every
    part left arrivals unsent: then latencies grow with each part's queue, and queues differ by chance.
    """
    if all(part.totals.unsent for part, _ in parts.values()):
        return {}
    whole = [shift + part.totals.elapsed_ns // INTERVAL_NS for part, shift in parts.values()]
    intervals = max(whole, default=0)
    values = {
        number: quantiles_by_interval(measured, intervals, shift, list(_COMPARED.values()))
        for number, (measured, shift) in parts.items()
    }
    by_name: dict[str, dict[int, list[int | None]]] = {
        name: {number: several[place] for number, several in values.items()}
        for place, name in enumerate(_COMPARED)
    }
    if equal_clients:
        by_name["throughput"] = {
            number: _throughputs(measured, intervals, shift) for number, (measured, shift) in parts.items()
        }
    found: dict[int, dict[str, float]] = {}
    for disagreement in disagreements(by_name):
        found.setdefault(disagreement.part, {})[disagreement.quantile] = disagreement.factor
    return found


def _throughputs(measured: LoadMeasurement, intervals: int, shift: int) -> list[int | None]:
    found = Counter[int]()
    for row in measured.series:
        found[row.interval + shift] += row.succeeded
    return [found[interval] or None for interval in range(intervals)]


def _figures(parts: list[MeasuredPart]) -> tuple[float, int | None, int | None]:
    found = merged_measurement(parts)
    seconds = found.totals.elapsed_ns / 1e9
    row = next((time for time in found.times if time.kind == "operation"), None)
    rate = found.totals.succeeded / seconds if seconds else 0.0
    return rate, None if row is None else row.p50_ns, None if row is None else row.p99_ns


# ---- loads that started together ----


def build_together_result(folder: Path) -> TogetherResult:
    """Build the result of a run whose loads started together; loads that measured nothing are left out.

    Raises:
        StoreError: if its files are damaged, or it has no result yet.
    """
    manifest = read_manifest(folder)
    loads = []
    for name in manifest.options.get("loads", ()):
        part = part_of(folder, name)
        if part is not None and (part / "load_totals").is_dir():
            loads.append(LoadOfTogether(name, build_load_result(part)))
    if not loads:
        raise StoreError(f"run {manifest.id} has no result: it is running, or was killed before its end")
    late = [load.load.run.start_late_ns for load in loads if load.load.run.start_late_ns is not None]
    return TogetherResult(
        run=build_from(
            TogetherRunFacts,
            manifest,
            reproduce=str(manifest.options.get("command", "uncork load together")),
        ),
        answer="",
        warnings=(),
        apart_ns=max(late) - min(late) if late else 0,
        loads=tuple(loads),
    )


# ---- whether a load was steady, and its metrics over the steady part ----


_NOTHING = 0.5
"""A second without success counts as this many successes, because 0 has no logarithm."""


def steady_facts(
    seconds: Sequence[SecondFacts], intervals: Sequence[LoadInterval], *, open_loop: bool
) -> SteadyFacts | None:
    """Return whether a load was steady; None if it has too few whole seconds to judge.

    A closed loop is judged by its throughput. An open loop has the throughput that was asked for, so it is
    judged by the median latency of each second; seconds without success do not count there.
    """
    whole = [second for second in seconds if second.length_ns == INTERVAL_NS]
    if open_loop:
        whole = [second for second in whole if second.p50_ns]
        values = [math.log(second.p50_ns or 1) for second in whole]
    else:
        values = [math.log(second.succeeded or _NOTHING) for second in whole]
    found = find_steady_part(values)
    if found.verdict == "unknown" or not any(second.succeeded for second in whole):
        return None
    start_ns = None if found.start is None else whole[found.start].start_ns
    facts = SteadyFacts(
        verdict=found.verdict,
        metric="p50" if open_loop else "throughput",
        seconds=len(whole),
        start_ns=start_ns,
    )
    if found.verdict != "warm-up" or start_ns is None:
        return facts
    kept = [second for second in whole if second.start_ns >= start_ns]
    if not any(second.succeeded for second in kept):
        return None  # the server went away: what came before was no warm-up
    later = (interval.histogram for interval in intervals if interval.start_ns >= start_ns)
    points = merge_histograms([histogram for histogram in later if histogram])
    return SteadyFacts(
        verdict="warm-up",
        metric=facts.metric,
        seconds=facts.seconds,
        start_ns=start_ns,
        operations_per_second=sum(second.succeeded for second in kept) / (len(kept) * INTERVAL_NS / 1e9),
        p50_ns=_at_quantile(points, 0.5),
        p99_ns=_at_quantile(points, 0.99),
    )


def _at_quantile(points: Sequence[tuple[float, float]], quantile: float) -> int | None:
    return next((round(value) for q, value in points if q >= quantile), None)
