"""Build the result of logs from what was read of them."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from uncork.analysis.log.activity import (
    added_up,
    checkpoint_work_of,
    errors_of,
    filter_of,
    hours_of,
    named_series,
    nanoseconds,
    peak_of,
    query_ids_of,
    servers_of,
    sessions_of,
    several,
    slowest_of,
    vacuum_work_of,
)
from uncork.analysis.log.contributions import (
    COUNTED,
    contributions,
    kind_of,
    kinds_of,
    of_template,
    routes_of,
)
from uncork.analysis.log.evidence import WITH_PLAN, costly_parts_of_log, evidence_of_log, executed_plans
from uncork.diagnosis.findings import find_findings
from uncork.diagnosis.log_loops import is_loop, is_pipeline
from uncork.model.database.missing import Missing
from uncork.model.records import build_from
from uncork.model.results.costly_parts import unexplained_part
from uncork.model.results.log import (
    Blocking,
    Example,
    FileFacts,
    Incident,
    Lists,
    LogLoop,
    LogResult,
    LogRunFacts,
    LogServer,
    LogTimes,
    LoopTemplate,
    NameCount,
    NamedSeries,
    Point,
    PoolConnections,
    PoolFacts,
    RejectedLine,
    Repetition,
    ServerFacts,
    Tally,
    TemplateFacts,
    TransactionFacts,
    Updates,
)
from uncork.model.tables.log import (
    HISTOGRAM_COLUMNS,
    LOG_TABLES,
    ActivityRow,
    ExampleRow,
    FailedStatementRow,
    IncidentRow,
    LoopRow,
    OriginRow,
    PoolRow,
    RepeatedUpdatesRow,
    SeriesRow,
    TemplateRow,
    TransactionRow,
)
from uncork.store.layout import Manifest, read_manifest
from uncork.store.tables import read_evidence, typed_rows

MOST_TEMPLATES: Final = 2_000
"""The most templates of a result; the tables of the run hold all of them."""
MOST_SERIES = 100
"""Templates whose executions over time are kept."""
_MOST_NAMES = 100
"""Kinds of transactions that a report shows."""
_NAMES: Final = ("application", "user", "database", "host")
_FACTS: Final = (
    *("first_us", "last_us", "bucket_s", "template_bucket_s", "hour_s", "entries", "outside", "foreign"),
    *("rejected", "rare", "anonymous", "events", "own", "untimed"),
)
"""Facts of reading the logs that a result has as they are."""

Row = Mapping[str, Any]
Tables = Mapping[str, pa.Table]
OfTemplate = TypeVar("OfTemplate", OriginRow, ExampleRow, FailedStatementRow)


def log_result(
    run: LogRunFacts, facts: Mapping[str, Any], tables: Tables, also: Collection[str] = ()
) -> LogResult:
    """Build the result of logs from the facts and tables of reading them. Pure.

    It has the templates with the most time, and those of `also`, by their `template_key`.
    """
    templates = tables["log_templates"]
    columns = templates.select(["template", "text", *COUNTED]).to_pydict()
    total = sum(columns["sum_us"])
    files = [FileFacts(**file) for file in facts["files"]]
    servers: tuple[LogServer, ...] = ()
    server_series: tuple[NamedSeries, ...] = ()
    if several(facts):
        servers = servers_of(facts, tables, files, columns["text"], total)
        server_series = named_series(tables["log_series"], "execution", "server")
        tables = added_up(tables)
    order = _order(columns, _also(templates, also))
    shown = templates.take(pa.array(order, pa.int64()))
    points = _points(tables["log_series"], [columns["template"][at] for at in order[:MOST_SERIES]])
    begin, timelines = _timelines(tables["log_series"], facts["template_bucket_s"], shown["template"])
    executed = LogTimes(sum(columns["executions"]), total * 1000, max(columns["max_us"], default=0) * 1000)
    origins = tables["log_origins"]
    names = origins.select([*_NAMES, *COUNTED]).to_pydict()
    errors = errors_of(tables["log_errors"], by_server=several(facts))
    quantiles = facts["quantiles_us"] or (None, None, None)
    found = LogResult(
        **{name: facts[name] for name in _FACTS},
        skipped=tuple(facts["skipped"]),
        other_servers=tuple(facts["other_servers"]),
        withheld=tuple(facts["withheld"]),
        run=run,
        answer="",
        reasons=(),
        warnings=(),
        files=tuple(files),
        timeline_us=begin,
        rejected_lines=tuple(
            RejectedLine(files[rejected_line["file"]].name, rejected_line["line"], rejected_line["text"])
            for rejected_line in facts["rejected_lines"]
        ),
        executions=executed,
        parse=_times(facts["steps"]["parse"]),
        bind=_times(facts["steps"]["bind"]),
        untold=_times(facts["steps"]["untold"]),
        histogram=tuple(sum(templates[name].to_pylist()) for name in HISTOGRAM_COLUMNS),
        series=points[None],
        application_series=_application_series(tables["log_series"]),
        templates=tuple(_templates(tables, shown, points, timelines, files, total, by_server=bool(servers))),
        templates_more=len(columns["template"]) - len(order),
        applications=contributions(names["application"], names, total),
        users=contributions(names["user"], names, total),
        databases=contributions(names["database"], names, total),
        hosts=contributions(names["host"], names, total),
        kinds=kinds_of(columns, total),
        transactions=tuple(_transactions(tables["log_transactions"])),
        errors=tuple(error for error in errors if error.severity in _BAD),
        notices=tuple(error for error in errors if error.severity not in _BAD),
        server=_server(facts, tables, columns["text"]),
        blocking=blocking_of(tables["log_blocking"], columns["text"]),
        pool=pool_facts(facts["pool"], tables["log_pool"]),
        p50_ns=nanoseconds(quantiles[0]),
        p95_ns=nanoseconds(quantiles[1]),
        p99_ns=nanoseconds(quantiles[2]),
        peak=peak_of(facts),
        slowest=slowest_of(tables["log_slowest"], files),
        hours=hours_of(tables["log_hours"], tables["log_series"], facts["hour_s"]),
        sessions=sessions_of(facts, tables["log_sessions"]),
        filters=filter_of(facts),
        servers=servers,
        server_series=server_series,
        loops=loops_of(tables["log_loops"], columns["text"], columns["executions"], by_server=several(facts)),
        routes=routes_of(tables["log_routes"], origins, columns["text"], total),
    )
    findings = find_findings(evidence_of_log(found))
    found = replace(found, findings=findings, costliest=costly_parts_of_log(found, findings))
    return replace(found, missing=missing_of_log(found))


_BAD = {"WARNING", "ERROR", "FATAL", "PANIC"}


def _times(row: Row) -> LogTimes:
    return LogTimes(row["count"], row["sum"] * 1000, row["max"] * 1000)


def _points(table: pa.Table, numbers: Sequence[int]) -> Mapping[int | None, tuple[Point, ...]]:
    kinds, templates = table["kind"], table["template"]
    wanted = pc.or_kleene(
        pc.equal(kinds, "execution"), pc.is_in(templates, pa.array(numbers, templates.type))
    )
    found: dict[int | None, list[Point]] = defaultdict(list)
    for row in typed_rows(table.filter(wanted), SeriesRow):
        found[row.template].append(Point(row.start_us, row.count, row.sum * 1000))
    return defaultdict(tuple, {key: tuple(points) for key, points in found.items()})


def _application_series(table: pa.Table) -> tuple[NamedSeries, ...]:
    """Return each application's executions over time, most time first; empty if the log names none."""
    found = named_series(table, "application", "name")
    return found if any(series.name for series in found) else ()


