"""The tables of a log. The terminal, Markdown and HTML share them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from uncork.model.results.log import (
    DURATION_PARTS,
    Contribution,
    ErrorFacts,
    HourFacts,
    Incident,
    LogResult,
    LogServer,
    NameCount,
    RouteFacts,
    ServerFacts,
    SessionFacts,
    Tally,
    TemplateFacts,
    VacuumWork,
)
from uncork.model.template_words import short_template, short_templates
from uncork.model.units import count_words, format_bytes, format_count, format_duration, share_text
from uncork.report.blocks import Block, Fold, Table, Value
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
    rank_cells,
    share_cell,
    table_if_any,
    table_of,
    template_cells,
)
from uncork.report.words import instant_text, step_text

_INCIDENTS: Final = 20
"""Most lock waits and temporary files that a table lists."""


def templates_table(result: LogResult, most: int, *, width: int) -> Table:
    """Return the costliest templates, each on a line of `width` characters."""
    executed = [template for template in result.templates if template.executions]
    shown = executed[:most]
    texts = short_templates([template.text for template in shown], width)
    repeated = loop_notes(result)
    left = len(executed) + result.templates_more - len(shown)
    return table_of(
        f"Templates by total time{not_shown(left, 'other template')}",
        shown,
        number("#", rank_cells(len(shown))),
        number("time", lambda template: duration_cell(template.sum_ns)),
        number("share", lambda template: share_cell(template.share)),
        number("count", lambda template: count_cell(template.executions)),
        number("mean", lambda template: duration_cell(template.mean_ns)),
        number("p50", lambda template: duration_cell(template.p50_ns)),
        number("p95", lambda template: duration_cell(template.p95_ns)),
        number("p99", lambda template: duration_cell(template.p99_ns)),
        number("longest", lambda template: duration_cell(template.max_ns)),
        header(
            "template",
            [
                Value(
                    text,
                    note=_notes(template, repeated.get(template.number, "")),
                    code=True,
                    link=template_id(template),
                )
                for template, text in zip(shown, texts, strict=True)
            ],
        ),
        sortable=True,
    )


def _before_cell(template: TemplateFacts) -> Value:
    before = _before_ns(template)
    return share_cell(_share_of_whole(before, before + template.sum_ns))


def _before_ns(template: TemplateFacts) -> float:
    return template.parse.sum_ns + template.bind.sum_ns


def protocol_table(result: LogResult, most: int, *, width: int) -> Table | None:
    """Return the time to parse, bind (and plan) and execute each template; None if it is not logged."""
    found = [template for template in result.templates if template.parse.count or template.bind.count]
    found.sort(key=lambda template: -_before_ns(template))
    shown = found[:most]
    texts, ids = [template.text for template in shown], [template_id(template) for template in shown]
    return table_if_any(
        "Templates by time before they execute: parse, and bind with planning"
        f"{not_shown(len(found) - most, 'other template')}",
        shown,
        number("parse", lambda template: duration_cell(template.parse.sum_ns)),
        number("bind", lambda template: duration_cell(template.bind.sum_ns)),
        number("execute", lambda template: duration_cell(template.sum_ns)),
        number("before", _before_cell),
        header("template", template_cells(texts, width, ids, back=False)),
        sortable=True,
    )


def template_id(template: TemplateFacts) -> str:
    """Return the id of a template's section."""
    return f"template-{template.number}"


def _notes(template: TemplateFacts, repeated: str) -> str:
    parts = []
    if template.lists is not None and template.lists.max > 1:
        parts.append(f"lists of {format_count(round(template.lists.mean))}")
    if template.repetition is not None:
        way = "in a pipeline" if template.repetition.pipelined else "one by one"
        parts.append(f"{way}, up to {format_count(template.repetition.longest)}")
    if repeated:
        parts.append(repeated)
    if template.failed:
        parts.append(f"{format_count(template.failed)} failed")
    servers = _server_shares(template)
    if servers:
        parts.append(servers)
    return ", ".join(parts)


