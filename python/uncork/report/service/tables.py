"""Tables of the report on a profiled service."""

from __future__ import annotations

from uncork.model.results.service import RequestFacts, ServiceResult
from uncork.model.results.stacks import FrameFacts, RouteFrames
from uncork.model.template_words import short_template, short_templates
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.service.words import PLACES, many_text, percent_text
from uncork.report.stacks.answer import frame_text, sampled_share
from uncork.report.stacks.tables import hottest_frame

_STATEMENT = 70
_MOST_IDLE = 20
"""The most routes without functions of their own that the table of routes shows."""
_CONNECTIONS = 0.05
"""Connections to the database for each request from which on the table shows them."""


def places_table(result: ServiceResult) -> Table | None:
    """Return where the requests pass their time; None if nothing was measured."""
    if not result.time:
        return None
    timed = result.mean_ns is not None
    rows = tuple(
        (
            Value(PLACES[place.kind]),
            Value(percent_text(place.share), sort=place.share, bar=min(1.0, place.share)),
            *((Value(_time(place.ns), sort=place.ns),) if timed else ()),
            Value(many_text(place.requests), sort=place.requests),
        )
        for place in result.time
        if place.share >= 0.001
    )
    columns = (
        Column("place", header=True),
        Column("share", number=True),
        *((Column("each request", number=True),) if timed else ()),
        Column("requests there" if timed else "sessions", number=True),
    )
    return Table("Where the requests pass their time", columns, rows)


def pool_table(result: ServiceResult) -> Table | None:
    """Return what PgBouncer's console counted meanwhile; None if it was not read."""
    pool = result.pool
    if pool is None:
        return None
    names = ("transactions per second", "time per transaction", "of it waiting", "clients waiting")
    return Table(
        "PgBouncer meanwhile, with all its clients",
        tuple(Column(name, number=True) for name in names),
        (
            (
                Value(format_count(round(pool.transactions_s))),
                Value(_time(pool.transaction_ns)),
                Value(_time(pool.wait_ns)),
                Value(many_text(pool.waiting)),
            ),
        ),
    )


def requests_table(result: ServiceResult) -> Table | None:
    """Return the requests with what each sends to the database; None if uncork sent none."""
    if not result.requests:
        return None
    counted = any(request.statements is not None for request in result.requests)
    opened = any((request.connections or 0.0) >= _CONNECTIONS for request in result.requests)
    rows = tuple(
        (
            Value(request.name, link=request_id(place) if request.templates else ""),
            Value(format_count(request.sent), sort=request.sent),
            Value(_time(request.mean_ns), sort=request.mean_ns),
            *((Value(_time(request.p99_ns), sort=request.p99_ns),)),
            *(
                (
                    Value(_time(request.database_ns), sort=request.database_ns),
                    Value(many_text(request.statements), sort=request.statements),
                    Value(many_text(request.rows), sort=request.rows),
                )
                if counted
                else ()
            ),
            *((Value(many_text(request.connections), sort=request.connections),) if opened else ()),
        )
        for place, request in enumerate(result.requests)
    )
    columns = (
        *(Column("request", header=True), Column("sent", number=True), Column("mean", number=True)),
        Column("p99", number=True),
        *(
            (
                Column("in statements", number=True),
                Column("statements", number=True),
                Column("rows", number=True),
            )
            if counted
            else ()
        ),
        *((Column("connections", number=True),) if opened else ()),
    )
    return Table("Requests, and what each sends to the database", columns, rows, sortable=True)


def request_id(place: int) -> str:
    """Return the link target of a request's statements."""
    return f"request-{place + 1}"


def templates_table(request: RequestFacts, *, width: int) -> Table | None:
    """Return the statements that one kind of request sends; None if they are unknown."""
    if not request.templates:
        return None
    texts = short_templates([template.text for template in request.templates], width)
    traced = any(template.traced for template in request.templates)
    rows = tuple(
        (
            Value(
                many_text(template.calls),
                note=_interval(template.calls_low, template.calls_high),
                sort=template.calls,
            ),
            Value(many_text(template.rows), sort=template.rows),
            Value(_time(template.call_ns), sort=template.call_ns),
            Value(_time(template.ns), sort=template.ns),
            *((Value("trace" if template.traced else "slices"),) if traced else ()),
            Value(text, code=True),
        )
        for template, text in zip(request.templates, texts, strict=True)
    )
    columns = (
        *(Column("calls", number=True), Column("rows a call", number=True), Column("a call", number=True)),
        Column("each request", number=True),
        *((Column("counted by"),) if traced else ()),
        Column("statement", header=True),
    )
    return Table(f"Statements of each request: {request.name}", columns, rows, sortable=True)


