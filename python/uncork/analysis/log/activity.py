"""Filters, single statements, hours, sessions and background work of a log, from what was read of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.model.records import build_from
from uncork.model.results.log import (
    CheckpointWork,
    ErrorFacts,
    FileFacts,
    HourFacts,
    LeftOut,
    LogFilter,
    LogServer,
    NameCount,
    NamedSeries,
    Peak,
    Point,
    QueryId,
    SessionFacts,
    SessionTally,
    SlowStatement,
    VacuumWork,
)
from uncork.model.tables.log import (
    ActivityRow,
    ErrorRow,
    HourRow,
    QueryIdRow,
    SeriesRow,
    SessionRow,
    SlowestRow,
    VacuumRow,
)
from uncork.store.tables import typed_rows

_MOST: Final = 100
_KIB: Final = 1024

Facts = Mapping[str, Any]


def filter_of(facts: Facts) -> LogFilter | None:
    """Return the filter, with what it left out; None without one."""
    asked = facts["filter"]
    if asked is None:
        return None
    found = sorted(facts["left_out"], key=lambda one: (-one["entries"], one["by"], one["name"]))
    return LogFilter(
        databases=tuple(asked["database"]),
        users=tuple(asked["user"]),
        applications=tuple(asked["application"]),
        hosts=tuple(asked["host"]),
        times_of_day=tuple(asked["time_of_day"]),
        entries=sum(one["entries"] for one in found),
        left_out=tuple(LeftOut(one["by"], one["name"], one["entries"]) for one in found[:_MOST]),
    )


def peak_of(facts: Facts) -> Peak | None:
    """Return the second with most statements; None if it is unknown."""
    found = facts["peak"]
    if found is None:
        return None
    return Peak(found["second"] * 1_000_000, found["count"], found["server"])


def slowest_of(table: pa.Table, files: Sequence[FileFacts]) -> tuple[SlowStatement, ...]:
    """Return the slowest executions, the slowest first."""
    return tuple(
        build_from(SlowStatement, row, duration_ns=row.duration_us * 1000, file=files[row.file].name)
        for row in typed_rows(table, SlowestRow)
    )


def hours_of(hours: pa.Table, series: pa.Table, hour_s: int) -> tuple[HourFacts, ...]:
    """Return each hour, or step of `hour_s`, in which a statement or an error was logged."""
    step_us = hour_s * 1_000_000
    sums: dict[int, dict[str, list[int]]] = defaultdict(lambda: {"execution": [0, 0], "error": [0, 0]})
    wanted = pc.is_in(series["kind"], pa.array(["execution", "error"]))
    for row in typed_rows(series.filter(wanted), SeriesRow):
        of = sums[row.start_us // step_us * step_us][row.kind]
        of[0] += row.count
        of[1] += row.sum
    quantiles = {row.start_us // step_us * step_us: row for row in typed_rows(hours, HourRow)}
    return tuple(
        HourFacts(
            start_us=start,
            executions=found["execution"][0],
            sum_ns=found["execution"][1] * 1000,
            p50_ns=None if hour is None else hour.p50_us * 1000,
            p95_ns=None if hour is None else hour.p95_us * 1000,
            p99_ns=None if hour is None else hour.p99_us * 1000,
            errors=found["error"][0],
        )
        for start, found in sorted(sums.items())
        for hour in (quantiles.get(start),)
    )


def sessions_of(facts: Facts, table: pa.Table) -> SessionFacts | None:
    """Return the log's sessions; None if it has none."""
    rows = typed_rows(table, SessionRow)
    if not rows:
        return None
    quantiles = facts["session_quantiles_us"] or (None, None)
    most = facts["most_sessions"] or {"count": None, "time_us": None, "server": ""}
    return SessionFacts(
        begun=sum(row.begun for row in rows),
        ended=sum(row.ended for row in rows),
        sum_ns=sum(row.sum_ns for row in rows),
        max_ns=max(row.max_ns for row in rows),
        p50_ns=nanoseconds(quantiles[0]),
        p95_ns=nanoseconds(quantiles[1]),
        most=most["count"],
        most_us=most["time_us"],
        most_server=most["server"] if len(facts["servers"]) > 1 else "",
        users=_session_tallies(rows, "user"),
        databases=_session_tallies(rows, "database"),
        applications=_session_tallies(rows, "application"),
        hosts=_session_tallies(rows, "host"),
    )


