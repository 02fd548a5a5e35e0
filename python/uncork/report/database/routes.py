"""Tables of busy sessions by the route that comments in their statements name."""

from __future__ import annotations

from typing import Final

from uncork.model.results.database import DatabaseResult, RouteActivity
from uncork.model.template_words import short_template, short_templates
from uncork.report.blocks import Column, Table, Value
from uncork.report.cells import share_cell
from uncork.report.database.words import sessions_text
from uncork.report.quantity_words import share_text
from uncork.report.words import count_words

_WIDTH: Final = 70


def routes_table(result: DatabaseResult, most: int) -> Table | None:
    """Return up to `most` routes with their sessions; None if no comment names a route."""
    if not result.routes:
        return None
    shown = result.routes[:most]
    left = len(result.routes) - len(shown)
    return Table(
        "Busy sessions by the route that comments in their statements name"
        + (f"; {count_words(left, 'other')} not shown" if left else ""),
        (
            Column("route", header=True),
            Column("sessions", number=True),
            Column("share", number=True),
            Column("statement with most time"),
        ),
        tuple(
            (
                Value(_name(route_activity)),
                Value(sessions_text(route_activity.sessions), sort=route_activity.sessions),
                share_cell(route_activity.share),
                _costliest(route_activity),
            )
            for route_activity in shown
        ),
        sortable=True,
    )


def route_templates_table(route_activity: RouteActivity, *, width: int) -> Table:
    """Return the statements of a route."""
    texts = short_templates([template.name for template in route_activity.templates], width)
    return Table(
        f"Statements of {_name(route_activity)}",
        (Column("sessions", number=True), Column("share", number=True), Column("template", header=True)),
        tuple(
            (
                Value(sessions_text(template.sessions), sort=template.sessions),
                share_cell(template.share),
                Value(text, code=True),
            )
            for template, text in zip(route_activity.templates, texts, strict=True)
        ),
        sortable=True,
    )


def _name(route_activity: RouteActivity) -> str:
    return route_activity.name or "(no route)"


def _costliest(route_activity: RouteActivity) -> Value:
    first = route_activity.templates[0]
    return Value(short_template(first.name, _WIDTH), note=share_text(first.share), code=True)
