"""The report on a profiled service, as a document and in a terminal: its bottleneck, and its tables."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console

from uncork.model.database.finding import Finding
from uncork.model.database.index import within_transaction
from uncork.model.results.service import RequestFacts, ServiceResult, WorkerFacts
from uncork.model.results.stacks import FrameFacts, RouteFrames
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import (
    Block,
    Code,
    Document,
    Flame,
    Fold,
    Section,
    Step,
    Table,
    Value,
    filled_section,
)
from uncork.report.cells import column, count_cell, header, number, table_if_any, table_of, template_cells
from uncork.report.database.document import build_database_document
from uncork.report.findings import careful_last, finding_step, hidden_steps
from uncork.report.headline import capital, uncapital
from uncork.report.load.document import build_load_document
from uncork.report.log.document import build_log_document
from uncork.report.service.answer import PLACES, many_text, percent_text
from uncork.report.stacks.answer import frame_text, sampled_share
from uncork.report.stacks.document import build_stack_document, frames_table, hottest_frame
from uncork.report.words import duration_text
from uncork.report.write.terminal_text import TerminalPart, write_report

_LINE: Final = 100
_MOST_STEPS: Final = 3
_LEFT_OUT: Final = frozenset(
    {
        *("code-reproduce", "database-reproduce", "log-reproduce", "load-reproduce"),
        *("database-machine", "database-routes", "load-environment"),
    }
)
"""Sections of the parts' reports that the profile's report has itself, or that its parts would repeat."""


def build_service_document(result: ServiceResult, flames: Sequence[Flame] = ()) -> Document:
    """Return the report on a profiled service, without empty sections."""
    load = None if result.load is None else build_load_document(result.load)
    behind = f" with the database {result.run.database}" if result.run.database else ""
    again = Code(result.run.reproduce, "sh") if result.run.reproduce else None
    end = filled_section("reproduce", "How to repeat this profile", again)
    return Document(
        title=result.run.id,
        question=f"What is the bottleneck of {result.run.server}{behind}?",
        answer=result.answer,
        reasons=(*result.reasons, *result.warnings),
        steps=careful_last(_steps(result)),
        facts=tuple(_facts(result)),
        variants=() if load is None else load.variants,
        sections=(*_sections(result), *_parts(result, load, flames), *end),
        version=result.run.uncork_version,
    )


def _steps(result: ServiceResult) -> Iterator[Step]:
    if result.database is not None:
        yield from hidden_steps(result.database.hidden, result.database.unplanned, result.run.reproduce)
    from_database = _database_step(result)
    if from_database is not None:
        yield finding_step(from_database)
    index = from_database is not None and from_database.rule == "missing-index"
    findings = [finding for finding in result.findings if not (index and finding.name == "missing index")]
    for remedy in list(dict.fromkeys(finding.remedy for finding in findings))[:_MOST_STEPS]:
        yield Step(f"{capital(remedy)}.")
    if result.findings and result.load is not None:
        change = ""
        sql = "" if from_database is None or not index else from_database.candidates[0].sql
        if sql:
            change = f" --change index={shlex.quote(within_transaction(sql))}"
        yield Step(
            "Prove a change before you make it: write the experiment about this service, and run it:",
            f"uncork new question.toml --from {result.run.id}{change}",
        )
    if result.findings:
        yield Step("After a change, profile the service again:", result.run.reproduce)


def _database_step(result: ServiceResult) -> Finding | None:
    """Return the finding on the database whose step the report names, if it adds to the others."""
    found = () if result.database is None else result.database.findings
    names = {finding.name for finding in result.findings}
    indexes = [finding for finding in found if finding.rule == "missing-index" and "missing index" in names]
    others = [finding for finding in found if finding.rule != "one-by-one" or "n+1" not in names]
    return next(iter((*indexes, *others)), None)


def _facts(result: ServiceResult) -> Iterator[tuple[str, str]]:
    yield "run", result.run.id
    yield "started", result.run.started_at[:16].replace("T", " ")
    yield "took", format_duration(result.run.elapsed_ns)
    yield "service", result.run.server
    if result.run.database:
        yield "database", result.run.database
    if result.in_flight:
        yield "requests in flight", f"{result.in_flight:.1f}"
    if result.explained is not None:
        yield "statements explained by the requests", percent_text(result.explained)


def _sections(result: ServiceResult) -> Iterator[Section]:
    yield from filled_section("time", "Where the time goes", _places_table(result), _pool_table(result))
    folds: list[Block] = []
    for place, request in enumerate(result.requests):
        table = templates_table(request, width=_LINE)
        if table is not None:
            folds.append(
                Fold(f"Statements of {request.name}", (table,), open=place == 0, id=_request_id(place))
            )
    yield from filled_section("requests", "Requests", _requests_table(result), *folds)
    yield from filled_section("processes", "Processes", _workers_table(result))
    found = None if result.database is None else build_database_document(result.database)
    routes = (
        next((section.blocks for section in found.sections if section.id == "routes"), ()) if found else ()
    )
    yield from filled_section("functions", "Functions of each request", functions_table(result))
    origins = () if routes else (_origins_table(result),)
    yield from filled_section("routes", "Routes", routes_table(result), *routes, *origins)


def _parts(result: ServiceResult, load: Document | None, flames: Sequence[Flame]) -> Iterator[Section]:
    if result.code is not None:
        yield from _of("code", "Functions", build_stack_document(result.code, flames))
    if result.database is not None:
        yield from _of("database", "Database", build_database_document(result.database))
    if result.log is not None:
        yield from _of("log", "Log", build_log_document(result.log))
    if load is not None:
        yield from _of("load", "Load", load)


def _of(name: str, title: str, document: Document) -> Iterator[Section]:
    for section in document.sections:
        if f"{name}-{section.id}" in _LEFT_OUT:
            continue
        shown = f"{title}: {uncapital(section.title)}"
        yield replace(section, id=f"{name}-{section.id}", title=shown)


_NUMBERS: Final = 44
"""Characters that the numbers of a statement take."""
_LEAST_TEXT: Final = 30


def render_service_terminal(
    result: ServiceResult, console: Console, *, top: int = 5, full: bool = False
) -> None:
    """Print the report: the statements of the costliest request, or with `full` of all; `top` functions."""
    write_report(
        console, build_service_document(result), _terminal_parts(result, console.width, top, full=full)
    )


def _terminal_parts(result: ServiceResult, width: int, top: int, *, full: bool) -> Iterator[TerminalPart]:
    yield _places_table(result)
    yield _pool_table(result)
    yield _requests_table(result)
    for request in result.requests if full else result.requests[:1]:
        yield templates_table(request, width=max(_LEAST_TEXT, width - _NUMBERS))
    yield _workers_table(result)
    yield functions_table(result)
    yield routes_table(result) or _origins_table(result)
    if result.code is not None:
        for measure in [measure for measure in result.code.measures if measure.name != "off-cpu"][:1]:
            yield frames_table(measure, top)


_STATEMENT = 70
_MOST_IDLE = 20
"""The most routes without functions of their own that the table of routes shows."""
_CONNECTIONS = 0.05
"""Connections to the database for each request from which on the table shows them."""


def _places_table(result: ServiceResult) -> Table | None:
    timed = result.mean_ns is not None
    return table_if_any(
        "Where the requests pass their time",
        [place for place in result.time if place.share >= 0.001],
        header("place", lambda place: PLACES[place.kind][0]),
        number("share", lambda place: _percent(place.share)),
        number("each request", lambda place: _time(place.ns), when=timed),
        number("requests there" if timed else "sessions", lambda place: _many(place.requests)),
    )


def _pool_table(result: ServiceResult) -> Table | None:
    return table_if_any(
        "PgBouncer meanwhile, with all its clients",
        [] if result.pool is None else [result.pool],
        number("transactions per second", lambda pool: format_count(round(pool.transactions_s))),
        number("time per transaction", lambda pool: duration_text(pool.transaction_ns)),
        number("of it waiting", lambda pool: duration_text(pool.wait_ns)),
        number("clients waiting", lambda pool: many_text(pool.waiting)),
    )


def _requests_table(result: ServiceResult) -> Table | None:
    counted = any(request.statements is not None for request in result.requests)
    opened = any((request.connections or 0.0) >= _CONNECTIONS for request in result.requests)
    return table_if_any(
        "Requests, and what each sends to the database",
        result.requests,
        header(
            "request",
            [
                Value(request.name, link=_request_id(place) if request.templates else "")
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


def _request_id(place: int) -> str:
    return f"request-{place + 1}"


def templates_table(request: RequestFacts, *, width: int) -> Table | None:
    """Return the statements that one kind of request sends; None if they are unknown."""
    texts = [template.text for template in request.templates]
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
        header("statement", template_cells(texts, width)),
        sortable=True,
    )


def _workers_table(result: ServiceResult) -> Table | None:
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


def _origins_table(result: ServiceResult) -> Table | None:
    return table_if_any(
        "Busy sessions by the route that comments in their statements name",
        result.origins,
        header("route", lambda origin: origin.origin),
        number("sessions", lambda origin: _many(origin.sessions)),
        number("share", lambda origin: _percent(origin.share)),
    )


def routes_table(result: ServiceResult) -> Table | None:
    """Return each route's hottest function and costliest statement; None if no function has a route."""
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
    """Return functions and statements of each request, sent alone; None if they were not recorded."""
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
