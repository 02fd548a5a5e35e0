"""Add up what the parts of a load measured, without loss: counts, histograms, and series by interval."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from uncork import _native
from uncork.load.histogram import moments
from uncork.load.run import INTERVAL_NS
from uncork.model.load import (
    FailureTotals,
    HttpTotals,
    LoadMeasurement,
    LoadOutcome,
    LoadProgress,
    RequestTotals,
    Stalls,
)
from uncork.model.tables.load import IntervalStatus, LoadInterval, LoadTimes, LoadTotals

_SUMMED: Final = (
    *("started", "succeeded", "failed", "skipped", "unsent", "late", "retried", "rows", "statements"),
    *("round_trips", "client_user_ns", "client_system_ns", "sent_bytes", "received_bytes"),
    *("connections_opened", "connections_lost", "connections_most", "connect_sum_ns", "opening_wait_ns"),
)
_MOST_FAILURES: Final = 100
"""Kinds of failures that are kept, as the core does."""
_PROGRESS_SUMMED: Final = ("succeeded", "failed", "skipped", "retries")
_QUANTILES: Final = {
    "p50_ns": 0.5,
    "p90_ns": 0.9,
    "p95_ns": 0.95,
    "p99_ns": 0.99,
    "p999_ns": 0.999,
    "p9999_ns": 0.9999,
}
_HTTP_SUMMED: Final = (
    *("unprocessed", "header_bytes", "header_plain_bytes", "body_bytes", "closed", "goaways"),
    "udp_dropped",
)


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """What a part measured. It began `shift` intervals after the first part, on the machine `machine`."""

    number: int
    measured: LoadMeasurement
    shift: int = 0
    machine: int = 0


def merged_measurement(parts: Sequence[MeasuredPart]) -> LoadMeasurement:
    """Add up the parts. The figures of two machines are never subtracted, only added or compared.

    Only parts that could see the server have its processor time. Stolen time counts once for each machine.
    If a part did not complete, its outcome is the outcome of all: of a lost part, if there is one.
    """
    return LoadMeasurement(
        _totals(parts),
        tuple(_times([row for part in parts for row in part.measured.times])),
        tuple(_series(parts)),
        tuple(_statuses(parts)),
    )


def unfinished_measurement(
    series: Sequence[LoadInterval], message: str, outcome: LoadOutcome = LoadOutcome.INTERRUPTED
) -> LoadMeasurement:
    """Return what is known of a part that was killed or lost, from the intervals that it had stored.

    Means and deviations come from the histograms, to their precision of three digits.
    """
    rows = [
        _from_histograms("script", script, [interval for interval in series if interval.script == script])
        for script in dict.fromkeys(interval.script for interval in series)
    ]
    rows.append(_from_histograms("operation", "", series))
    succeeded, failed = (
        sum(interval.succeeded for interval in series),
        sum(interval.failed for interval in series),
    )
    # Operations that were in flight at the end of the last interval are unknown, so they did not start here.
    ended = [replace(interval, started=interval.succeeded + interval.failed) for interval in series]
    return LoadMeasurement(
        LoadTotals(
            outcome=outcome,
            message=message,
            started=succeeded + failed,
            succeeded=succeeded,
            failed=failed,
            skipped=sum(interval.skipped for interval in series),
            retried=0,
            statements=sum(interval.statements for interval in series),
            elapsed_ns=max((interval.start_ns + INTERVAL_NS for interval in series), default=0),
        ),
        tuple(rows) if series else (),
        tuple(ended),
    )


def merged_progress(parts: Sequence[Sequence[LoadProgress]]) -> LoadProgress:
    """Add up each part's snapshots over the same time, in order: the progress of the whole.

    A part's backlog and clients are those of its last snapshot. Quantiles come from the series, all others
    from the parts' own figures.
    """
    several = [progress for part in parts for progress in part]
    succeeded = sum(progress.succeeded for progress in several)
    mean = (
        sum(progress.mean_ns * progress.succeeded for progress in several) / succeeded if succeeded else 0.0
    )
    squares = sum((progress.stddev_ns**2 + progress.mean_ns**2) * progress.succeeded for progress in several)
    histograms = [row.histogram for progress in several for row in progress.series if row.histogram]
    _, quantiles = _native.add_histograms(histograms, [0.5, 0.99]) if histograms else (b"", (0, 0))
    return LoadProgress(
        elapsed_ns=max(progress.elapsed_ns for progress in several),
        seconds=max(sum(progress.seconds for progress in part) for part in parts),
        **{name: sum(getattr(progress, name) for progress in several) for name in _PROGRESS_SUMMED},
        backlog=sum(part[-1].backlog for part in parts),
        clients=sum(part[-1].clients for part in parts),
        mean_ns=mean,
        stddev_ns=math.sqrt(max(0.0, squares / succeeded - mean**2)) if succeeded else 0.0,
        p50_ns=quantiles[0],
        p99_ns=quantiles[1],
        max_ns=max(progress.max_ns for progress in several),
        lateness_p99_ns=max(progress.lateness_p99_ns for progress in several),
    )


def quantiles_by_interval(
    measured: LoadMeasurement, intervals: int, shift: int, quantiles: Sequence[float]
) -> list[list[int | None]]:
    """Return for each quantile the latencies of the load's first intervals; None where nothing succeeded."""
    histograms = defaultdict(list)
    for row in measured.series:
        if row.histogram:
            histograms[row.interval + shift].append(row.histogram)
    found: list[list[int | None]] = [[None] * intervals for _ in quantiles]
    for interval, several in histograms.items():
        if interval < intervals:
            _, values = _native.add_histograms(several, list(quantiles))
            for place, value in enumerate(values):
                found[place][interval] = value
    return found