def _session_tallies(rows: Sequence[SessionRow], name: str) -> tuple[SessionTally, ...]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        of = sums[getattr(row, name)]
        of[0] += row.begun
        of[1] += row.ended
        of[2] += row.sum_ns
        of[3] = max(of[3], row.max_ns)
    ranked = sorted(sums.items(), key=lambda item: (-item[1][2], -item[1][1], item[0]))
    return tuple(SessionTally(key, *of) for key, of in ranked[:_MOST]) if any(sums) else ()


def checkpoint_work_of(points: Mapping[str, Any]) -> CheckpointWork | None:
    """Return the work of checkpoints; None if there were none."""
    completed = points["all"]["count"]
    if not completed:
        return None

    def mean(name: str) -> float:
        total: int = points[name]["sum"]
        count: int = points[name]["count"]
        return total / max(count, 1)

    timed = wal = requested = 0
    for reason, count in points["reasons"].items():
        words = set(reason.split())
        if "time" in words:
            timed += count
        elif words & {"wal", "xlog"}:
            wal += count
        else:
            requested += count
    share = points["buffers_permille"]
    return CheckpointWork(
        completed=completed,
        timed=timed,
        wal=wal,
        requested=requested,
        buffers=points["buffers"]["sum"],
        buffers_share=mean("buffers_permille") / 1000 if share["count"] else None,
        wal_files_added=points["wal_added"]["sum"],
        wal_files_removed=points["wal_removed"]["sum"],
        wal_files_recycled=points["wal_recycled"]["sum"],
        distance_bytes=mean("distance_kib") * _KIB,
        distance_max_bytes=points["distance_kib"]["max"] * _KIB,
        estimate_bytes=mean("estimate_kib") * _KIB,
        write_ns=points["write"]["sum"] * 1000,
        sync_ns=points["sync"]["sum"] * 1000,
        longest_sync_ns=points["longest_sync"]["max"] * 1000,
        synced_files=points["sync_files"]["sum"],
    )


def vacuum_work_of(activity: pa.Table, vacuums: pa.Table) -> tuple[VacuumWork, ...]:
    """Return autovacuum's work by table, vacuums first, each the longest first."""
    times = {
        (row.kind, row.name): row
        for row in typed_rows(activity, ActivityRow)
        if row.kind in ("autovacuum", "autoanalyze")
    }
    found = ((row, times[row.kind, row.name]) for row in typed_rows(vacuums, VacuumRow))
    ranked = sorted(found, key=lambda pair: (pair[0].kind == "autoanalyze", -pair[1].sum, pair[0].name))
    return tuple(
        build_from(
            VacuumWork,
            row,
            table=row.name,
            analyze=row.kind == "autoanalyze",
            runs=time.count,
            sum_ns=time.sum * 1000,
            max_ns=time.max * 1000,
        )
        for row, time in ranked
    )


def query_ids_of(table: pa.Table) -> Mapping[int, tuple[QueryId, ...]]:
    """Return the server's query ids of each template, the most frequent first."""
    found: dict[int, list[QueryId]] = defaultdict(list)
    for row in sorted(typed_rows(table, QueryIdRow), key=lambda row: (-row.executions, row.query_id)):
        found[row.template].append(QueryId(str(row.query_id), row.executions))
    return defaultdict(tuple, {number: tuple(ids) for number, ids in found.items()})


# ---- the servers of a log: what each contributes, and their rows added up ----


_KEYS: Final = {
    "log_series": ("kind", "name", "template", "start_us"),
    "log_activity": ("kind", "name", "template"),
    "log_pool": ("side", "database", "user", "host", "ended"),
    "log_vacuums": ("kind", "name"),
}
"""Tables with a row for each server, and the columns by which their rows are added up."""
_ERRORS: Final = frozenset(("ERROR", "FATAL", "PANIC"))

Tables = Mapping[str, pa.Table]


def several(facts: Facts) -> bool:
    """Return whether the logs are of several servers."""
    return len(facts["servers"]) > 1


def added_up(tables: Tables) -> dict[str, pa.Table]:
    """Return the tables with the rows of all servers added up where a report shows them as one. Pure.

    The name of their server is empty.
    """
    return {name: _added_up(table, _KEYS[name]) if name in _KEYS else table for name, table in tables.items()}


