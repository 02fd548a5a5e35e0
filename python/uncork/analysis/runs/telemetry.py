"""Export a stored run as time series for telemetry systems.

Names, units and attributes follow OpenTelemetry's semantic conventions where these define them
(``http.client.request.duration``, ``db.client.operation.duration``, ``system.cpu.utilization``); all other
names begin with ``uncork.``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from uncork.analysis.load.result import build_load_result
from uncork.analysis.runs.figures import run_figures
from uncork.errors import UsageError
from uncork.load.sql import merge_histograms
from uncork.model.load import LoadMeasurement
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.load import LoadResult, SecondFacts
from uncork.model.system import SystemUse
from uncork.model.tables.load import LoadTimes
from uncork.model.telemetry import Attribute, HistogramPoint, Metric, Point, Telemetry
from uncork.store.layout import Manifest, read_manifest
from uncork.store.loads import LoadReader

_FIGURES: Final = {
    "ns": ("uncork.figure.duration", "s", 1e-9),
    "B": ("uncork.figure.size", "By", 1.0),
    "/s": ("uncork.figure.rate", "1/s", 1.0),
    "share": ("uncork.figure.share", "1", 1.0),
    "ratio": ("uncork.figure.ratio", "1", 1.0),
    "": ("uncork.figure.number", "1", 1.0),
}
"""For each unit: the metric's name, its unit, and the factor for values."""

_MODES: Final = {"irq": "interrupt", "softirq": "interrupt"}
"""OpenTelemetry's names for processor modes that differ from the kernel's."""

OWN_SERVICE: Final = "uncork"
"""The default service that exports; its version is uncork's."""


def run_telemetry(folder: Path, service: str = OWN_SERVICE) -> Telemetry:
    """Return the time series of a stored run: of a load second by second, of every run its metrics.

    `service` becomes ``service.name``.

    Raises:
        UsageError: if runs of its kind have no metrics.
        StoreError: if its files are damaged, or it has no result.
    """
    manifest, run = read_manifest(folder), run_figures(folder)
    begun = measured_from(manifest)
    ended = begun + sum(attempt.elapsed_ns for attempt in manifest.attempts)
    metrics: list[Metric] = []
    if manifest.kind == "load":
        result = build_load_result(folder)
        metrics += _load(result, begun)
        with closing(LoadReader(folder)) as reader:
            metrics += load_durations(result, reader.plan(), reader.measurement(), begun)
    metrics += _figures(run, begun, max(ended, begun))
    if not metrics:
        raise UsageError(f"{manifest.id} has no metrics and no time series to export")
    return Telemetry(_resource(manifest, run, service), tuple(metrics), manifest.uncork_version)


def measured_from(manifest: Manifest) -> int:
    """Return when measuring began, in nanoseconds since 1970: to the microsecond if the run has that."""
    told = manifest.options.get("measured_us")
    if isinstance(told, int):
        return told * 1000
    return int(datetime.fromisoformat(manifest.started_at).timestamp()) * 10**9


def _resource(manifest: Manifest, run: RunFigures, service: str) -> dict[str, Attribute]:
    resource: dict[str, Attribute] = {
        "service.name": service,
        **({"service.version": manifest.uncork_version} if service == OWN_SERVICE else {}),
        "uncork.run.id": manifest.id,
        "uncork.run.kind": manifest.kind,
        "uncork.run.status": manifest.status,
        "uncork.run.question": manifest.question,
        "uncork.run.server": manifest.server,
    }
    if manifest.commit:
        resource["vcs.ref.head.revision"] = manifest.commit
    for section, facts in run.environment.items():
        for name, text in facts.items():
            resource[f"uncork.environment.{_word(section)}.{_word(name)}"] = str(text)
    return resource


def _word(name: str) -> str:
    return "_".join(name.split())


# ---- loads ----


def _load(result: LoadResult, begun: int) -> Iterator[Metric]:
    counts: tuple[tuple[str, Callable[[SecondFacts], int]], ...] = (
        ("succeeded", lambda one: one.succeeded),
        ("failed", lambda one: one.failed),
        ("skipped", lambda one: one.skipped),
    )
    yield Metric(
        "uncork.load.operations",
        "Operations that ended in each second, by outcome; skipped arrivals were too late.",
        "{operation}",
        "delta",
        tuple(
            Point(read(second), *_span(second, begun), {"outcome": outcome})
            for outcome, read in counts
            for second in result.series
            if outcome == "succeeded" or any(map(read, result.series))
        ),
    )
    quantiles: tuple[tuple[float, Callable[[SecondFacts], int | None]], ...] = (
        (0.5, lambda one: one.p50_ns),
        (0.99, lambda one: one.p99_ns),
        (1.0, lambda one: one.max_ns),
    )
    since = "from the intended start" if result.settings.open_loop else "from the start"
    yield Metric(
        "uncork.load.latency",
        f"Latency, {since}, of operations that ended in each second, by quantile.",
        "s",
        "gauge",
        tuple(
            Point(value / 1e9, *_span(second, begun), {"quantile": quantile})
            for quantile, read in quantiles
            for second in result.series
            if (value := read(second)) is not None
        ),
    )
    if result.http is not None and result.http.statuses:
        yield _answers(result, begun)
    if result.system is not None:
        yield from _system(result.system)


def _answers(result: LoadResult, begun: int) -> Metric:
    return Metric(
        "uncork.load.answers",
        "Answers of each second, by status.",
        "{answer}",
        "delta",
        tuple(
            Point(number, *_span(second, begun), {"http.response.status_code": int(status)})
            for second in result.series
            for status, number in second.statuses.items()
        ),
    )