def contributions_tables(result: LogResult) -> Iterator[Table]:
    """Yield the time by application, user, database, host and kind; without tables of one unnamed row."""
    for name, found in (
        ("application", result.applications),
        ("user", result.users),
        ("database", result.databases),
        ("host", result.hosts),
        ("kind of statement", result.kinds),
    ):
        if found and (len(found) > 1 or found[0].name):
            yield _contributions(name, found)


def _contributions(name: str, found: Sequence[Contribution]) -> Table:
    return table_of(
        f"By {name}",
        found,
        header(name, lambda part: part.name or "(unknown)"),
        number("time", lambda part: duration_cell(part.sum_ns)),
        number("share", lambda part: share_cell(part.share)),
        number("count", lambda part: count_cell(part.executions)),
        number("mean", lambda part: mean_cell(part.sum_ns, part.executions)),
        number("longest", lambda part: duration_cell(part.max_ns)),
        sortable=True,
    )


def histogram_table(result: LogResult) -> Table | None:
    """Return the histogram of durations; None without executions."""
    total = sum(result.histogram)
    if not total:
        return None
    return table_of(
        "Executions by duration",
        result.histogram,
        header("duration", DURATION_PARTS),
        number("count", [count_cell(count) for count in result.histogram]),
        number("share", lambda count: share_cell(count / total)),
    )


def messages_table(title: str, found: Sequence[ErrorFacts], most: int) -> Table | None:
    """Return errors or other messages by kind, the most frequent first; None if there are none."""
    return table_if_any(
        f"{title}{not_shown(len(found) - most, 'more kind')}",
        found[:most],
        number("count", lambda error: count_cell(error.count)),
        column("severity", lambda error: error.severity.lower()),
        column("SQLSTATE", lambda error: error.sqlstate),
        header("message", lambda error: short_template(error.message, 120)),
        column("first", lambda error: instant_cell(error.first_us)),
        column("last", lambda error: instant_cell(error.last_us)),
        column("servers", lambda error: _server_counts(error.servers), when=any(e.servers for e in found)),
        sortable=True,
    )


def transactions_table(result: LogResult) -> Table | None:
    """Return transactions by application, user and database; None when the log shows none."""
    return table_if_any(
        "Transactions from BEGIN to their end",
        result.transactions,
        header("application", lambda transaction: transaction.application or "(unknown)"),
        column("user", lambda transaction: transaction.user),
        column("database", lambda transaction: transaction.database),
        number("count", lambda transaction: count_cell(transaction.count)),
        number("open", lambda transaction: duration_cell(transaction.elapsed_ns)),
        number("in statements", lambda transaction: duration_cell(transaction.working_ns)),
        number("in pauses over 1 s", lambda transaction: duration_cell(transaction.pause_ns)),
        number("statements, median", lambda transaction: count_cell(transaction.statements_p50)),
        number("statements, most", lambda transaction: count_cell(transaction.statements_max)),
        column("server", lambda transaction: transaction.server, when=result.servers),
        sortable=True,
    )


def activity_tables(result: LogResult) -> Iterator[Table]:
    """Yield what the server logged about locks, files, checkpoints, autovacuum and cancellations."""
    server = result.server
    tables = (
        _tallies("Completed lock waits longer than deadlock_timeout", "lock", server.lock_waits),
        _blocking_table(result),
        _incidents(
            result,
            "Longest lock waits, and the last statement of the session that held the lock",
            server.longest_waits,
            number("waited", lambda wait: duration_cell(wait.amount)),
            "lock",
        ),
        _tallies("Temporary files", "statement", server.temporary_files, size=True),
        _incidents(
            result,
            "Largest temporary files",
            server.largest_files,
            number("size", lambda file: bytes_cell(file.amount)),
            "what",
        ),
        *_checkpoint_tables(server),
        *_vacuum_tables(server.vacuum_work),
        table_if_any(
            "Cancelled and terminated",
            server.cancellations,
            header("reason", lambda cancellation: cancellation.name),
            number("count", lambda cancellation: count_cell(cancellation.count)),
        ),
    )
    return filter(None, tables)


