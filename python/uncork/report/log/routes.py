"""Who sent which statements, as the comments in statements name it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.results.log import LogResult
from uncork.model.results.log_activity import RouteFacts
from uncork.model.template_words import short_template, short_templates
from uncork.model.units import count_words, format_count, format_duration, share_text
from uncork.report.blocks import Block, Fold, Table, Value
from uncork.report.cells import (
    column,
    count_cell,
    duration_cell,
    header,
    mean_cell,
    not_shown,
    number,
    share_cell,
    table_if_any,
    table_of,
)

_WIDTH: Final = 70
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
        column("statement with most time", lambda route: _costliest(route, ids)),
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
        yield Fold(f"{_name(route)}: {count_words(len(route.statements), 'template')}", (table,))


def _statement_tables(result: LogResult, most: int) -> Iterator[Table]:
    """Yield, for each of up to `most` senders, its statements."""
    ids = {template.number: f"template-{template.number}" for template in result.templates}
    return (_statements(route, ids) for route in result.routes[:most])


def _part(part: float, whole: float | None) -> float:
    return part / whole if whole else 0.0


def _statements(route: RouteFacts, ids: dict[int, str]) -> Table:
    texts = short_templates([statement.text for statement in route.statements], _LINE)
    return table_of(
        f"Statements of {_name(route)}",
        route.statements,
        number("time", lambda statement: duration_cell(statement.sum_ns)),
        number("share of its time", lambda statement: share_cell(_part(statement.sum_ns, route.sum_ns))),
        number("count", lambda statement: count_cell(statement.executions)),
        number(
            "per request",
            lambda statement: _number(_part(statement.executions, route.requests)),
            when=route.requests,
        ),
        number("mean", lambda statement: mean_cell(statement.sum_ns, statement.executions)),
        number("longest", lambda statement: duration_cell(statement.max_ns)),
        number(
            "rows a call",
            lambda statement: _rows(statement.rows),
            when=any(statement.rows is not None for statement in route.statements),
        ),
        header(
            "template",
            [
                Value(text, code=True, link=ids.get(statement.number, ""), back=False)
                for statement, text in zip(route.statements, texts, strict=True)
            ],
        ),
        sortable=True,
    )


def _sender(route: RouteFacts) -> Value:
    """Return a sender's name; an application is marked, because it sends statements without a route."""
    if route.kind == "route":
        return Value(route.name, note=route.application)
    return Value(_name(route), note="no route")


def _name(route: RouteFacts) -> str:
    return route.name or "(unknown)"


def _per_request(route: RouteFacts) -> Value:
    return Value("") if not route.requests else _number(route.executions / route.requests)


def _rows(rows: float | None) -> Value:
    return Value("") if rows is None else _number(rows)


def _number(value: float) -> Value:
    return Value(f"{value:.1f}" if value < 100 else format_count(round(value)), sort=value)


def _costliest(route: RouteFacts, ids: dict[int, str]) -> Value:
    if not route.statements:
        return Value("")
    first = route.statements[0]
    share = share_text(first.sum_ns / route.sum_ns) if route.sum_ns else format_duration(first.sum_ns)
    text, link = short_template(first.text, _WIDTH), ids.get(first.number, "")
    return Value(text, note=share, code=True, link=link, back=False)