def _span(second: SecondFacts, begun: int) -> tuple[int, int]:
    return begun + second.start_ns, begun + second.start_ns + second.length_ns


def _system(use: SystemUse) -> Iterator[Metric]:
    history = use.history
    if history is None or not use.cpus:
        return
    step = history.step_s * 10**9
    modes: dict[str, list[float]] = {}
    for mode, values in history.modes.items():
        name = _MODES.get(mode, mode)
        modes[name] = [sum(pair) for pair in zip(modes.get(name, [0.0] * len(values)), values, strict=True)]
    yield Metric(
        "system.cpu.utilization",
        "The fraction of all processors' time in each mode; idle modes are the rest.",
        "1",
        "gauge",
        tuple(
            Point(
                value / use.cpus,
                start := history.start_s * 10**9 + place * step,
                start + step,
                {"cpu.mode": mode},
            )
            for mode, values in modes.items()
            for place, value in enumerate(values)
        ),
    )


# ---- figures ----


def _figures(run: RunFigures, begun: int, ended: int) -> Iterator[Metric]:
    for unit, (name, told, scale) in _FIGURES.items():
        found = [figure for figure in run.figures if figure.unit == unit]
        if found:
            points = tuple(Point(figure.value * scale, begun, ended, _named(figure)) for figure in found)
            yield Metric(name, "A metric of the run, as `uncork compare` names it.", told, "gauge", points)


def _named(figure: Figure) -> dict[str, Attribute]:
    return {"figure": figure.name, **({"subject": figure.subject} if figure.subject else {})}


# ---- durations of a load's requests and statements, as OpenTelemetry's semantic conventions define them ----


_HTTP_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
_DATABASE_BOUNDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
"""The bounds of buckets, in seconds, that the conventions recommend."""
_VERSIONS: Final = {"HTTP/1.1": "1.1", "HTTP/2": "2", "HTTP/3": "3"}


def load_durations(
    result: LoadResult, plan: Mapping[str, Any], measured: LoadMeasurement, begun: int
) -> Iterator[Metric]:
    """Yield the histogram of all successes in a load; nothing if the load does not have it.

    A request or statement lasts from when it is sent, whatever was due before. For requests with
    several methods that arrive at times of their own, only latencies from the intended start are
    known by method, so they have none. Pure, except that it decodes histograms.
    """
    whole = (begun, begun + result.run.elapsed_ns)
    if result.http is not None:
        attributes = _http_attributes(result, plan["http"])
        points = [
            _point(rows, _HTTP_BOUNDS, whole, {"http.request.method": method, **attributes})
            for method, rows in _by_method(result, plan, measured.times).items()
        ]
        yield from _metric("http.client.request.duration", "Duration of HTTP client requests", points)
        return
    rows = [row for row in measured.times if row.kind == "statement"]
    told = _database_attributes(plan.get("connection", {}))
    points = [_point(rows, _DATABASE_BOUNDS, whole, told)]
    yield from _metric("db.client.operation.duration", "Duration of database client operations", points)


def _metric(name: str, description: str, points: Sequence[HistogramPoint | None]) -> Iterator[Metric]:
    known = tuple(point for point in points if point is not None)
    if known:
        yield Metric(name, f"{description}; failed ones are not included.", "s", "histogram", known)


def _by_method(
    result: LoadResult, plan: Mapping[str, Any], times: Sequence[LoadTimes]
) -> dict[str, list[LoadTimes]]:
    methods = {script["name"]: str(script["request"]["method"]) for script in plan["scripts"]}
    if len(set(methods.values())) == 1:
        (method,) = set(methods.values())
        return {method: [row for row in times if row.kind == "service"]}
    found: dict[str, list[LoadTimes]] = {}
    for row in times:
        if row.kind == "script" and not result.settings.open_loop:
            found.setdefault(methods[row.script], []).append(row)
    return found


def _http_attributes(result: LoadResult, http: Mapping[str, Any]) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {
        "server.address": str(http["host"]),
        "server.port": int(http["port"]),
        "url.scheme": "https" if http["tls"] else "http",
    }
    version = _VERSIONS.get(result.settings.protocol)
    if version is not None:
        found["network.protocol.version"] = version
    statuses = result.http.statuses if result.http is not None else {}
    if len(statuses) == 1:  # the duration of each of several is unknown
        found["http.response.status_code"] = int(next(iter(statuses)))
    return found


def _database_attributes(connection: Mapping[str, Any]) -> dict[str, Attribute]:
    return {
        "db.system.name": "postgresql",
        "db.namespace": str(connection["database"]),
        "server.address": str(connection["host"]),
        "server.port": int(connection["port"]),
    }


def _point(
    rows: Sequence[LoadTimes],
    bounds: Sequence[float],
    whole: tuple[int, int],
    attributes: Mapping[str, Attribute],
) -> HistogramPoint | None:
    """Return rows of times together; None if none of them succeeded."""
    known = [row for row in rows if row.histogram and row.min_ns is not None and row.max_ns is not None]
    if not known:
        return None
    number = sum(row.executions - row.errors for row in known)
    points = merge_histograms([row.histogram for row in known if row.histogram])
    upto = [
        max((round(quantile * number) for quantile, value in points if value <= bound * 1e9), default=0)
        for bound in bounds
    ]
    counts = tuple(after - before for before, after in pairwise((0, *upto, number)))
    seconds = sum(row.sum_ns for row in known) / 1e9
    least = min(row.min_ns for row in known if row.min_ns is not None) / 1e9
    most = max(row.max_ns for row in known if row.max_ns is not None) / 1e9
    return HistogramPoint(seconds, *whole, attributes, tuple(bounds), counts, least, most)
