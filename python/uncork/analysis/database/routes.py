"""Busy sessions by the route that comments in their statements name. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from uncork.model.results.database import RouteActivity
from uncork.profile import activity

_MOST: Final = 100
"""The most routes that a report shows."""
_MOST_TEMPLATES: Final = 20
_UNKNOWN: Final = "(not told)"

Row = Mapping[str, Any]


def routes_of(rows: Sequence[Row], whole: float, texts: Mapping[int, str]) -> tuple[RouteActivity, ...]:
    """Return the routes with the most busy sessions first; empty if no comment names one.

    `rows` are sessions by origin and template with their time (`weight`) in a watch of `whole` microseconds,
    and `texts` are templates by number. Sessions without a route are one row with the name "".
    """
    by_route: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_route[row["origin"] or ""].append(row)
    if set(by_route) <= {""}:
        return ()
    averages = {name: sum(row["weight"] for row in of) / whole for name, of in by_route.items()}
    found = activity.usage(averages, sum(averages.values()))
    return tuple(
        RouteActivity(
            usage.name,
            usage.sessions,
            usage.share,
            activity.usage(
                activity.averages(
                    by_route[usage.name], lambda row: texts.get(row["template"], _UNKNOWN), whole
                ),
                usage.sessions,
            )[:_MOST_TEMPLATES],
        )
        for usage in found[:_MOST]
    )