def _tallies(title: str, of: str, found: Sequence[Tally], *, size: bool = False) -> Table | None:
    amount: Callable[[int], Value] = bytes_cell if size else duration_cell
    return table_if_any(
        title,
        found,
        header(of, lambda tally: short_template(tally.name) or "(unknown)"),
        number("count", lambda tally: count_cell(tally.count)),
        number("total", lambda tally: amount(tally.sum)),
        number("largest" if size else "longest", lambda tally: amount(tally.max)),
        sortable=True,
    )


def _incidents(
    result: LogResult, title: str, found: Sequence[Incident], amount: BoundColumn[Incident], what: str
) -> Table | None:
    locks = what == "lock"
    return table_if_any(
        title,
        found[:_INCIDENTS],
        amount,
        column("when", lambda incident: instant_cell(incident.time_us)),
        number("process", lambda incident: Value(str(incident.pid), sort=incident.pid)),
        header(what, lambda incident: Value(short_template(incident.what), note=incident.detail)),
        column("relation", lambda incident: incident.relation, when=locks),
        column("statement", lambda incident: Value(short_template(incident.statement), code=True)),
        column("holder's statement", lambda wait: Value(short_template(wait.holder), code=True), when=locks),
        column("server", lambda incident: incident.server, when=result.servers),
        sortable=True,
    )


def files_table(result: LogResult) -> Table:
    """Return the files that were read."""
    return table_of(
        "Files",
        result.files,
        header("file", lambda file: file.name),
        number("size", lambda file: bytes_cell(file.bytes)),
        column("dialect", lambda file: file.dialect or "unknown"),
        column(
            "log_line_prefix",
            lambda file: Value("" if file.prefix is None else f"'{file.prefix}'", code=True),
        ),
        number("entries", lambda file: count_cell(file.entries)),
        number("lines", lambda file: count_cell(file.lines)),
        number("continuation lines", lambda file: count_cell(file.continuations)),
        number("not understood", lambda file: count_cell(file.rejected, note=file.trouble or "")),
        column("server", lambda file: file.server, when=result.servers),
        sortable=True,
    )


def lines_words(result: LogResult) -> str:
    """Return what the lines are; an empty text if there are none."""
    lines = sum(file.lines for file in result.files)
    if not lines:
        return ""
    parts = [
        (sum(file.heads for file in result.files), "start an entry or add to one"),
        (sum(file.continuations for file in result.files), "continue one or are empty"),
        (sum(file.foreign for file in result.files), "are records of other programs"),
        (result.rejected, "belong to no entry"),
    ]
    listed = ", ".join(
        f"{format_count(count)} {words}" for count, words in parts if count or words == parts[-1][1]
    )
    return f"{format_count(lines)}: {listed}"


def rejected_table(result: LogResult) -> Table | None:
    """Return the first lines that belong to no entry; None if there are none."""
    return table_if_any(
        f"Lines that belong to no entry: the first of {format_count(result.rejected)}",
        result.rejected_lines,
        header("file", lambda rejected: rejected.file),
        number("line", lambda rejected: "" if rejected.line is None else str(rejected.line)),
        column("text", lambda rejected: Value(rejected.text, code=True)),
    )


# ---- what the list of templates says of statements that clients repeat in loops ----


def loop_notes(result: LogResult) -> dict[int, str]:
    """Return a note on each template that a loop repeats, by its number."""
    found: dict[int, str] = {}
    for loop in result.loops:
        where = "transaction" if loop.in_transaction else "session"
        for template in loop.templates:
            words = f"repeated up to {format_count(template.longest)} times in a {where}"
            found.setdefault(template.number, words)
    return found


