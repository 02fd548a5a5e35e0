"""The servers of a log: what each contributes, and tables in which their rows are added up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.analysis.log.activity import checkpoint_work_of, hours_of
from uncork.model.records import build_from
from uncork.model.results.log import ErrorFacts, FileFacts, NameCount, NamedSeries, Point
from uncork.model.results.log_activity import LogServer, Peak
from uncork.model.tables.log import ErrorRow, SeriesRow
from uncork.store.rows import typed_rows

_KEYS: Final = {
    "log_series": ("kind", "name", "template", "start_us"),
    "log_activity": ("kind", "name", "template"),
    "log_pool": ("side", "database", "user", "host", "ended"),
    "log_vacuums": ("kind", "name"),
}
"""Tables with a row for each server, and the columns by which their rows are added up."""
_ERRORS: Final = frozenset(("ERROR", "FATAL", "PANIC"))

Facts = Mapping[str, Any]
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


def series_by_server(table: pa.Table) -> tuple[NamedSeries, ...]:
    """Return each server's executions over time, most time first. Pure."""
    found: dict[str, list[Point]] = defaultdict(list)
    for row in typed_rows(table.filter(pc.equal(table["kind"], "execution")), SeriesRow):
        found[row.server].append(Point(row.start_us, row.count, row.sum * 1000))
    all_of = [NamedSeries(name, tuple(points)) for name, points in found.items()]
    return tuple(sorted(all_of, key=lambda one: (-sum(point.sum_ns for point in one.points), one.name)))


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
                p50_ns=_ns(quantiles[0]),
                p95_ns=_ns(quantiles[1]),
                p99_ns=_ns(quantiles[2]),
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


def _ns(micros: int | None) -> int | None:
    return None if micros is None else micros * 1000


def _by_template(table: pa.Table) -> list[dict[str, Any]]:
    grouped = table.group_by(["server", "template"]).aggregate([("sum_us", "sum"), ("executions", "sum")])
    rows: list[dict[str, Any]] = grouped.to_pylist()
    return rows