def _timelines(
    table: pa.Table, step_s: int, wanted: pa.ChunkedArray
) -> tuple[int | None, Mapping[int, tuple[int, ...]]]:
    """Return when the first template ran, and how often each wanted one ran in each step from there on."""
    of_templates = pc.equal(table["kind"], "template")
    bounds = pc.min_max(table["start_us"].filter(of_templates)).as_py()
    begin, step = bounds["min"], step_s * 1_000_000
    if begin is None:
        return None, {}
    length = (bounds["max"] - begin) // step + 1
    numbers = table["template"]
    shown = pc.and_(of_templates, pc.is_in(numbers, wanted.cast(numbers.type)))
    found = table.select(["template", "start_us", "count"]).filter(shown)
    starts: list[int] = found["start_us"].to_pylist()
    counts: dict[int, list[int]] = {}
    for template, start, count in zip(
        found["template"].to_pylist(), starts, found["count"].to_pylist(), strict=True
    ):
        counts.setdefault(template, [0] * length)[(start - begin) // step] += count
    return begin, {template: tuple(line) for template, line in counts.items()}


def _also(templates: pa.Table, keys: Collection[str]) -> set[int]:
    if not keys:
        return set()
    found = map(template_key, templates["identity"].to_pylist(), templates["text"].to_pylist())
    return {at for at, key in enumerate(found) if key in keys}


def _order(columns: Mapping[str, list[Any]], also: set[int]) -> list[int]:
    """Return the positions of the costliest templates, and of others, in descending order of time."""
    sums, counts, texts = columns["sum_us"], columns["executions"], columns["text"]

    def rank(at: int) -> tuple[int, int, str]:
        return -sums[at], -counts[at], texts[at]

    costliest = heapq.nsmallest(MOST_TEMPLATES, range(len(sums)), key=rank)
    return sorted(also.union(costliest), key=rank) if also else costliest


def _templates(
    tables: Tables,
    shown: pa.Table,
    points: Mapping[int | None, tuple[Point, ...]],
    timelines: Mapping[int, tuple[int, ...]],
    files: Sequence[FileFacts],
    total: int,
    *,
    by_server: bool,
) -> Iterable[TemplateFacts]:
    numbers = shown["template"].to_pylist()
    origins = _grouped(tables["log_origins"], OriginRow, numbers)
    examples = _grouped(tables["log_examples"], ExampleRow, numbers)
    failed = _grouped(tables["log_failed_statements"], FailedStatementRow, numbers)
    query_ids = query_ids_of(tables["log_query_ids"])
    again = tables.get("log_repeated_updates")
    repeated = {
        row.template: build_from(Updates, row)
        for row in ([] if again is None else typed_rows(again, RepeatedUpdatesRow))
    }
    for row in typed_rows(shown, TemplateRow):
        number = row.template
        yield build_from(
            TemplateFacts,
            row,
            number=number,
            kind=kind_of(row.text),
            mean_ns=row.sum_ns / row.executions if row.executions else 0.0,
            p50_ns=nanoseconds(row.p50_us),
            p95_ns=nanoseconds(row.p95_us),
            p99_ns=nanoseconds(row.p99_us),
            share=row.sum_us / total if total else 0.0,
            parse=LogTimes(row.parses, row.parse_sum_us * 1000, row.parse_max_us * 1000),
            bind=LogTimes(row.binds, row.bind_sum_us * 1000, row.bind_max_us * 1000),
            failed=sum(errors.count for errors in failed[number]),
            lists=Lists(row.lists, row.list_elements / row.lists, row.list_max) if row.lists else None,
            rows=row.rows_sum / row.rows_plans if row.rows_plans else None,
            repetition=_repetition(row),
            applications=of_template(origins[number], "application", row.sum_us),
            users=of_template(origins[number], "user", row.sum_us),
            databases=of_template(origins[number], "database", row.sum_us),
            hosts=of_template(origins[number], "host", row.sum_us),
            examples=tuple(
                build_from(
                    Example, example, duration_ns=example.duration_us * 1000, file=files[example.file].name
                )
                for example in examples[number]
            ),
            series=points[number],
            timeline=timelines.get(number, ()),
            query_ids=query_ids[number],
            repeated=repeated.get(number),
            servers=of_template(origins[number], "server", row.sum_us) if by_server else (),
        )


def _grouped(
    table: pa.Table, kind: type[OfTemplate], numbers: Sequence[int]
) -> Mapping[int, list[OfTemplate]]:
    templates = table["template"]
    found: dict[int, list[OfTemplate]] = defaultdict(list)
    for row in typed_rows(table.filter(pc.is_in(templates, pa.array(numbers, templates.type))), kind):
        found[row.template].append(row)
    return found


def _repetition(row: TemplateRow) -> Repetition | None:
    if row.repeated_rows is None:
        return None
    return Repetition(
        row.repeated_rows,
        row.repeated_executions,
        row.repeated_longest,
        row.repeated_sum_us * 1000,
        max(0, row.repeated_elapsed_us - row.repeated_sum_us) * 1000,
        is_pipeline(row.repeated_groups, row.repeated_at_once),
    )


def _transactions(table: pa.Table) -> Iterable[TransactionFacts]:
    rows = sorted(typed_rows(table, TransactionRow), key=lambda row: -row.elapsed_us)
    for row in rows[:_MOST_NAMES]:
        yield build_from(
            TransactionFacts,
            row,
            count=row.transactions,
            elapsed_ns=row.elapsed_us * 1000,
            working_ns=row.sum_us * 1000,
            pause_ns=row.pause_sum_us * 1000,
            pause_max_ns=row.pause_max_us * 1000,
            repeated_wait_ns=row.repeated_wait_us * 1000,
        )


def _server(facts: Mapping[str, Any], tables: Tables, texts: Sequence[str]) -> ServerFacts:
    rows = typed_rows(tables["log_activity"], ActivityRow)
    incidents = typed_rows(tables["log_incidents"], IncidentRow)
    points = facts["checkpoints"]

    def tallies(kind: str, scale: int = 1000) -> tuple[Tally, ...]:
        return tuple(
            Tally(
                row.name if row.template is None else texts[row.template],
                row.count,
                row.sum * scale,
                row.max * scale,
            )
            for row in rows
            if row.kind == kind
        )

    def greatest(wait: bool) -> tuple[Incident, ...]:
        return tuple(
            build_from(
                Incident,
                row,
                amount=row.amount * (1000 if wait else 1),
                relation=row.relation or "",
                holder=row.holder or "",
            )
            for row in incidents
            if row.is_wait == wait
        )

    reasons = sorted(points["reasons"].items(), key=lambda item: (-item[1], item[0]))
    return ServerFacts(
        connections=facts["connections"],
        sessions=_times(facts["sessions"]),
        lock_waits=tallies("lock wait"),
        still_waiting=facts["still_waiting"],
        deadlocks=facts["deadlocks"],
        longest_waits=greatest(True),
        temporary_files=tallies("temporary file", 1),
        largest_files=greatest(False),
        checkpoints=_times(points["all"]),
        checkpoint_reasons=tuple(Tally(name, count, 0, 0) for name, count in reasons),
        vacuums=tallies("autovacuum"),
        analyzes=tallies("autoanalyze"),
        cancellations=tallies("cancellation"),
        checkpoint_work=checkpoint_work_of(points),
        vacuum_work=vacuum_work_of(tables["log_activity"], tables["log_vacuums"]),
    )


def stored_log_result(folder: Path, also: Collection[str] = ()) -> LogResult:
    """Build the result of a stored log: see `log_result`.

    Raises:
        StoreError: if its files are damaged.
    """
    facts, tables = read_evidence(folder, LOG_TABLES)
    return log_result(log_run_facts(read_manifest(folder), facts), facts, tables, also)


def template_key(identity: str | None, text: str) -> str:
    """Return what is the same of a template in several logs: its identity, or its text if it has none."""
    return identity or f"text: {text}"


def log_run_facts(manifest: Manifest, facts: dict[str, Any] | Any) -> LogRunFacts:
    """Return which run it is, and how it went."""
    return build_from(
        LogRunFacts,
        manifest,
        elapsed_ns=sum(attempt.elapsed_ns for attempt in manifest.attempts),
        bytes=sum(file["bytes"] for file in facts["files"]),
        reproduce=str(manifest.options.get("command", "uncork profile logs")),
    )


# ---- who waited for whom, from waits for locks in a log ----


_MOST = 100
"""The most pairs that a report shows; the table of the run holds all of them."""


def blocking_of(table: pa.Table, texts: Sequence[str]) -> tuple[Blocking, ...]:
    """Return who waited for whom, the longest waits first; `texts` maps template numbers to texts. Pure."""
    if not table.num_rows:
        return ()
    keys = ("server", "waiting_template", "waiting_application", "holding_template", "holding_application")
    grouped = table.group_by(keys).aggregate([("waits", "sum"), ("sum_us", "sum"), ("max_us", "max")])
    rows = sorted(grouped.to_pylist(), key=lambda row: (-row["sum_us_sum"], -row["waits_sum"], str(row)))
    return tuple(
        Blocking(
            waiting_number=row["waiting_template"],
            waiting_text=_text(row["waiting_template"], texts),
            waiting_application=row["waiting_application"],
            holding_number=row["holding_template"],
            holding_text=_text(row["holding_template"], texts),
            holding_application=row["holding_application"],
            waits=row["waits_sum"],
            sum_ns=row["sum_us_sum"] * 1000,
            max_ns=row["max_us_max"] * 1000,
            server=row["server"] or "",
        )
        for row in rows[:_MOST]
    )


def _text(number: int | None, texts: Sequence[str]) -> str:
    return "" if number is None else texts[number]


# ---- build the facts of a pooler's log ----


def pool_facts(averages: Mapping[str, Mapping[str, int]], connections: pa.Table) -> PoolFacts | None:
    """Return the facts of a pooler; None if the log has none. Pure."""
    reports = averages["pool queries"]["count"]
    rows = typed_rows(connections, PoolRow)
    if not reports and not rows:
        return None

    def mean(name: str) -> float:
        return averages[name]["sum"] / max(reports, 1)

    def time(name: str, count: str) -> float:
        return averages[name]["sum"] * 1000 / max(averages[count]["sum"], 1)

    return PoolFacts(
        reports=reports,
        transactions_s=mean("pool transactions"),
        queries_s=mean("pool queries"),
        transaction_ns=time("pool transaction time", "pool transactions"),
        query_ns=time("pool query time", "pool queries"),
        working=mean("pool transaction time") / 1e6,
        waiting=mean("pool wait") / 1e6,
        waiting_max=averages["pool wait"]["max"] / 1e6,
        connections=tuple(
            build_from(PoolConnections, row, mean_ns=row.sum_ns / row.count, host=row.host or "")
            for row in sorted(rows, key=lambda row: (row.side, -row.count, row.ended))
        ),
        bytes_in_s=mean("pool bytes in"),
        bytes_out_s=mean("pool bytes out"),
    )


# ---- the evidence that a log lacks, and how to get it ----


_SLOW_NS: Final = 20_000_000
"""Mean time from which on auto_explain can log plans by their duration; faster statements need a sample."""


def plan_settings(mean_ns: float) -> str:
    """Return the settings that make a server log executed plans of statements with this mean time."""
    chosen = (
        "auto_explain.log_min_duration = '10ms'"
        if mean_ns >= _SLOW_NS
        else "auto_explain.log_min_duration = 0, auto_explain.sample_rate = 0.01"
    )
    return f"session_preload_libraries = 'auto_explain', {chosen} and auto_explain.log_analyze = on"


def missing_of_log(result: LogResult) -> tuple[Missing, ...]:
    """Return what could not be judged. Pure."""
    return tuple(_missing(result)) if result.executions.count else ()


def _missing(result: LogResult) -> Iterator[Missing]:
    part = unexplained_part(result.costliest)
    template = result.templates[0]
    if part is not None:
        template = next(template for template in result.templates if template.text == part.name)
    has_plans = any(example.kind == "plan" for template in result.templates for example in template.examples)
    executed = any(plan.root.loops for plan in executed_plans(template))
    if not has_plans or (part is not None and template.kind in WITH_PLAN and not executed):
        yield Missing(
            "executed plans in the log",
            "missing indexes, sorts on disk, and other faults of plans",
            plan_settings(template.mean_ns),
        )
    if result.withheld:
        names = ", ".join(text for text in result.withheld if text)
        yield Missing(
            f"files of {names or 'one server'} that do not overlap in time",
            "transactions, repeated statements, loops, lock waits and open sessions",
            "name the server of each file: --servers by-folder, or --server NAME=FILES",
        )
    yield Missing(
        "a connection to the server",
        "existing indexes, statistics, settings and waits",
        f"uncork advise {result.run.id} DSN",
    )


# ---- which statements clients repeat in loops ----


Repeated = tuple[LoopRow, tuple[NameCount, ...]]
"""A repeated template, with its executions by server."""


def loops_of(
    table: pa.Table, texts: Sequence[str], executions: Sequence[int], *, by_server: bool = False
) -> tuple[LogLoop, ...]:
    """Return the loops of all servers together, those with the most time first. Pure.

    `texts` and `executions` are those of all templates, by number. `by_server` counts executions by server.
    """
    groups: dict[tuple[Any, ...], list[Repeated]] = defaultdict(list)
    for row, servers in _added_up(typed_rows(table, LoopRow)):
        if not row.in_transaction and not _is_loop(row, executions):
            continue
        # Without a parent, templates of one loop have the same number of transactions and of repetitions.
        alike = () if row.parent is not None else (row.stretches, row.longest)
        groups[row.in_transaction, row.parent, alike].append((row, servers if by_server else ()))
    found = [_loop(rows, texts) for rows in groups.values()]
    return tuple(sorted(found, key=lambda loop: (-_cost(loop), loop.templates[0].text))[:_MOST])


def _added_up(rows: Iterable[LoopRow]) -> Iterator[Repeated]:
    """Yield the rows, with executions by server; rows that differ only in the server are added up."""
    groups: dict[tuple[Any, ...], list[LoopRow]] = defaultdict(list)
    for row in rows:
        groups[row.template, row.parent, row.in_transaction].append(row)
    for same in groups.values():
        counts = (NameCount(row.server, row.executions) for row in same)
        whole = replace(
            same[0],
            longest=max(row.longest for row in same),
            stretches=sum(row.stretches for row in same),
            executions=sum(row.executions for row in same),
            parents=sum(row.parents for row in same),
            squares=sum(row.squares for row in same),
            elapsed_us=sum(row.elapsed_us for row in same),
            sum_us=sum(row.sum_us for row in same),
            groups=sum(row.groups for row in same),
            at_once=sum(row.at_once for row in same),
        )
        yield whole, tuple(sorted(counts, key=lambda count: (-count.count, count.name)))


def _is_loop(row: LoopRow, executions: Sequence[int]) -> bool:
    return row.parent is not None and is_loop(
        executions=row.executions,
        parents=row.parents,
        parent_executions=executions[row.parent],
        stretches=row.stretches,
        squares=row.squares,
    )


def _loop(rows: Sequence[Repeated], texts: Sequence[str]) -> LogLoop:
    ranked = sorted(rows, key=lambda row: (-row[0].elapsed_us, -row[0].executions, row[0].template))
    first = ranked[0][0]
    return build_from(
        LogLoop,
        first,
        parent_number=first.parent,
        parent_text="" if first.parent is None else texts[first.parent],
        parents=max(row.parents for row, _ in rows),
        stretches=max(row.stretches for row, _ in rows),
        ratio=first.executions / (first.stretches if first.parent is None else first.parents),
        templates=tuple(
            build_from(
                LoopTemplate,
                row,
                number=row.template,
                text=texts[row.template],
                sum_ns=row.sum_us * 1000,
                waiting_ns=max(0, row.elapsed_us - row.sum_us) * 1000,
                servers=servers,
            )
            for row, servers in ranked
        ),
        pipelined=is_pipeline(first.groups, first.at_once),
    )


def _cost(loop: LogLoop) -> int:
    return sum(template.sum_ns + template.waiting_ns for template in loop.templates)
