"""Loads by HTTP for tests: sent to a server on loopback, and what always holds of what they count."""

from collections import Counter

from uncork.load.http import run_http
from uncork.model.http import HttpServer, HttpSpec, Request
from uncork.model.load import LoadMeasurement, LoadOutcome
from uncork.model.tables.load import LoadTimes


def spec_for(port: int, path: str = "/small.txt", **options: object) -> HttpSpec:
    request = {key: options.pop(key) for key in ("method", "headers", "body", "checks") if key in options}
    where = {key: options.pop(key) for key in ("tls", "verify", "cacert") if key in options}
    options.setdefault("seed", 5)
    if "duration_ns" not in options:
        options.setdefault("operations", 100)
    one = Request(path, request.pop("method", "GET"), path, **request)
    return HttpSpec(HttpServer("127.0.0.1", port, **where), (one,), **options)


def load(port: int, path: str = "/small.txt", **options: object) -> LoadMeasurement:
    return accounted(run_http(spec_for(port, path, **options)))


def accounted(measured: LoadMeasurement) -> LoadMeasurement:
    """Check what always holds of counts."""
    totals, http = measured.totals, measured.totals.http
    assert http is not None
    assert totals.started == totals.succeeded + totals.failed
    cut_short = totals.failed - sum(totals.errors.values())
    assert cut_short >= 0
    if totals.arrivals is None and http.planned is not None:
        assert totals.started <= http.planned
    if totals.arrivals is not None:
        assert totals.arrivals == totals.started + totals.skipped + totals.unsent
    of_answers = sum(
        number for kind, number in totals.errors.items() if kind.startswith(("status ", "check "))
    )
    assert sum(http.statuses.values()) >= totals.succeeded + of_answers
    by_status: Counter[str] = Counter()
    for one in measured.statuses:
        assert one.answers > 0 and one.start_ns == one.interval * 10**9 < totals.elapsed_ns
        assert one.length_ns == min(10**9, totals.elapsed_ns - one.start_ns)
        by_status[str(one.status)] += one.answers
    assert by_status == http.statuses
    (operation,) = (row for row in measured.times if row.kind == "operation")
    assert (operation.executions, operation.errors) == (totals.started, totals.failed)
    assert sum(row.started for row in measured.series) == totals.started
    assert sum(row.succeeded for row in measured.series) == totals.succeeded
    return measured


def went_well(measured: LoadMeasurement, count: int) -> LoadMeasurement:
    totals = measured.totals
    assert (totals.outcome, totals.message, totals.first_error) == (LoadOutcome.COMPLETE, None, None)
    assert (totals.started, totals.succeeded, totals.failed) == (count, count, 0)
    return measured


def row_of(measured: LoadMeasurement, kind: str) -> LoadTimes:
    return next(row for row in measured.times if row.kind == kind)
