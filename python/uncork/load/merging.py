"""Add up what the parts of a load measured, without loss: counts, histograms, and series by interval."""

from __future__ import annotations

import math
import struct
from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeVar

from uncork import _native
from uncork.load.run import INTERVAL_NS
from uncork.model.load import (
    FailureTotals,
    HttpTotals,
    LoadMeasurement,
    LoadOutcome,
    LoadProgress,
    RequestTotals,
)
from uncork.model.tables.load import IntervalStatus, LoadInterval, LoadTimes, LoadTotals

_MOST_FAILURES: Final = 100
"""Kinds of failures that are kept, as the core does."""
_QUANTILES: Final = {
    "p50_ns": 0.5,
    "p90_ns": 0.9,
    "p95_ns": 0.95,
    "p99_ns": 0.99,
    "p999_ns": 0.999,
    "p9999_ns": 0.9999,
}
Record = TypeVar("Record")


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
    return added(
        several,
        elapsed_ns=max(progress.elapsed_ns for progress in several),
        seconds=max(sum(progress.seconds for progress in part) for part in parts),
        backlog=sum(part[-1].backlog for part in parts),
        clients=sum(part[-1].clients for part in parts),
        mean_ns=mean,
        stddev_ns=math.sqrt(max(0.0, squares / succeeded - mean**2)) if succeeded else 0.0,
        p50_ns=quantiles[0],
        p99_ns=quantiles[1],
        max_ns=max(progress.max_ns for progress in several),
        lateness_p99_ns=max(progress.lateness_p99_ns for progress in several),
        series=(),
    )


def added(records: Sequence[Record], /, **given: object) -> Record:
    """Add up records of one kind: numbers, and counts by name. Of texts, the first is kept.

    `given` has the values of the fields to which another rule applies. Values of None are left out; a field
    is None if it is None in all records.
    """
    first: Any = records[0]
    found = dict(given)
    for name in (item.name for item in fields(first) if item.name not in given):
        values = [value for record in records if (value := getattr(record, name)) is not None]
        if values and isinstance(values[0], Mapping):
            counts: Counter[Any] = Counter()
            for value in values:
                counts.update(value)
            found[name] = dict(counts)
        elif values and isinstance(values[0], int | float):
            found[name] = sum(values)
        else:
            found[name] = values[0] if values else None
    whole: Record = replace(first, **found)
    return whole


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
    https = [total.http for total in totals if total.http is not None]
    throttled = _by_machine(parts, "throttled_ns")
    return added(
        totals,
        outcome=LoadOutcome.COMPLETE if failed is None else failed.measured.totals.outcome,
        message=message,
        elapsed_ns=max(part.shift * INTERVAL_NS + part.measured.totals.elapsed_ns for part in parts),
        busiest_thread=max(total.busiest_thread for total in totals),
        connect_max_ns=max(total.connect_max_ns for total in totals),
        server_user_ns=_most(total.server_user_ns for total in totals),
        server_system_ns=_most(total.server_system_ns for total in totals),
        steal_ns=sum(_by_machine(parts, "steal_ns")),
        throttled_ns=sum(throttled) if throttled else None,
        http=_http(https) if https else None,
        start_late_ns=_most(total.start_late_ns for total in totals),
        failures=_failures(totals),
    )


def _by_machine(parts: Sequence[MeasuredPart], name: str) -> list[int]:
    found: dict[int, int] = {}
    for part in parts:
        value = getattr(part.measured.totals, name)
        if value is not None:
            found[part.machine] = max(found.get(part.machine, 0), value)
    return list(found.values())


