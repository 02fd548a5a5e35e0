"""Who and what took how much of the time: executions added up by a name, and by routes."""

from __future__ import annotations

import heapq
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pyarrow as pa

from uncork.model.records import build_from
from uncork.model.results.log import OTHERS, Contribution, RouteFacts, RouteKind, RouteStatement
from uncork.model.tables.log import OriginRow, RouteRow
from uncork.store.tables import typed_rows

COUNTED: Final = ("executions", "sum_us", "max_us")
"""The columns that are added up."""
_MOST: Final = 100
"""Names that a report shows; `_MOST_OF_TEMPLATE` of a single template."""
_MOST_OF_TEMPLATE: Final = 10

Origin = Literal["application", "user", "database", "host", "server"]


def contributions(
    names: Iterable[str], counts: Mapping[str, Sequence[int]], total: int, most: int = _MOST
) -> tuple[Contribution, ...]:
    """Add up executions by their names, in descending order of time; empty if there are no names.

    `counts` has the columns of `COUNTED`. Names beyond the first `most` are added up. Plain loops:
    to load Arrow's own grouping takes longer than they take for 50 000 rows.
    """
    sums = _sums(list(names), *(counts[name] for name in COUNTED))
    if not any(sums):
        return ()
    others = sums.pop(OTHERS, None)
    ranked = sorted(sums.items(), key=lambda item: (-item[1][1], item[0]))
    left = [*(of for _, of in ranked[most:]), *([others] if others else [])]
    if left:
        executed, times, maxima = zip(*left, strict=True)
        ranked[most:] = [(OTHERS, [sum(executed), sum(times), max(maxima)])]
    return tuple(
        Contribution(key, executions, micros * 1000, longest * 1000, micros / total if total else 0.0)
        for key, (executions, micros, longest) in ranked
    )


def _sums(
    names: Sequence[str], executions: Sequence[int], micros: Sequence[int], longest: Sequence[int]
) -> dict[str, list[int]]:
    if len(set(names)) == 1:
        return {names[0]: [sum(executions), sum(micros), max(longest)]}
    sums: dict[str, list[int]] = {}
    for key, executed, spent, most in zip(names, executions, micros, longest, strict=True):
        of = sums.get(key)
        if of is None:
            sums[key] = [executed, spent, most]
            continue
        of[0] += executed
        of[1] += spent
        of[2] = max(of[2], most)
    return sums


def of_template(rows: Sequence[OriginRow], name: Origin, total: int) -> tuple[Contribution, ...]:
    """Add up the rows of a template by a name, as `contributions` does."""
    names: list[str] = [getattr(row, name) for row in rows]
    if len(rows) == 1 and names[0] not in ("", OTHERS):
        share = rows[0].sum_us / total if total else 0.0
        return (build_from(Contribution, rows[0], name=names[0], share=share),)
    counts = {column: [getattr(row, column) for row in rows] for column in COUNTED}
    return contributions(names, counts, total, _MOST_OF_TEMPLATE)


def kinds_of(columns: Mapping[str, Sequence[Any]], total: int) -> tuple[Contribution, ...]:
    """Add up executions by the kind of statement. `columns` are those of templates."""
    executed = [at for at, executions in enumerate(columns["executions"]) if executions]
    counts = {name: [columns[name][at] for at in executed] for name in COUNTED}
    texts = columns["text"]
    return contributions((kind_of(texts[at]) for at in executed), counts, total)


# ---- the kind of a template: SELECT, COPY FROM, EXPLAIN, and so on ----


_TOKEN = re.compile(r'"(?:[^"]|"")*"|[^\W\d][\w$]*|[()]')
_DEPTH = {"(": 1, ")": -1}
_MAIN = {"select", "insert", "update", "delete", "merge", "values", "table"}
"""The first words of statements that may follow WITH."""
_LONGER = {"with", "copy"}
_PLACEHOLDERS = {"(rare statements)", "(empty statement)"}
"""Names that stand for statements without a template of their own."""


def kind_of(text: str) -> str:
    """Name the kind of a template by its first word; a query behind WITH by the main statement's word.

    COPY is "COPY TO" or "COPY FROM", by its direction.
    """
    end = text.find(" ")
    word = text if end < 0 else text[:end]
    if word.isalpha() and word not in _LONGER:
        return word.upper()  # most kinds are known by the first word
    bare = text.lstrip("( ")
    if text in _PLACEHOLDERS or not bare[:1].isalpha():
        return "other"
    words = _outer_words(bare)
    word = next(words)  # a letter begins it
    if word == "with":
        word = next((word for word in words if word in _MAIN), word)
    elif word == "copy":
        # A query, in brackets, can only be copied to somewhere.
        copies_query = bare[len("copy") :].lstrip().startswith("(")
        direction = "to" if copies_query else next((word for word in words if word in {"to", "from"}), "")
        word = f"copy {direction}".rstrip()
    return word.upper()


def _outer_words(text: str) -> Iterator[str]:
    depth = 0
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word in _DEPTH:
            depth = max(0, depth + _DEPTH[word])
        elif depth == 0:
            yield word


# ---- which route of an application sent which statements, as comments say ----


_MOST_ROUTES: Final = 200
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

    `routes` are statements whose comment names their sender, `origins` all statements. Those
    without such a comment count for the application of their session. `texts` are those of all
    templates, by number, and `total` is the time of all statements in microseconds.
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
    return tuple(sorted(facts, key=lambda fact: (-fact.sum_ns, fact.kind, fact.name))[:_MOST_ROUTES])


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