def _blocking_table(result: LogResult) -> Table | None:
    return table_if_any(
        "Who waited for whom: lock waits longer than deadlock_timeout, and the holder's last statement",
        result.blocking,
        header("waiting statement", lambda blocking: _statement(blocking.waiting_text)),
        column("application", lambda blocking: blocking.waiting_application),
        header("holder's statement", lambda blocking: _statement(blocking.holding_text)),
        column("holder's application", lambda blocking: blocking.holding_application),
        number("waits", lambda blocking: count_cell(blocking.waits)),
        number("waited", lambda blocking: duration_cell(blocking.sum_ns)),
        number("longest", lambda blocking: duration_cell(blocking.max_ns)),
        column("server", lambda blocking: blocking.server, when=result.servers),
        sortable=True,
    )


def _statement(text: str) -> Value:
    return Value(short_template(text) or "(still running, or not logged)", code=bool(text))


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
        rate, server = format_count(result.peak.executions), result.peak.server
        on = f" on server {server}" if result.servers and server else ""
        yield "peak", f"{rate} statements a second{on}, at {instant_text(result.peak.start_us)} UTC"


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
        header(
            "statement",
            lambda statement: Value(
                one_line(statement.text, _WIDTH), code=True, note=one_line(statement.parameters, _WIDTH)
            ),
        ),
        column("server", lambda statement: statement.server, when=result.servers),
        sortable=True,
    )


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


def _checkpoint_tables(server: ServerFacts) -> Iterator[Table]:
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


def _vacuum_tables(work: Sequence[VacuumWork]) -> Iterator[Table]:
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


_TEMPLATE_WIDTH: Final = 80
_SHOWN: Final = 3
_SHARES: Final = 2


def servers_table(result: LogResult, most: int) -> Table | None:
    """Return what up to `most` servers logged, the one with most time first; None if there is only one."""
    ids = {template.number: f"template-{template.number}" for template in result.templates}
    return table_if_any(
        f"Servers{not_shown(len(result.servers) - most, 'other server')}",
        result.servers[:most],
        header("server", lambda server: server.name or "(unnamed)"),
        number("entries", lambda server: count_cell(server.entries)),
        number("time", lambda server: duration_cell(server.sum_ns)),
        number("share", lambda server: share_cell(server.share)),
        number("count", lambda server: count_cell(server.executions)),
        number("p95", lambda server: duration_cell(server.p95_ns)),
        number("errors", lambda server: count_cell(server.errors)),
        column("template with most time", lambda server: _costliest(server, ids)),
        sortable=True,
    )


def _costliest(server: LogServer, ids: dict[int, str]) -> Value:
    if not server.template_text:
        return Value("")
    text, share = short_template(server.template_text, _TEMPLATE_WIDTH), share_text(server.template_share)
    link = "" if server.template_number is None else ids.get(server.template_number, "")
    return Value(text, note=share, code=True, link=link, back=False)


def _server_shares(template: TemplateFacts) -> str:
    if not template.servers or not template.sum_ns:
        return ""
    if len(template.servers) == 1:
        return f"only on {template.servers[0].name}"
    shown = ", ".join(f"{part.name} {share_text(part.share)}" for part in template.servers[:_SHARES])
    return shown + (f", {len(template.servers) - _SHARES} more" if len(template.servers) > _SHARES else "")


def _server_counts(counts: Sequence[NameCount]) -> str:
    shown = ", ".join(f"{count.name} {format_count(count.count)}" for count in counts[:_SHOWN])
    return shown + (f", {len(counts) - _SHOWN} more" if len(counts) > _SHOWN else "")


_SENDER_WIDTH: Final = 70
_LINE: Final = 100
_MOST_FOLDS: Final = 50


def has_routes(result: LogResult) -> bool:
    """Return whether a comment in a statement names who sent it."""
    return any(route.kind != "session" for route in result.routes)


