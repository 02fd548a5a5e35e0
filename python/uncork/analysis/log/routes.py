"""Which route of an application sent which statements, as the comments in statements say."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from uncork.model.results.log_activity import RouteFacts, RouteKind, RouteStatement
from uncork.model.tables.log import RouteRow
from uncork.store.rows import typed_rows

_MOST: Final = 200
"""The most routes that a report shows; the table of the run holds all of them."""
_MOST_STATEMENTS: Final = 20
_NO_COUNTS: Final = (0, 0, 0, 0, 0)

Key = tuple[RouteKind, str, str]


@dataclass(slots=True)
class _Route:
    """Counts of each statement, and the requests of each sender.

    The counts are executions, their total and greatest time, plans with actual rows, and these rows.
    """

    statements: dict[int, Sequence[int]] = field(default_factory=dict)
    requests: dict[tuple[Any, ...], int] = field(default_factory=dict)

    def add(self, template: int, counts: Sequence[int]) -> None:
        known = self.statements.get(template)
        self.statements[template] = counts if known is None else _added(known, counts)


def _added(one: Sequence[int], other: Sequence[int]) -> Sequence[int]:
    (executions, micros, longest, plans, rows), more = one, other
    return executions + more[0], micros + more[1], max(longest, more[2]), plans + more[3], rows + more[4]


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
    for row in typed_rows(routes, RouteRow):
        route = found[_key(row)]
        route.add(row.template, (row.executions, row.sum_us, row.max_us, row.rows_plans, row.rows_sum))
        if row.requests is not None:
            # The same number is in each row of a sender.
            sender = (row.route, row.server, row.application, row.tagged_application, row.trace)
            route.requests[sender] = row.requests
        of = tagged[row.template, row.application]
        of[0] += row.executions
        of[1] += row.sum_us
    for application, statements in _without_comments(origins, tagged).items():
        if statements:
            found["session", application, application].statements = statements
    if not tagged and set(found) <= {("session", "", "")}:
        return ()
    facts = [_facts(key, route, texts, total) for key, route in found.items()]
    facts = [fact for fact in facts if fact.executions]
    return tuple(sorted(facts, key=lambda fact: (-fact.sum_ns, fact.kind, fact.name))[:_MOST])


def _key(row: RouteRow) -> Key:
    application = row.tagged_application or row.application
    if row.route:
        return "route", row.route, application
    return ("application" if row.tagged_application else "session"), application, application


def _without_comments(
    origins: pa.Table, tagged: Mapping[tuple[int, str], Sequence[int]]
) -> Mapping[str, dict[int, Sequence[int]]]:
    """Return the counts of each template that has executions without a comment, by application."""
    sums: dict[str, dict[int, Sequence[int]]] = defaultdict(dict)
    names = ("template", "application", "executions", "sum_us", "max_us")
    columns = (origins[name].to_pylist() for name in names)
    for template, application, executions, micros, longest in zip(*columns, strict=True):
        of, counts = sums[application], (executions, micros, longest, 0, 0)
        known = of.get(template)
        of[template] = counts if known is None else _added(known, counts)
    for (template, application), (executions, micros) in tagged.items():
        whole = sums[application].get(template, _NO_COUNTS)
        left = max(0, whole[1] - micros)
        # The longest may be one with a comment.
        sums[application][template] = (whole[0] - executions, left, min(whole[2], left), 0, 0)
    return {
        name: {template: counts for template, counts in of.items() if counts[0] > 0}
        for name, of in sums.items()
    }


def _facts(key: Key, route: _Route, texts: Sequence[str], total: int) -> RouteFacts:
    kind, name, application = key
    executions, micros, longest, plans, rows = zip(*route.statements.values(), strict=True)
    ranked = heapq.nsmallest(_MOST_STATEMENTS, route.statements.items(), key=lambda one: (-one[1][1], one[0]))
    return RouteFacts(
        kind=kind,
        name=name,
        application=application,
        requests=sum(route.requests.values()) or None,
        executions=sum(executions),
        sum_ns=sum(micros) * 1000,
        max_ns=max(longest) * 1000,
        share=sum(micros) / total if total else 0.0,
        rows=_rows_each(sum(plans), sum(rows)),
        statements=tuple(_statement(number, texts, counts) for number, counts in ranked if counts[0]),
    )


def _statement(number: int, texts: Sequence[str], counts: Sequence[int]) -> RouteStatement:
    executions, micros, longest, plans, rows = counts
    return RouteStatement(
        number=number,
        text=texts[number],
        executions=executions,
        sum_ns=micros * 1000,
        max_ns=longest * 1000,
        rows=_rows_each(plans, rows),
    )


def _rows_each(plans: int, rows: int) -> float | None:
    return rows / plans if plans else None
