"""Which route of an application sent which statements, as the comments in statements say."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from uncork.model.results.log_activity import RouteFacts, RouteKind, RouteStatement

__all__ = ["routes_of"]

_MOST: Final = 200
"""The most routes that a report shows; the table of the run holds all of them."""
_MOST_STATEMENTS: Final = 20
_COUNTS: Final = ("executions", "sum_us", "max_us", "rows_plans", "rows_sum")

Row = Mapping[str, Any]
Key = tuple[RouteKind, str, str]


@dataclass(slots=True)
class _Sum:
    executions: int = 0
    micros: int = 0
    longest: int = 0
    rows_plans: int = 0
    rows: int = 0

    def add(self, executions: int, micros: int, longest: int, rows_plans: int = 0, rows: int = 0) -> None:
        self.executions += executions
        self.micros += micros
        self.longest = max(self.longest, longest)
        self.rows_plans += rows_plans
        self.rows += rows

    @property
    def rows_each(self) -> float | None:
        return self.rows / self.rows_plans if self.rows_plans else None


@dataclass(slots=True)
class _Route:
    whole: _Sum = field(default_factory=_Sum)
    statements: dict[int, _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    requests: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, template: int, *counts: int) -> None:
        self.whole.add(*counts)
        self.statements[template].add(*counts)


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
        route.add(row["template"], *(row[name] for name in _COUNTS))
        if row["requests"] is not None:
            # The same number is in each row of a sender.
            sender = tuple(row[name] for name in ("server", "application", "tagged_application", "trace"))
            route.requests[(row["route"], *sender)] = row["requests"]
        of = tagged[row["template"], row["application"]]
        of[0] += row["executions"]
        of[1] += row["sum_us"]
    for (template, application), counts in _without_comments(origins, tagged):
        found["session", application, application].add(template, *counts)
    if not tagged and set(found) <= {("session", "", "")}:
        return ()
    facts = [_facts(key, route, texts, total) for key, route in found.items() if route.whole.executions]
    return tuple(sorted(facts, key=lambda one: (-one.sum_ns, one.kind, one.name))[:_MOST])


def _key(row: Row) -> Key:
    application = row["tagged_application"] or row["application"]
    if row["route"]:
        return "route", row["route"], application
    return ("application" if row["tagged_application"] else "session"), application, application


def _without_comments(
    origins: pa.Table, tagged: Mapping[tuple[int, str], Sequence[int]]
) -> Iterator[tuple[tuple[int, str], tuple[int, int, int]]]:
    """Yield the executions of each template and application that have no comment, and their times."""
    sums: dict[tuple[int, str], tuple[int, int, int]] = {}
    names = ("template", "application", "executions", "sum_us", "max_us")
    columns = (origins[name].to_pylist() for name in names)
    for template, application, *counts in zip(*columns, strict=True):
        executions, micros, longest = sums.get((template, application), (0, 0, 0))
        sums[template, application] = (
            executions + counts[0],
            micros + counts[1],
            max(longest, counts[2]),
        )
    for key, (all_executions, all_micros, longest) in sums.items():
        executions, micros = tagged.get(key, (0, 0))
        if all_executions > executions:
            left = max(0, all_micros - micros)
            # The longest may be one with a comment.
            yield key, (all_executions - executions, left, min(longest, left))


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
