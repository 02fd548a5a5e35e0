"""What a log shows beside templates: all statements, the slowest ones, hours, sessions, background work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from uncork.model.results.log import LogResult, ServerFacts
from uncork.model.results.log_activity import HourFacts, SessionFacts, SlowStatement, VacuumWork
from uncork.model.template_words import short_template
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.blocks import Table, Value
from uncork.report.cells import (
    BoundColumn,
    bytes_cell,
    column,
    count_cell,
    duration_cell,
    facts_table,
    header,
    instant_cell,
    mean_cell,
    not_shown,
    number,
    table_if_any,
    table_of,
)
from uncork.report.log.servers import on_server
from uncork.report.quantity_words import instant_text, share_text, step_text
from uncork.report.words import count_words

_SERVERS: Final = 6
"""Servers whose hours stand side by side."""
_VACUUMS: Final = 50
_WIDTH: Final = 100


def overall_facts(result: LogResult) -> Iterator[tuple[str, str]]:
    """Yield the quantiles of all statements and the busiest second, as far as they are known."""
    for name, value in (("p50", result.p50_ns), ("p95", result.p95_ns), ("p99", result.p99_ns)):
        if value is not None:
            yield name, format_duration(value)
    if result.peak is not None:
        rate, on = format_count(result.peak.executions), on_server(result, result.peak.server)
        yield "peak", f"{rate} statements a second{on}, at {instant_text(result.peak.start_us)} UTC"


def overall_words(result: LogResult) -> str:
    """Return the same as one line; an empty text if nothing was executed."""
    found = ", ".join(f"{name} {value}" for name, value in overall_facts(result))
    return f"All {count_words(result.executions.count, 'statement')}: {found}." if found else ""


def slowest_table(result: LogResult, most: int) -> Table | None:
    """Return the slowest single statements; None if there are none."""
    return table_if_any(
        "Slowest single statements",
        result.slowest[:most],
        number("duration", lambda statement: duration_cell(statement.duration_ns)),
        column("ended", lambda statement: instant_cell(statement.time_us)),
        column("database", lambda statement: statement.database),
        column("user", lambda statement: statement.user),
        column("application", lambda statement: statement.application),
        column("host", lambda statement: statement.host),
        header("statement", _slow_statement),
        column("server", lambda statement: statement.server, when=result.servers),
        sortable=True,
    )


def _slow_statement(statement: SlowStatement) -> Value:
    return Value(one_line(statement.text, _WIDTH), code=True, note=one_line(statement.parameters, _WIDTH))


def one_line(text: str, width: int) -> str:
    """Shorten a statement as it is in the log to one line."""
    return short_template(" ".join(text.split()), width)


def hours_table(hours: Sequence[HourFacts], hour_s: int) -> Table | None:
    """Return statements and errors by the hour; None if the log has only one."""
    if len(hours) < 2:
        return None
    return table_of(
        f"By {_step(hour_s)}, in UTC",
        hours,
        header("from", lambda hour: _minute(hour.start_us)),
        number("statements", lambda hour: count_cell(hour.executions)),
        number("time", lambda hour: duration_cell(hour.sum_ns if hour.executions else None)),
        number("p50", lambda hour: duration_cell(hour.p50_ns)),
        number("p95", lambda hour: duration_cell(hour.p95_ns)),
        number("p99", lambda hour: duration_cell(hour.p99_ns)),
        number("errors and warnings", lambda hour: count_cell(hour.errors)),
        sortable=True,
    )


def _minute(micros: int) -> Value:
    return Value(instant_text(micros)[:-3], sort=micros)


def server_hours_table(result: LogResult) -> Table | None:
    """Return the hours of the busiest servers, side by side; None unless several have more than one."""
    shown = [server for server in result.servers if server.executions][:_SERVERS]
    hours = {server.name: {hour.start_us: hour for hour in server.hours} for server in shown}
    starts = sorted({start for of_server in hours.values() for start in of_server})
    if len(shown) < 2 or len(starts) < 2:
        return None
    left = len([server for server in result.servers if server.executions]) - len(shown)
    return table_of(
        f"Statements and their p95 by {_step(result.hour_s)} and server, in UTC"
        f"{not_shown(left, 'other server')}",
        starts,
        header("from", _minute),
        *(bound for name, of_server in hours.items() for bound in _server_columns(name, starts, of_server)),
        sortable=True,
    )


def _server_columns(
    name: str, starts: Sequence[int], hours: Mapping[int, HourFacts]
) -> Iterator[BoundColumn[int]]:
    """Yield the columns of a server: its statements in each hour, and their p95."""
    known = [hours.get(start) for start in starts]
    yield number(name, [count_cell(0 if hour is None else hour.executions) for hour in known])
    yield number("p95", [duration_cell(None if hour is None else hour.p95_ns) for hour in known])


def _step(hour_s: int) -> str:
    return "hour" if hour_s == 3600 else step_text(hour_s)


def session_tables(sessions: SessionFacts) -> Iterator[Table]:
    """Yield all sessions in one row, then sessions by user, database, application and host."""
    most = "" if sessions.most is None else format_count(sessions.most)
    since = instant_text(sessions.most_us) or ("at the beginning" if most else "")
    since += f", on server {sessions.most_server}" if sessions.most_server else ""
    yield table_of(
        "Sessions",
        [sessions],
        number("began", lambda all_of: count_cell(all_of.begun)),
        number("ended", lambda all_of: count_cell(all_of.ended)),
        number("mean", lambda all_of: mean_cell(all_of.sum_ns, all_of.ended)),
        number("median", lambda all_of: duration_cell(all_of.p50_ns)),
        number("p95", lambda all_of: duration_cell(all_of.p95_ns)),
        number("longest", lambda all_of: duration_cell(all_of.max_ns if all_of.ended else None)),
        number("most at once", [Value(most, sort=sessions.most)]),
        column("since", [since]),
    )
    for name, found in (
        ("user", sessions.users),
        ("database", sessions.databases),
        ("application", sessions.applications),
        ("host", sessions.hosts),
    ):
        if found and (len(found) > 1 or found[0].name):
            yield table_of(
                f"Sessions by {name}",
                found,
                header(name, lambda tally: tally.name or "(unknown)"),
                number("began", lambda tally: count_cell(tally.begun)),
                number("ended", lambda tally: count_cell(tally.ended)),
                number("total", lambda tally: duration_cell(tally.sum_ns if tally.ended else None)),
                number("mean", lambda tally: mean_cell(tally.sum_ns, tally.ended)),
                number("longest", lambda tally: duration_cell(tally.max_ns if tally.ended else None)),
                sortable=True,
            )


def checkpoint_tables(server: ServerFacts) -> Iterator[Table]:
    """Yield why checkpoints started, and what they did."""
    points = server.checkpoints
    mean = format_duration(points.sum_ns / points.count) if points.count else ""
    if server.checkpoint_reasons:
        yield table_of(
            f"Checkpoints: {format_count(points.count)} completed, {mean} on average, "
            f"{format_duration(points.max_ns)} at most",
            server.checkpoint_reasons,
            header("reason", lambda reason: reason.name),
            number("started", lambda reason: count_cell(reason.count)),
        )
    work = server.checkpoint_work
    if work is None:
        return
    share = "" if work.buffers_share is None else f"; {share_text(work.buffers_share)} of shared_buffers each"
    each = work.completed
    rows = (
        ("started by time", format_count(work.timed)),
        ("started by WAL size", format_count(work.wal)),
        ("requested", format_count(work.requested)),
        ("buffers written", f"{format_count(work.buffers)}{share}"),
        ("writing", f"{format_duration(work.write_ns)}, {format_duration(work.write_ns / each)} on average"),
        (
            "syncing",
            f"{format_duration(work.sync_ns)}, {count_words(work.synced_files, 'file')}; longest "
            f"{format_duration(work.longest_sync_ns)}",
        ),
        (
            "WAL files",
            f"{format_count(work.wal_files_added)} added, {format_count(work.wal_files_removed)} removed, "
            f"{format_count(work.wal_files_recycled)} recycled",
        ),
        (
            "WAL from one to the next",
            f"{format_bytes(work.distance_bytes)} on average, {format_bytes(work.distance_max_bytes)} at most"
            f"; estimate {format_bytes(work.estimate_bytes)}",
        ),
    )
    yield facts_table("Work of checkpoints", rows, "what", "amount")


def vacuum_tables(work: Sequence[VacuumWork]) -> Iterator[Table]:
    """Yield what autovacuum and autoanalyze did to each table: rows and pages, then buffers and WAL."""
    vacuums = [vacuum_work for vacuum_work in work if not vacuum_work.analyze][:_VACUUMS]
    if vacuums:
        yield table_of(
            "Autovacuum by table",
            vacuums,
            header("table", lambda vacuum: vacuum.table),
            number("runs", lambda vacuum: count_cell(vacuum.runs)),
            number("total", lambda vacuum: duration_cell(vacuum.sum_ns)),
            number("longest", lambda vacuum: duration_cell(vacuum.max_ns)),
            number("rows removed", lambda vacuum: count_cell(vacuum.tuples_removed)),
            number("dead rows kept", lambda vacuum: count_cell(vacuum.tuples_dead)),
            number("pages removed", lambda vacuum: count_cell(vacuum.pages_removed)),
            sortable=True,
        )
        yield _buffers("Buffers and WAL of autovacuum, by table", vacuums)
    analyzes = [vacuum_work for vacuum_work in work if vacuum_work.analyze][:_VACUUMS]
    if analyzes:
        yield _buffers("Autoanalyze by table", analyzes)


def _buffers(title: str, work: Sequence[VacuumWork]) -> Table:
    return table_of(
        title,
        work,
        header("table", lambda vacuum: vacuum.table),
        number("runs", lambda vacuum: count_cell(vacuum.runs)),
        number("total", lambda vacuum: duration_cell(vacuum.sum_ns)),
        number("buffer hits", lambda vacuum: count_cell(vacuum.buffer_hits)),
        number("misses", lambda vacuum: count_cell(vacuum.buffer_misses)),
        number("dirtied", lambda vacuum: count_cell(vacuum.buffers_dirtied)),
        number("WAL", lambda vacuum: bytes_cell(vacuum.wal_bytes)),
        sortable=True,
    )
