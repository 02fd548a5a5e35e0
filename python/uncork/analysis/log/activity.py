"""Filters, single statements, hours, sessions and background work of a log, from what was read of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.model.records import build_from
from uncork.model.results.log import FileFacts
from uncork.model.results.log_activity import (
    CheckpointWork,
    HourFacts,
    LeftOut,
    LogFilter,
    Peak,
    QueryId,
    SessionFacts,
    SessionTally,
    SlowStatement,
    VacuumWork,
)
from uncork.model.tables.log import (
    ActivityRow,
    HourRow,
    QueryIdRow,
    SeriesRow,
    SessionRow,
    SlowestRow,
    VacuumRow,
)
from uncork.store.rows import typed_rows

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
        p50_ns=None if quantiles[0] is None else quantiles[0] * 1000,
        p95_ns=None if quantiles[1] is None else quantiles[1] * 1000,
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