def routes_table(result: LogResult, most: int) -> Table | None:
    """Return up to `most` senders, the one with most time first; None if the log names no sender."""
    shown = result.routes[:most]
    ids = {template.number: f"template-{template.number}" for template in result.templates}
    requests = any(route.requests for route in shown)
    has_rows = any(route.rows is not None for route in shown)
    title = "Time by route" if has_routes(result) else "Time by application"
    return table_if_any(
        f"{title}{not_shown(len(result.routes) - len(shown), 'other')}",
        shown,
        header("sender", _sender),
        number("time", lambda route: duration_cell(route.sum_ns)),
        number("share", lambda route: share_cell(route.share)),
        number("count", lambda route: count_cell(route.executions)),
        number("mean", lambda route: mean_cell(route.sum_ns, route.executions)),
        number("requests", lambda route: count_cell(route.requests), when=requests),
        number("per request", _per_request, when=requests),
        number("rows a call", lambda route: _rows(route.rows), when=has_rows),
        column("statement with most time", lambda route: _costliest_statement(route, ids)),
        sortable=True,
    )


def route_tables(result: LogResult, top: int, *, full: bool) -> Iterator[Table | None]:
    """Yield the tables for a terminal: `top` routes if comments name any; with `full`, all that is known."""
    if full or has_routes(result):
        yield routes_table(result, len(result.routes) if full else top)
    if full:
        yield from _statement_tables(result, top)


def route_folds(result: LogResult) -> Iterator[Block]:
    """Yield the statements of each sender, behind a line each."""
    for route, table in zip(result.routes[:_MOST_FOLDS], _statement_tables(result, _MOST_FOLDS), strict=True):
        yield Fold(f"{_sender_name(route)}: {count_words(len(route.statements), 'template')}", (table,))


def _statement_tables(result: LogResult, most: int) -> Iterator[Table]:
    """Yield, for each of up to `most` senders, its statements."""
    ids = {template.number: f"template-{template.number}" for template in result.templates}
    return (_statements(route, ids) for route in result.routes[:most])


def _share_of_whole(part: float, whole: float | None) -> float:
    return part / whole if whole else 0.0


def _statements(route: RouteFacts, ids: dict[int, str]) -> Table:
    texts = [statement.text for statement in route.statements]
    links = [ids.get(statement.number, "") for statement in route.statements]
    return table_of(
        f"Statements of {_sender_name(route)}",
        route.statements,
        number("time", lambda statement: duration_cell(statement.sum_ns)),
        number(
            "share of its time", lambda statement: share_cell(_share_of_whole(statement.sum_ns, route.sum_ns))
        ),
        number("count", lambda statement: count_cell(statement.executions)),
        number(
            "per request",
            lambda statement: _number(_share_of_whole(statement.executions, route.requests)),
            when=route.requests,
        ),
        number("mean", lambda statement: mean_cell(statement.sum_ns, statement.executions)),
        number("longest", lambda statement: duration_cell(statement.max_ns)),
        number(
            "rows a call",
            lambda statement: _rows(statement.rows),
            when=any(statement.rows is not None for statement in route.statements),
        ),
        header("template", template_cells(texts, _LINE, links, back=False)),
        sortable=True,
    )


def _sender(route: RouteFacts) -> Value:
    """Return a sender's name; an application is marked, because it sends statements without a route."""
    if route.kind == "route":
        return Value(route.name, note=route.application)
    return Value(_sender_name(route), note="no route")


def _sender_name(route: RouteFacts) -> str:
    return route.name or "(unknown)"


def _per_request(route: RouteFacts) -> Value:
    return Value("") if not route.requests else _number(route.executions / route.requests)


def _rows(rows: float | None) -> Value:
    return Value("") if rows is None else _number(rows)


def _number(value: float) -> Value:
    return Value(f"{value:.1f}" if value < 100 else format_count(round(value)), sort=value)


def _costliest_statement(route: RouteFacts, ids: dict[int, str]) -> Value:
    if not route.statements:
        return Value("")
    first = route.statements[0]
    share = share_text(first.sum_ns / route.sum_ns) if route.sum_ns else format_duration(first.sum_ns)
    text, link = short_template(first.text, _SENDER_WIDTH), ids.get(first.number, "")
    return Value(text, note=share, code=True, link=link, back=False)