# ---- totals ----


def _totals(parts: Sequence[MeasuredPart]) -> LoadTotals:
    totals = [part.measured.totals for part in parts]
    failed = next(
        (part for part in parts if part.measured.totals.outcome is LoadOutcome.NODE_LOST),
        next((part for part in parts if part.measured.totals.outcome is not LoadOutcome.COMPLETE), None),
    )
    message = None
    if failed is not None:
        cause = failed.measured.totals
        message = f"part {failed.number}: {cause.message or cause.outcome}"
    arrivals = [total.arrivals for total in totals if total.arrivals is not None]
    https = [total.http for total in totals if total.http is not None]
    steal = _by_machine(parts, "steal_ns")
    throttled = _by_machine(parts, "throttled_ns")
    return LoadTotals(
        outcome=LoadOutcome.COMPLETE if failed is None else failed.measured.totals.outcome,
        message=message,
        **{name: sum(getattr(total, name) for total in totals) for name in _SUMMED},
        errors=_counted([total.errors for total in totals]),
        connect_errors=_counted([total.connect_errors for total in totals]),
        retries=_counted([total.retries for total in totals]),
        arrivals=sum(arrivals) if arrivals else None,
        first_error=next((total.first_error for total in totals if total.first_error is not None), None),
        elapsed_ns=max(part.shift * INTERVAL_NS + part.measured.totals.elapsed_ns for part in parts),
        busiest_thread=max(total.busiest_thread for total in totals),
        connect_max_ns=max(total.connect_max_ns for total in totals),
        server_user_ns=_most(total.server_user_ns for total in totals),
        server_system_ns=_most(total.server_system_ns for total in totals),
        steal_ns=sum(steal),
        throttled_ns=sum(throttled) if throttled else None,
        http=_http(https) if https else None,
        start_late_ns=_most(total.start_late_ns for total in totals),
        failures=_failures(totals),
    )


def _by_machine(parts: Sequence[MeasuredPart], name: str) -> list[int]:
    """Return the largest value of each machine."""
    found: dict[int, int] = {}
    for part in parts:
        value = getattr(part.measured.totals, name)
        if value is not None:
            found[part.machine] = max(found.get(part.machine, 0), value)
    return list(found.values())


