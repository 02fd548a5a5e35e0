"""Join requests with the statements that they send, from slices of each request alone. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uncork.model.results.service import SentTemplate
from uncork.model.tables.service import ALL, NONE, CountRow, SliceRow
from uncork.stats.load.per_request import Rise, background_rate, per_request

Counts = Mapping[int, CountRow]
"""What was counted in one slice, by template."""
_LEAST_CALLS = 0.01
"""Executions for each request below which a template does not belong to it."""


class Join:
    """The statements of each request, and how well they explain the time when all were sent together."""

    def __init__(self, templates: Mapping[str, tuple[SentTemplate, ...]], explained: float | None) -> None:
        self.templates = templates
        self.explained = explained


def join_requests(
    slices: Sequence[SliceRow], counts: Sequence[CountRow], texts: Mapping[int, str], sent: Mapping[str, int]
) -> Join:
    """Return the statements of each request by its name.

    `slices` and `counts` are rows of the tables ``service_slices`` and ``service_counts``; `sent` is how
    often each request was sent while all were sent together.

    The execution time of a template in that time is divided among requests in proportion to their executions,
    each weighed with the mean execution time that it had for that request alone.
    """
    by_slice: dict[int, dict[int, CountRow]] = defaultdict(dict)
    for counted in counts:
        by_slice[counted.slice][counted.template] = counted
    alone: dict[str, list[SliceRow]] = defaultdict(list)
    for row in slices:
        if row.kind == "one":
            alone[row.request].append(row)
    idle = [row for row in slices if row.kind == NONE]
    together = [row for row in slices if row.kind == ALL]
    totals = _sums(by_slice[row.slice] for row in together)
    found: dict[str, dict[int, tuple[Any, ...]]] = defaultdict(dict)
    weights: dict[int, float] = defaultdict(float)
    expected: dict[int, float] = defaultdict(float)
    background = {template: background_rate(_rises(idle, by_slice, template)) for template in texts}
    for name, of in alone.items():
        sums = _sums(by_slice[row.slice] for row in of)
        for template, (calls, execution_ns, rows) in sums.items():
            estimate = per_request(_rises(of, by_slice, template), background[template])
            if estimate is None or estimate.mean < _LEAST_CALLS:
                continue
            call_ns = execution_ns / calls
            found[name][template] = (estimate, rows / calls, call_ns)
            expected[template] += estimate.mean * sent.get(name, 0)
            weights[template] += estimate.mean * sent.get(name, 0) * call_ns
    templates = {
        name: tuple(
            sorted(
                (
                    SentTemplate(
                        template,
                        texts[template],
                        estimate.mean,
                        estimate.low,
                        estimate.high,
                        rows,
                        call_ns,
                        _ns(estimate.mean * call_ns, weights[template], totals.get(template)),
                    )
                    for template, (estimate, rows, call_ns) in of.items()
                ),
                key=lambda sent: -sent.ns,
            )
        )
        for name, of in found.items()
    }
    return Join(templates, _explained(together, totals, expected, background))


def connections_opened(slices: Sequence[SliceRow], name: str) -> float | None:
    """Return how many connections to the database a request opens; None if the server does not count them."""
    counted = [row for row in slices if row.sessions is not None]
    idle = [_began(row) for row in counted if row.kind == NONE]
    found = per_request(
        [_began(row) for row in counted if row.kind == "one" and row.request == name],
        background_rate(idle),
    )
    return None if found is None else found.mean


def _began(row: SliceRow) -> Rise:
    return Rise(row.started, row.elapsed_ns / 1e9, float(row.sessions or 0))


def _ns(alone_ns: float, weight: float, total: tuple[int, float, int] | None) -> float:
    """Return a template's time for each request when all were sent; without such a time, its time alone."""
    return alone_ns if total is None or not weight else alone_ns * total[1] / weight


def _explained(
    together: Sequence[SliceRow],
    totals: Mapping[int, tuple[int, float, int]],
    expected: Mapping[int, float],
    background: Mapping[int, float],
) -> float | None:
    """Return the fraction of executions that requests and background account for, 1 if all are."""
    seconds = sum(row.elapsed_ns for row in together) / 1e9
    seen = sum(calls for calls, _, _ in totals.values())
    if not seen:
        return None
    unlike: float = sum(
        abs(calls - expected.get(template, 0.0) - background.get(template, 0.0) * seconds)
        for template, (calls, _, _) in totals.items()
    )
    return max(0.0, 1.0 - unlike / seen)


def _sums(of: Iterable[Counts]) -> dict[int, tuple[int, float, int]]:
    sums: dict[int, tuple[int, float, int]] = {}
    for rows in of:
        for template, row in rows.items():
            calls, ns, many = sums.get(template, (0, 0.0, 0))
            sums[template] = (calls + row.calls, ns + row.execution_ns, many + row.rows)
    return sums


def _rises(slices: Sequence[SliceRow], by_slice: Mapping[int, Counts], template: int) -> list[Rise]:
    return [
        Rise(
            row.started,
            row.elapsed_ns / 1e9,
            float(by_slice[row.slice][template].calls) if template in by_slice[row.slice] else 0.0,
        )
        for row in slices
    ]