def _most(values: Iterator[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _failures(totals: Sequence[LoadTotals]) -> tuple[FailureTotals, ...]:
    found: dict[tuple[object, ...], FailureTotals] = {}
    for one in (failure for several in totals for failure in several.failures):
        kind = (one.code, one.script, one.line, one.statement)
        before = found.get(kind)
        found[kind] = one if before is None else replace(before, number=before.number + one.number)
    return tuple(sorted(found.values(), key=lambda one: -one.number)[:_MOST_FAILURES])


def _http(several: Sequence[HttpTotals]) -> HttpTotals:
    planned = [totals.planned for totals in several if totals.planned is not None]
    closed = [totals for totals in several if totals.closed]
    requests: dict[str, list[RequestTotals]] = defaultdict(list)
    for request in (request for totals in several for request in totals.requests):
        requests[request.name].append(request)
    return added(
        several,
        planned=sum(planned) if len(planned) == len(several) else None,
        stalls=added([totals.stalls for totals in several]),
        closed_least=min((totals.closed_least for totals in closed), default=0),
        closed_most=max((totals.closed_most for totals in closed), default=0),
        requests=tuple(
            added(alike, examples=dict(ChainMap(*(dict(request.examples) for request in alike))))
            for alike in requests.values()
        ),
    )


def _times(rows: Sequence[LoadTimes]) -> Iterator[LoadTimes]:
    alike: dict[tuple[Any, ...], list[LoadTimes]] = defaultdict(list)
    for row in rows:
        alike[row.kind, row.script, row.name, row.line].append(row)
    for several in alike.values():
        yield several[0] if len(several) == 1 else _sum_of_times(several)


def _sum_of_times(rows: Sequence[LoadTimes]) -> LoadTimes:
    longest = max((row.max_ns for row in rows if row.max_ns is not None), default=None)
    histogram, quantiles = _added([row.histogram for row in rows if row.histogram], longest)
    return added(
        rows,
        line=rows[0].line,
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
    for (interval, _), rows in sorted(alike.items()):
        histograms = [row.histogram for row in rows if row.histogram]
        yield added(
            rows,
            interval=interval,
            start_ns=interval * INTERVAL_NS,
            histogram=_native.add_histograms(histograms, [])[0] if histograms else None,
        )


def _statuses(parts: Sequence[MeasuredPart]) -> Iterator[IntervalStatus]:
    alike: dict[tuple[int, int], list[IntervalStatus]] = defaultdict(list)
    for part in parts:
        for row in part.measured.statuses:
            alike[row.interval + part.shift, row.status].append(row)
    for (interval, status), rows in sorted(alike.items()):
        length_ns = max(row.length_ns for row in rows)
        place = {"interval": interval, "start_ns": interval * INTERVAL_NS, "status": status}
        yield added(rows, **place, length_ns=length_ns)


# ---- counts of latencies in serialised histograms ----
#
# The core writes HdrHistogram's V2 format: a header, then counts as zigzag LEB128, where a negative count
# means a run of zeros (see HistogramEncoder of HdrHistogram, and CountsArray for the layout of buckets). The
# core's own list of quantiles is exact in values but too coarse in counts for a fraction of successes.


_HEADER = struct.Struct(">iiiiqqd")
_COOKIE = 0x1C849303
_SUB_BUCKETS = 2048
"""Buckets of the first power of two, for three significant digits from 1 on; later powers have half as many.
"""


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over the values of a histogram; the shortest and the longest are None if there are no values."""

    count: int
    sum_ns: float
    sum_squares_ns2: float
    min_ns: int | None
    max_ns: int | None


def moments(histogram: bytes) -> Moments:
    """Return the sums of a histogram's values, each the middle of its bucket. Raises ValueError."""
    count, total, squares = 0, 0.0, 0.0
    shortest = longest = None
    for place, number in _buckets(histogram):
        first, last = _least(place), _least(place + 1) - 1
        middle = (first + last) / 2
        count += number
        total += number * middle
        squares += number * middle * middle
        shortest, longest = first if shortest is None else shortest, last
    return Moments(count, total, squares, shortest, longest)


def count_within(histogram: bytes, limit_ns: int) -> int:
    """Return how many values are at or below the limit, to three digits. Raises ValueError."""
    return sum(number for place, number in _buckets(histogram) if _least(place) <= limit_ns)


def _buckets(histogram: bytes) -> Iterator[tuple[int, int]]:
    if len(histogram) < _HEADER.size:
        raise ValueError("too few bytes for a histogram")
    cookie, length, offset, digits, lowest, _, _ = _HEADER.unpack_from(histogram)
    if cookie & ~0xF0 != _COOKIE & ~0xF0 or (offset, digits, lowest) != (0, 3, 1):
        raise ValueError("not a V2 histogram of three digits")
    place = 0
    for count in _counts(histogram[_HEADER.size : _HEADER.size + length]):
        if count < 0:
            place -= count
            continue
        if count:
            yield place, count
        place += 1


def _least(place: int) -> int:
    half = _SUB_BUCKETS // 2
    power = max(place // half - 1, 0)
    return (place - power * half) << power


def _counts(payload: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in payload:
        # Nine bytes hold 64 bits, because the last byte has no continuation flag.
        number |= (byte if shift == 56 else byte & 0x7F) << shift
        shift += 7
        if byte & 0x80 and shift < 63:
            continue
        yield (number >> 1) ^ -(number & 1)
        number, shift = 0, 0