def _most(values: Iterator[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _failures(totals: Sequence[LoadTotals]) -> tuple[FailureTotals, ...]:
    """Add up the failures of the same kind, and keep the first message of each."""
    found: dict[tuple[object, ...], FailureTotals] = {}
    for one in (failure for several in totals for failure in several.failures):
        kind = (one.code, one.script, one.line, one.statement)
        before = found.get(kind)
        found[kind] = one if before is None else replace(before, number=before.number + one.number)
    return tuple(sorted(found.values(), key=lambda one: -one.number)[:_MOST_FAILURES])


def _counted(several: Sequence[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for counts in several:
        for code, number in counts.items():
            found[code] += number
    return dict(found)


def _http(several: Sequence[HttpTotals]) -> HttpTotals:
    planned = [totals.planned for totals in several if totals.planned is not None]
    closed = [totals for totals in several if totals.closed]
    stalls = {
        item.name: sum(getattr(totals.stalls, item.name) for totals in several) for item in fields(Stalls)
    }
    names = dict.fromkeys(request.name for totals in several for request in totals.requests)
    return HttpTotals(
        planned=sum(planned) if len(planned) == len(several) else None,
        statuses=_counted([totals.statuses for totals in several]),
        **{name: sum(getattr(totals, name) for totals in several) for name in _HTTP_SUMMED},
        stalls=Stalls(**stalls),
        closed_least=min((totals.closed_least for totals in closed), default=0),
        closed_most=max((totals.closed_most for totals in closed), default=0),
        requests=tuple(
            _request(
                name, [request for totals in several for request in totals.requests if request.name == name]
            )
            for name in names
        ),
    )


def _request(name: str, several: Sequence[RequestTotals]) -> RequestTotals:
    examples: dict[str, str] = {}
    for totals in several:
        examples = {**totals.examples, **examples}
    return RequestTotals(
        name,
        sum(totals.sent_bytes for totals in several),
        sum(totals.received_bytes for totals in several),
        _counted([totals.errors for totals in several]),
        examples,
    )


# ---- times and series ----


def _times(rows: Sequence[LoadTimes]) -> Iterator[LoadTimes]:
    alike: dict[tuple[Any, ...], list[LoadTimes]] = defaultdict(list)
    for row in rows:
        alike[row.kind, row.script, row.name, row.line].append(row)
    for several in alike.values():
        yield several[0] if len(several) == 1 else _sum_of_times(several)


def _sum_of_times(rows: Sequence[LoadTimes]) -> LoadTimes:
    longest = max((row.max_ns for row in rows if row.max_ns is not None), default=None)
    histogram, quantiles = _added([row.histogram for row in rows if row.histogram], longest)
    return replace(
        rows[0],
        executions=sum(row.executions for row in rows),
        errors=sum(row.errors for row in rows),
        rows=sum(row.rows for row in rows),
        sum_ns=sum(row.sum_ns for row in rows),
        sum_squares_ns2=sum(row.sum_squares_ns2 for row in rows),
        min_ns=min((row.min_ns for row in rows if row.min_ns is not None), default=None),
        max_ns=longest,
        histogram=histogram,
        **quantiles,
    )


def _added(histograms: list[bytes], longest: int | None) -> tuple[bytes, dict[str, Any]]:
    """Return the sum of histograms and its quantiles, which are never above the exact maximum."""
    histogram, values = _native.add_histograms(histograms, list(_QUANTILES.values()))
    quantiles = {
        name: None if longest is None else min(value, longest)
        for name, value in zip(_QUANTILES, values, strict=True)
    }
    return bytes(histogram), quantiles


def _from_histograms(kind: Any, script: str, series: Sequence[LoadInterval]) -> LoadTimes:
    histograms = [row.histogram for row in series if row.histogram]
    found = moments(_native.add_histograms(histograms, [])[0])
    histogram, quantiles = _added(histograms, found.max_ns)
    failed = sum(row.failed for row in series)
    return LoadTimes(
        kind=kind,
        script=script,
        name=script or "operation",
        line=None,
        executions=sum(row.succeeded for row in series) + failed,
        errors=failed,
        rows=0,
        sum_ns=round(found.sum_ns),
        sum_squares_ns2=found.sum_squares_ns2,
        min_ns=found.min_ns,
        max_ns=found.max_ns,
        histogram=histogram,
        **quantiles,
    )


def _series(parts: Sequence[MeasuredPart]) -> Iterator[LoadInterval]:
    alike: dict[tuple[int, str], list[LoadInterval]] = defaultdict(list)
    for part in parts:
        for row in part.measured.series:
            alike[row.interval + part.shift, row.script].append(row)
    for (interval, script), rows in sorted(alike.items()):
        histograms = [row.histogram for row in rows if row.histogram]
        counts = {
            name: sum(getattr(row, name) for row in rows)
            for name in ("started", "succeeded", "failed", "skipped", "retries", "statements")
        }
        yield LoadInterval(
            interval=interval,
            start_ns=interval * INTERVAL_NS,
            script=script,
            **counts,
            histogram=_native.add_histograms(histograms, [])[0] if histograms else None,
        )


def _statuses(parts: Sequence[MeasuredPart]) -> Iterator[IntervalStatus]:
    alike: dict[tuple[int, int], list[IntervalStatus]] = defaultdict(list)
    for part in parts:
        for row in part.measured.statuses:
            alike[row.interval + part.shift, row.status].append(row)
    for (interval, status), rows in sorted(alike.items()):
        yield IntervalStatus(
            interval,
            interval * INTERVAL_NS,
            max(row.length_ns for row in rows),
            status,
            sum(row.answers for row in rows),
        )