def workers_table(result: ServiceResult) -> Table | None:
    """Return the service's processes; None if they were not watched."""
    if not result.workers:
        return None
    rows = tuple(
        (
            Value(str(worker.pid), sort=worker.pid),
            Value(worker.command),
            Value(worker.runtime),
            Value(many_text(worker.cpus), sort=worker.cpus, bar=min(1.0, worker.cpus)),
            Value(many_text(worker.waited_ns / max(1, worker.elapsed_ns)), sort=worker.waited_ns),
            Value(percent_text(worker.busiest), sort=worker.busiest),
            Value(format_count(worker.threads), sort=worker.threads),
            Value("" if worker.sessions is None else format_count(worker.sessions), sort=worker.sessions),
        )
        for worker in result.workers
    )
    columns = (
        *(Column("process", header=True), Column("command"), Column("runtime")),
        *(Column("processors used", number=True), Column("waiting for one", number=True)),
        *(Column("busiest thread", number=True), Column("threads", number=True)),
        Column("database connections", number=True),
    )
    return Table("Processes of the service", columns, rows, sortable=True)


def origins_table(result: ServiceResult) -> Table | None:
    """Return busy sessions by the route that their statements name; None if none does."""
    if not result.origins:
        return None
    rows = tuple(
        (
            Value(origin.origin),
            Value(many_text(origin.sessions), sort=origin.sessions),
            Value(percent_text(origin.share), sort=origin.share, bar=origin.share),
        )
        for origin in result.origins
    )
    columns = (Column("route", header=True), Column("sessions", number=True), Column("share", number=True))
    return Table("Busy sessions by the route that comments in their statements name", columns, rows)


def routes_table(result: ServiceResult) -> Table | None:
    """Return, by route, the service's hottest function beside the statement with most time.

    Labels in the service's own profile name the route of a function, and comments name the route of a
    statement. A route has a row even if only labels or only comments name it. Returns None if no function has
    a route.
    """
    measures = () if result.code is None else result.code.measures
    measure = next((measure for measure in measures if measure.routes), None)
    if measure is None:
        return None
    sessions = {route.name: route for route in (() if result.database is None else result.database.routes)}
    logged = {route.name: route for route in (() if result.log is None else result.log.routes)}
    rows = []
    spent = {route.name for route in measure.routes}
    others = [name for name in dict.fromkeys((*sessions, *logged)) if name not in spent]
    idle = [RouteFrames(name, 0.0, ()) for name in others[:_MOST_IDLE]]
    for route in (*measure.routes, *idle):
        busy, seen = sessions.get(route.name), logged.get(route.name)
        text = busy.templates[0].name if busy else seen.statements[0].text if seen else ""
        rows.append(
            (
                Value(route.name or "(no route)"),
                Value(percent_text(route.share), sort=route.share, bar=route.share),
                hottest_frame(route),
                Value("" if busy is None else many_text(busy.sessions), sort=busy.sessions if busy else None),
                Value(short_template(text, _STATEMENT), code=bool(text)),
            )
        )
    columns = (
        *(Column("route", header=True), Column("share", number=True), Column("hottest function")),
        *(Column("busy sessions", number=True), Column("statement with most time")),
    )
    return Table("Routes: functions and statements", columns, tuple(rows), sortable=True)


def functions_table(result: ServiceResult) -> Table | None:
    """Return, by request, functions of the service beside the statement with most time, if that was counted.

    The functions ran while only this request was sent. None if they were not recorded.
    """
    counted = any(request.templates for request in result.requests)
    rows = []
    for request in result.requests:
        functions = request.functions
        if functions is None:
            continue
        text = request.templates[0].text if request.templates else ""
        statement = Value(short_template(text, _STATEMENT), code=bool(text))
        rows.append(
            (
                Value(request.name),
                _frame_cell(functions.mostly, functions.samples),
                _frame_cell(functions.hottest, functions.samples, own=True),
                *((statement,) if counted else ()),
            )
        )
    if not rows:
        return None
    columns = (
        *(Column("request", header=True), Column("most time within"), Column("hottest function")),
        *((Column("statement with most time"),) if counted else ()),
    )
    caption = f"Functions{' and statements' if counted else ''} of each request, sent alone"
    return Table(caption, columns, tuple(rows), sortable=True)


def _frame_cell(frame: FrameFacts | None, samples: int, *, own: bool = False) -> Value:
    if frame is None:
        return Value("")
    share = sampled_share(frame.own if own else frame.total, samples)
    return Value(frame_text(frame), note=share, code=True)


def _time(ns: float | None) -> str:
    return "" if ns is None else format_duration(ns)


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None or high - low < 0.05 * max(1.0, high):
        return ""
    return f"{many_text(low)} to {many_text(high)}"
