"""Tables of the report on a profiled service."""

from __future__ import annotations

from uncork.model.results.service import RequestFacts, ServiceResult, WorkerFacts
from uncork.model.results.stacks import FrameFacts, RouteFrames
from uncork.model.template_words import short_template, short_templates
from uncork.model.units import format_count
from uncork.report.blocks import Table, Value
from uncork.report.cells import column, count_cell, header, number, table_if_any, table_of
from uncork.report.quantity_words import duration_text
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
    timed = result.mean_ns is not None
    return table_if_any(
        "Where the requests pass their time",
        [place for place in result.time if place.share >= 0.001],
        header("place", lambda place: PLACES[place.kind]),
        number("share", lambda place: _percent(place.share)),
        number("each request", lambda place: _time(place.ns), when=timed),
        number("requests there" if timed else "sessions", lambda place: _many(place.requests)),
    )


def pool_table(result: ServiceResult) -> Table | None:
    """Return what PgBouncer's console counted meanwhile; None if it was not read."""
    return table_if_any(
        "PgBouncer meanwhile, with all its clients",
        [] if result.pool is None else [result.pool],
        number("transactions per second", lambda pool: format_count(round(pool.transactions_s))),
        number("time per transaction", lambda pool: duration_text(pool.transaction_ns)),
        number("of it waiting", lambda pool: duration_text(pool.wait_ns)),
        number("clients waiting", lambda pool: many_text(pool.waiting)),
    )


def requests_table(result: ServiceResult) -> Table | None:
    """Return the requests with what each sends to the database; None if uncork sent none."""
    counted = any(request.statements is not None for request in result.requests)
    opened = any((request.connections or 0.0) >= _CONNECTIONS for request in result.requests)
    return table_if_any(
        "Requests, and what each sends to the database",
        result.requests,
        header(
            "request",
            [
                Value(request.name, link=request_id(place) if request.templates else "")
                for place, request in enumerate(result.requests)
            ],
        ),
        number("sent", lambda request: count_cell(request.sent)),
        number("mean", lambda request: _time(request.mean_ns)),
        number("p99", lambda request: _time(request.p99_ns)),
        number("in statements", lambda request: _time(request.database_ns), when=counted),
        number("statements", lambda request: _many(request.statements), when=counted),
        number("rows", lambda request: _many(request.rows), when=counted),
        number("connections", lambda request: _many(request.connections), when=opened),
        sortable=True,
    )


def request_id(place: int) -> str:
    """Return the link target of a request's statements."""
    return f"request-{place + 1}"


def templates_table(request: RequestFacts, *, width: int) -> Table | None:
    """Return the statements that one kind of request sends; None if they are unknown."""
    texts = short_templates([template.text for template in request.templates], width)
    traced = any(template.traced for template in request.templates)
    return table_if_any(
        f"Statements of each request: {request.name}",
        request.templates,
        number(
            "calls",
            lambda template: _many(template.calls, _interval(template.calls_low, template.calls_high)),
        ),
        number("rows a call", lambda template: _many(template.rows)),
        number("a call", lambda template: _time(template.call_ns)),
        number("each request", lambda template: _time(template.ns)),
        column("counted by", lambda template: "trace" if template.traced else "slices", when=traced),
        header("statement", [Value(text, code=True) for text in texts]),
        sortable=True,
    )


def workers_table(result: ServiceResult) -> Table | None:
    """Return the service's processes; None if they were not watched."""
    return table_if_any(
        "Processes of the service",
        result.workers,
        header("process", lambda worker: Value(str(worker.pid), sort=worker.pid)),
        column("command", lambda worker: worker.command),
        column("runtime", lambda worker: worker.runtime),
        number("processors used", _processors),
        number("waiting for one", _waiting),
        number("busiest thread", lambda worker: Value(percent_text(worker.busiest), sort=worker.busiest)),
        number("threads", lambda worker: count_cell(worker.threads)),
        number("database connections", lambda worker: count_cell(worker.sessions)),
        sortable=True,
    )


def _processors(worker: WorkerFacts) -> Value:
    return Value(many_text(worker.cpus), sort=worker.cpus, bar=min(1.0, worker.cpus))


def _waiting(worker: WorkerFacts) -> Value:
    return Value(many_text(worker.waited_ns / max(1, worker.elapsed_ns)), sort=worker.waited_ns)


def origins_table(result: ServiceResult) -> Table | None:
    """Return busy sessions by the route that their statements name; None if none does."""
    return table_if_any(
        "Busy sessions by the route that comments in their statements name",
        result.origins,
        header("route", lambda origin: origin.origin),
        number("sessions", lambda origin: _many(origin.sessions)),
        number("share", lambda origin: _percent(origin.share)),
    )


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
    spent = {route.name for route in measure.routes}
    others = [name for name in dict.fromkeys((*sessions, *logged)) if name not in spent]

    def statement(name: str) -> Value:
        busy, seen = sessions.get(name), logged.get(name)
        return _statement(busy.templates[0].name if busy else seen.statements[0].text if seen else "")

    return table_of(
        "Routes: functions and statements",
        (*measure.routes, *(RouteFrames(name, 0.0, ()) for name in others[:_MOST_IDLE])),
        header("route", lambda route: route.name or "(no route)"),
        number("share", lambda route: _percent(route.share)),
        column("hottest function", hottest_frame),
        number(
            "busy sessions",
            lambda route: _many(sessions[route.name].sessions) if route.name in sessions else "",
        ),
        column("statement with most time", lambda route: statement(route.name)),
        sortable=True,
    )


def _statement(text: str) -> Value:
    return Value(short_template(text, _STATEMENT), code=bool(text))


def functions_table(result: ServiceResult) -> Table | None:
    """Return, by request, functions of the service beside the statement with most time, if that was counted.

    The functions ran while only this request was sent. None if they were not recorded.
    """
    counted = any(request.templates for request in result.requests)
    recorded = [(request, request.functions) for request in result.requests if request.functions is not None]
    return table_if_any(
        f"Functions{' and statements' if counted else ''} of each request, sent alone",
        [functions for _, functions in recorded],
        header("request", [request.name for request, _ in recorded]),
        column("most time within", lambda functions: _frame_cell(functions.mostly, functions.samples)),
        column(
            "hottest function", lambda functions: _frame_cell(functions.hottest, functions.samples, own=True)
        ),
        column(
            "statement with most time",
            [_statement(request.templates[0].text if request.templates else "") for request, _ in recorded],
            when=counted,
        ),
        sortable=True,
    )


def _frame_cell(frame: FrameFacts | None, samples: int, *, own: bool = False) -> Value:
    if frame is None:
        return Value("")
    share = sampled_share(frame.own if own else frame.total, samples)
    return Value(frame_text(frame), note=share, code=True)


def _time(nanoseconds: float | None) -> Value:
    return Value(duration_text(nanoseconds), sort=nanoseconds)


def _percent(share: float) -> Value:
    return Value(percent_text(share), sort=share, bar=min(1.0, share))


def _many(count: float | None, note: str = "") -> Value:
    return Value(many_text(count), note=note, sort=count)


def _interval(low: float | None, high: float | None) -> str:
    if low is None or high is None or high - low < 0.05 * max(1.0, high):
        return ""
    return f"{many_text(low)} to {many_text(high)}"
