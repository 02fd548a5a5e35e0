"""Filters, single statements, hours, sessions and background work of a log, from what was read of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

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
        SlowStatement(
            duration_ns=row["duration_us"] * 1000,
            time_us=row["time_us"],
            template=row["template"],
            user=row["user"],
            database=row["database"],
            application=row["application"],
            host=row["host"],
            file=files[row["file"]].name,
            offset=row["offset"],
            text=row["text"],
            parameters=row["parameters"],
            server=row["server"],
        )
        for row in table.to_pylist()
    )


def hours_of(hours: pa.Table, series: pa.Table, hour_s: int) -> tuple[HourFacts, ...]:
    """Return each hour, or step of `hour_s`, in which a statement or an error was logged."""
    step_us = hour_s * 1_000_000
    sums: dict[int, dict[str, list[int]]] = defaultdict(lambda: {"execution": [0, 0], "error": [0, 0]})
    wanted = pc.is_in(series["kind"], pa.array(["execution", "error"]))
    for row in series.filter(wanted).to_pylist():
        of = sums[row["start_us"] // step_us * step_us][row["kind"]]
        of[0] += row["count"]
        of[1] += row["sum"]
    quantiles = {row["start_us"] // step_us * step_us: row for row in hours.to_pylist()}
    return tuple(
        HourFacts(
            start_us=start,
            executions=found["execution"][0],
            sum_ns=found["execution"][1] * 1000,
            p50_ns=_quantile(quantiles.get(start), "p50_us"),
            p95_ns=_quantile(quantiles.get(start), "p95_us"),
            p99_ns=_quantile(quantiles.get(start), "p99_us"),
            errors=found["error"][0],
        )
        for start, found in sorted(sums.items())
    )


def _quantile(row: Mapping[str, Any] | None, name: str) -> int | None:
    return None if row is None else row[name] * 1000


def sessions_of(facts: Facts, table: pa.Table) -> SessionFacts | None:
    """Return the log's sessions; None if it has none."""
    rows = table.to_pylist()
    if not rows:
        return None
    quantiles = facts["session_quantiles_us"] or (None, None)
    most = facts["most_sessions"] or {"count": None, "time_us": None, "server": ""}
    return SessionFacts(
        begun=sum(row["begun"] for row in rows),
        ended=sum(row["ended"] for row in rows),
        sum_ns=sum(row["sum_us"] for row in rows) * 1000,
        max_ns=max(row["max_us"] for row in rows) * 1000,
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


def _session_tallies(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[SessionTally, ...]:
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for row in rows:
        of = sums[row[name]]
        of[0] += row["begun"]
        of[1] += row["ended"]
        of[2] += row["sum_us"] * 1000
        of[3] = max(of[3], row["max_us"] * 1000)
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
    amounts = [name for name in vacuums.column_names if name != "server"]
    work = {(row.pop("kind"), row.pop("name")): row for row in vacuums.select(amounts).to_pylist()}
    times = {
        (row["kind"], row["name"]): row
        for row in activity.to_pylist()
        if row["kind"] in ("autovacuum", "autoanalyze")
    }
    ranked = sorted(work, key=lambda key: (key[0] == "autoanalyze", -times[key]["sum"], key[1]))
    return tuple(
        VacuumWork(
            table=key[1],
            analyze=key[0] == "autoanalyze",
            runs=times[key]["count"],
            sum_ns=times[key]["sum"] * 1000,
            max_ns=times[key]["max"] * 1000,
            **work[key],
        )
        for key in ranked
    )


def query_ids_of(table: pa.Table) -> Mapping[int, tuple[QueryId, ...]]:
    """Return the server's query ids of each template, the most frequent first."""
    found: dict[int, list[QueryId]] = defaultdict(list)
    for row in sorted(table.to_pylist(), key=lambda row: (-row["executions"], row["query_id"])):
        found[row["template"]].append(QueryId(str(row["query_id"]), row["executions"]))
    return defaultdict(tuple, {number: tuple(ids) for number, ids in found.items()})
