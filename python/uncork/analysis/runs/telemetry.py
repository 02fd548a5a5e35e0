"""Export a stored run as time series for telemetry systems.

Names, units and attributes follow OpenTelemetry's semantic conventions where these define them
(``http.client.request.duration``, ``db.client.operation.duration``, ``system.cpu.utilization``); all other
names begin with ``uncork.``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

from uncork.analysis.load.result import build_load_result
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.telemetry_durations import load_durations
from uncork.errors import UsageError
from uncork.model.results.figure import Figure, RunFigures
from uncork.model.results.load import LoadResult, SecondFacts
from uncork.model.system import SystemUse
from uncork.model.telemetry import Attribute, Metric, Point, Telemetry
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
            Point(read(one), *_span(one, begun), {"outcome": outcome})
            for outcome, read in counts
            for one in result.series
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
            Point(value / 1e9, *_span(one, begun), {"quantile": quantile})
            for quantile, read in quantiles
            for one in result.series
            if (value := read(one)) is not None
        ),
    )
    if result.http is not None and result.http.statuses:
        yield _answers(result, begun)
    if result.system is not None:
        yield from _system(result.system)


def _answers(result: LoadResult, begun: int) -> Metric:
    """Return the answers of each second, by status."""
    return Metric(
        "uncork.load.answers",
        "Answers of each second, by status.",
        "{answer}",
        "delta",
        tuple(
            Point(number, *_span(one, begun), {"http.response.status_code": int(status)})
            for one in result.series
            for status, number in one.statuses.items()
        ),
    )


def _span(one: SecondFacts, begun: int) -> tuple[int, int]:
    return begun + one.start_ns, begun + one.start_ns + one.length_ns


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


def _named(one: Figure) -> dict[str, Attribute]:
    return {"figure": one.name, **({"subject": one.subject} if one.subject else {})}