def _added_up(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    amounts = [name for name in table.column_names if name not in (*keys, "server")]
    how = [(name, "max" if name.startswith("max") else "sum") for name in amounts]
    found = table.group_by(list(keys), use_threads=False).aggregate(how)
    found = found.rename_columns([*keys, *amounts]).append_column("server", pa.repeat("", found.num_rows))
    if "sum" in amounts and "start_us" not in keys:
        return found.sort_by([("kind", "ascending"), ("sum", "descending"), ("name", "ascending")])
    return found.sort_by([(name, "ascending") for name in keys])


def errors_of(table: pa.Table, *, by_server: bool) -> list[ErrorFacts]:
    """Return messages by kind, the most frequent first; those of all servers are one kind. Pure."""
    rows = typed_rows(table, ErrorRow)
    if not by_server:
        return [build_from(ErrorFacts, row) for row in rows]
    groups: dict[tuple[str, ...], list[ErrorRow]] = defaultdict(list)
    for row in rows:
        groups[row.severity, row.sqlstate, row.message].append(row)
    found = []
    for group in groups.values():
        counts = [NameCount(row.server, row.count) for row in group]
        found.append(
            build_from(
                ErrorFacts,
                min(group, key=lambda row: (row.first_us is None, row.first_us or 0, row.server)),
                count=sum(row.count for row in group),
                last_us=max((row.last_us for row in group if row.last_us is not None), default=None),
                servers=tuple(sorted(counts, key=lambda server: (-server.count, server.name))),
            )
        )
    return sorted(found, key=lambda error: (-error.count, error.severity, error.message))


def named_series(table: pa.Table, kind: str, by: str) -> tuple[NamedSeries, ...]:
    """Return executions over time by a column of the rows of a kind, most time first. Pure."""
    found: dict[str, list[Point]] = defaultdict(list)
    chosen = table.filter(pc.equal(table["kind"], kind))
    for name, row in zip(chosen[by].to_pylist(), typed_rows(chosen, SeriesRow), strict=True):
        found[name].append(Point(row.start_us, row.count, row.sum * 1000))
    every = [NamedSeries(name, tuple(points)) for name, points in found.items()]
    return tuple(sorted(every, key=lambda line: (-sum(point.sum_ns for point in line.points), line.name)))


def servers_of(
    facts: Facts, tables: Tables, files: Iterable[FileFacts], texts: Sequence[str], total_us: int
) -> tuple[LogServer, ...]:
    """Return what each server logged, the one with most time first. Pure."""
    read, entries = Counter[str](), Counter[str]()
    for file in files:
        read[file.server] += 1
        entries[file.server] += file.entries
    times: dict[str, list[tuple[int, int]]] = defaultdict(list)
    executions = Counter[str]()
    for row in _by_template(tables["log_origins"]):
        times[row["server"]].append((row["sum_us_sum"], row["template"]))
        executions[row["server"]] += row["executions_sum"]
    errors = Counter[str]()
    for error in typed_rows(tables["log_errors"], ErrorRow):
        if error.severity in _ERRORS:
            errors[error.server] += error.count
    found = []
    for server in facts["servers"]:
        name, peak, sessions, points = (
            server[key] for key in ("name", "peak", "most_sessions", "checkpoints")
        )
        spent = sum(each for each, _ in times[name])
        quantiles = server["quantiles_us"] or (None, None, None)
        most, number = min(times[name], key=lambda time: (-time[0], texts[time[1]]), default=(0, None))
        found.append(
            LogServer(
                name=name,
                files=read[name],
                entries=entries[name],
                executions=executions[name],
                sum_ns=spent * 1000,
                share=spent / total_us if total_us else 0.0,
                errors=errors[name],
                template_number=number,
                template_text="" if number is None else texts[number],
                template_share=most / spent if spent else 0.0,
                peak=None if peak is None else Peak(peak["second"] * 1_000_000, peak["count"], name),
                most_sessions=None if sessions is None else sessions["count"],
                checkpoint_work=None if points is None else checkpoint_work_of(points),
                p50_ns=nanoseconds(quantiles[0]),
                p95_ns=nanoseconds(quantiles[1]),
                p99_ns=nanoseconds(quantiles[2]),
                hours=hours_of(
                    _on(tables["log_hours_by_server"], name),
                    _on(tables["log_series"], name),
                    facts["hour_s"],
                ),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.sum_ns, -one.entries, one.name)))


def _on(table: pa.Table, server: str) -> pa.Table:
    return table.filter(pc.equal(table["server"], server))


def nanoseconds(micros: int | None) -> int | None:
    """Return microseconds in nanoseconds."""
    return None if micros is None else micros * 1000


def _by_template(table: pa.Table) -> list[dict[str, Any]]:
    grouped = table.group_by(["server", "template"]).aggregate([("sum_us", "sum"), ("executions", "sum")])
    rows: list[dict[str, Any]] = grouped.to_pylist()
    return rows
