"""Which route of an application sent which statements, as the comments in statements say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from uncork.model.results.log_activity import RouteFacts, RouteKind, RouteStatement

__all__ = ["routes_of"]

_MOST: Final = 200
"""The most routes that a report shows; the table of the run holds all of them."""
_MOST_STATEMENTS: Final = 20

Row = Mapping[str, Any]
Key = tuple[RouteKind, str, str]


@dataclass(slots=True)
class _Sum:
    executions: int = 0
    micros: int = 0
    longest: int = 0
    rows_plans: int = 0
    rows: int = 0

    def add(self, row: Row) -> None:
        self.executions += row["executions"]
        self.micros += row["sum_us"]
        self.longest = max(self.longest, row["max_us"])
        self.rows_plans += row.get("rows_plans", 0)
        self.rows += row.get("rows_sum", 0)

    @property
    def rows_each(self) -> float | None:
        return self.rows / self.rows_plans if self.rows_plans else None


@dataclass(slots=True)
class _Route:
    whole: _Sum = field(default_factory=_Sum)
    statements: dict[int, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    requests: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        self.whole.add(row)
        self.statements[row["template"]].add(row)


def routes_of(
    routes: pa.Table, origins: pa.Table, texts: Sequence[str], total: int
) -> tuple[RouteFacts, ...]:
    """Return who sent statements, the one with the most time first. Pure.

    `routes` are statements whose comment names their sender, `origins` all statements. Those without such a
    comment count for the application of their session. `texts` are those of all templates, by number, and
    `total` is the time of all statements in microseconds.
    """
    found: dict[Key, _Route] = defaultdict(_Route)
    tagged: dict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for row in routes.to_pylist():
        route = found[_key(row)]
        route.add(row)
        if row["requests"] is not None:
            # The same number is in each row of a sender.
            sender = tuple(row[name] for name in ("server", "application", "tagged_application", "trace"))
            route.requests[(row["route"], *sender)] = row["requests"]
        of = tagged[row["template"], row["application"]]
        of[0] += row["executions"]
        of[1] += row["sum_us"]
    for row in _without_comments(origins.to_pylist(), tagged):
        found["session", row["application"], row["application"]].add(row)
    if not tagged and set(found) <= {("session", "", "")}:
        return ()
    facts = [_facts(key, route, texts, total) for key, route in found.items() if route.whole.executions]
    return tuple(sorted(facts, key=lambda one: (-one.sum_ns, one.kind, one.name))[:_MOST])


def _key(row: Row) -> Key:
    application = row["tagged_application"] or row["application"]
    if row["route"]:
        return "route", row["route"], application
    return ("application" if row["tagged_application"] else "session"), application, application


def _without_comments(rows: Iterable[Row], tagged: Mapping[tuple[int, str], Sequence[int]]) -> Iterable[Row]:
    """Yield the executions of each template and application that have no comment."""
    sums: dict[tuple[int, str], _Sum] = defaultdict(_Sum)
    for row in rows:
        sums[row["template"], row["application"]].add(row)
    for (template, application), of in sums.items():
        executions, micros = tagged.get((template, application), (0, 0))
        if of.executions > executions:
            yield {
                "template": template,
                "application": application,
                "executions": of.executions - executions,
                "sum_us": max(0, of.micros - micros),
                # The longest may be one with a comment.
                "max_us": min(of.longest, max(0, of.micros - micros)),
            }


def _facts(key: Key, route: _Route, texts: Sequence[str], total: int) -> RouteFacts:
    kind, name, application = key
    whole, requests = route.whole, sum(route.requests.values())
    ranked = sorted(route.statements.items(), key=lambda one: (-one[1].micros, one[0]))
    return RouteFacts(
        kind=kind,
        name=name,
        application=application,
        requests=requests or None,
        executions=whole.executions,
        sum_ns=whole.micros * 1000,
        max_ns=whole.longest * 1000,
        share=whole.micros / total if total else 0.0,
        rows=whole.rows_each,
        statements=tuple(
            RouteStatement(
                number=number,
                text=texts[number],
                executions=of.executions,
                sum_ns=of.micros * 1000,
                max_ns=of.longest * 1000,
                rows=of.rows_each,
            )
            for number, of in ranked[:_MOST_STATEMENTS]
            if of.executions
        ),
    )
