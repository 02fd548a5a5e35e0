"""What a log shows beside templates: all statements, the slowest ones, hours, sessions, background work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from uncork.model.results.log import LogResult, ServerFacts
from uncork.model.results.log_activity import HourFacts, SessionFacts, SessionTally, VacuumWork
from uncork.model.template_words import short_template
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import bytes_cell, count_cell, duration_cell, instant_cell
from uncork.report.log.servers import on_server, with_servers
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
    if not result.slowest:
        return None
    shown = result.slowest[:most]
    table = Table(
        "Slowest single statements",
        (
            Column("duration", number=True),
            Column("ended"),
            Column("database"),
            Column("user"),
            Column("application"),
            Column("host"),
            Column("statement", header=True),
        ),
        tuple(
            (
                duration_cell(statement.duration_ns),
                instant_cell(statement.time_us),
                Value(statement.database),
                Value(statement.user),
                Value(statement.application),
                Value(statement.host),
                Value(
                    one_line(statement.text, _WIDTH), code=True, note=one_line(statement.parameters, _WIDTH)
                ),
            )
            for statement in shown
        ),
        sortable=True,
    )
    return with_servers(table, result, (statement.server for statement in shown))


def one_line(text: str, width: int) -> str:
    """Shorten a statement as it is in the log to one line."""
    return short_template(" ".join(text.split()), width)


def hours_table(hours: Sequence[HourFacts], hour_s: int) -> Table | None:
    """Return statements and errors by the hour; None if the log has only one."""
    if len(hours) < 2:
        return None
    step = _step(hour_s)
    return Table(
        f"By {step}, in UTC",
        (
            Column("from", header=True),
            Column("statements", number=True),
            Column("time", number=True),
            Column("p50", number=True),
            Column("p95", number=True),
            Column("p99", number=True),
            Column("errors and warnings", number=True),
        ),
        tuple(
            (
                Value(instant_text(hour.start_us)[:-3], sort=hour.start_us),
                count_cell(hour.executions),
                duration_cell(hour.sum_ns if hour.executions else None),
                duration_cell(hour.p50_ns),
                duration_cell(hour.p95_ns),
                duration_cell(hour.p99_ns),
                count_cell(hour.errors),
            )
            for hour in hours
        ),
        sortable=True,
    )


def server_hours_table(result: LogResult) -> Table | None:
    """Return the hours of the busiest servers, side by side; None unless several have more than one."""
    shown = [server for server in result.servers if server.executions][:_SERVERS]
    rows = {server.name: {hour.start_us: hour for hour in server.hours} for server in shown}
    starts = sorted({start for hours in rows.values() for start in hours})
    if len(shown) < 2 or len(starts) < 2:
        return None
    left = len([server for server in result.servers if server.executions]) - len(shown)
    more = f"; {count_words(left, 'other server')} not shown" if left else ""
    return Table(
        f"Statements and their p95 by {_step(result.hour_s)} and server, in UTC{more}",
        (
            Column("from", header=True),
            *(Column(title, number=True) for server in shown for title in (server.name, "p95")),
        ),
        tuple(
            (
                Value(instant_text(start)[:-3], sort=start),
                *(cell for server in shown for cell in _hour_cells(rows[server.name].get(start))),
            )
            for start in starts
        ),
        sortable=True,
    )


def _hour_cells(hour: HourFacts | None) -> tuple[Value, Value]:
    if hour is None:
        return count_cell(0), duration_cell(None)
    return count_cell(hour.executions), duration_cell(hour.p95_ns)


def _step(hour_s: int) -> str:
    return "hour" if hour_s == 3600 else step_text(hour_s)


def session_tables(sessions: SessionFacts) -> Iterator[Table]:
    """Yield all sessions in one row, then sessions by user, database, application and host."""
    most = "" if sessions.most is None else format_count(sessions.most)
    since = instant_text(sessions.most_us) or ("at the beginning" if most else "")
    since += f", on server {sessions.most_server}" if sessions.most_server else ""
    titles = ("began", "ended", "mean", "median", "p95", "longest", "most at once")
    mean = sessions.sum_ns / sessions.ended if sessions.ended else None
    yield Table(
        "Sessions",
        (*(Column(title, number=True) for title in titles), Column("since")),
        (
            (
                count_cell(sessions.begun),
                count_cell(sessions.ended),
                duration_cell(mean),
                duration_cell(sessions.p50_ns),
                duration_cell(sessions.p95_ns),
                duration_cell(sessions.max_ns if sessions.ended else None),
                Value(most, sort=sessions.most),
                Value(since),
            ),
        ),
    )
    for name, found in (
        ("user", sessions.users),
        ("database", sessions.databases),
        ("application", sessions.applications),
        ("host", sessions.hosts),
    ):
        if found and (len(found) > 1 or found[0].name):
            yield _sessions_by(name, found)


def _by_name(
    title: str, name: str, numbers: Sequence[str], rows: Iterable[tuple[str, tuple[Value, ...]]]
) -> Table:
    """Return a table of numbers whose rows have a name."""
    return Table(
        title,
        (Column(name, header=True), *(Column(number, number=True) for number in numbers)),
        tuple((Value(text), *values) for text, values in rows),
        sortable=True,
    )


def _sessions_by(name: str, found: Sequence[SessionTally]) -> Table:
    rows = (
        (
            tally.name or "(unknown)",
            (
                count_cell(tally.begun),
                count_cell(tally.ended),
                duration_cell(tally.sum_ns if tally.ended else None),
                duration_cell(tally.sum_ns / tally.ended if tally.ended else None),
                duration_cell(tally.max_ns if tally.ended else None),
            ),
        )
        for tally in found
    )
    return _by_name(f"Sessions by {name}", name, ("began", "ended", "total", "mean", "longest"), rows)


def checkpoint_tables(server: ServerFacts) -> Iterator[Table]:
    """Yield why checkpoints started, and what they did."""
    points = server.checkpoints
    mean = format_duration(points.sum_ns / points.count) if points.count else ""
    if server.checkpoint_reasons:
        yield Table(
            f"Checkpoints: {format_count(points.count)} completed, {mean} on average, "
            f"{format_duration(points.max_ns)} at most",
            (Column("reason", header=True), Column("started", number=True)),
            tuple((Value(reason.name), count_cell(reason.count)) for reason in server.checkpoint_reasons),
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
    yield Table(
        "Work of checkpoints",
        (Column("what", header=True), Column("amount")),
        tuple((Value(name), Value(text)) for name, text in rows),
    )


def vacuum_tables(work: Sequence[VacuumWork]) -> Iterator[Table]:
    """Yield what autovacuum and autoanalyze did to each table: rows and pages, then buffers and WAL."""
    vacuums = [vacuum_work for vacuum_work in work if not vacuum_work.analyze][:_VACUUMS]
    if vacuums:
        numbers = ("runs", "total", "longest", "rows removed", "dead rows kept", "pages removed")
        rows = (
            (
                vacuum.table,
                (
                    count_cell(vacuum.runs),
                    duration_cell(vacuum.sum_ns),
                    duration_cell(vacuum.max_ns),
                    count_cell(vacuum.tuples_removed),
                    count_cell(vacuum.tuples_dead),
                    count_cell(vacuum.pages_removed),
                ),
            )
            for vacuum in vacuums
        )
        yield _by_name("Autovacuum by table", "table", numbers, rows)
        yield _buffers("Buffers and WAL of autovacuum, by table", vacuums)
    analyzes = [vacuum_work for vacuum_work in work if vacuum_work.analyze][:_VACUUMS]
    if analyzes:
        yield _buffers("Autoanalyze by table", analyzes)


def _buffers(title: str, work: Sequence[VacuumWork]) -> Table:
    rows = (
        (
            vacuum_work.table,
            (
                count_cell(vacuum_work.runs),
                duration_cell(vacuum_work.sum_ns),
                count_cell(vacuum_work.buffer_hits),
                count_cell(vacuum_work.buffer_misses),
                count_cell(vacuum_work.buffers_dirtied),
                bytes_cell(vacuum_work.wal_bytes),
            ),
        )
        for vacuum_work in work
    )
    return _by_name(title, "table", ("runs", "total", "buffer hits", "misses", "dirtied", "WAL"), rows)
