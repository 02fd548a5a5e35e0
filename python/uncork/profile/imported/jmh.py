"""The JSON of JMH (`-rf json`), with one subject per benchmark and its parameters."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import mean_figure, time
from uncork.profile.imported.strict import Value

__all__ = ["read"]

_NS: Final = {
    **{"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9},
    **{"min": 60e9, "hr": 3600e9, "day": 86_400e9},
}
_MODES: Final = {"sample": "sampled", "ss": "single shot"}
_ALLOCATED: Final = "gc.alloc.rate.norm"
_QUANTILES: Final = ("50.0", "90.0", "95.0", "99.0", "99.9")


def read(data: Any) -> ImportedRun | None:
    """Return the results of JMH; None if the data is not its output.

    The mean of a benchmark has a standard error only if it ran in several forks: iterations of one fork
    resemble each other.

    Raises:
        ValueError: if a value is missing or wrong.
    """
    if not (isinstance(data, list) and data and isinstance(data[0], dict) and "primaryMetric" in data[0]):
        return None
    benchmarks = Value(data, "").elements()
    names = [benchmark["benchmark"].text() for benchmark in benchmarks]
    java = _facts(benchmarks, "vmName", "jdkVersion")
    return ImportedRun(
        tool="JMH",
        question=f"JMH: {', '.join(dict.fromkeys(names[:3]))}",
        figures=tuple(figure for benchmark in benchmarks for figure in _figures(benchmark)),
        environment={"language": {"version": java}} if java else {},
    )


def _facts(benchmarks: list[Value], *keys: str) -> str:
    """Return texts of all benchmarks; empty if they differ or are missing."""
    found = {
        tuple(value.text() for key in keys if (value := benchmark.get(key)) is not None)
        for benchmark in benchmarks
    }
    return " ".join(found.pop()) if len(found) == 1 else ""


def _figures(benchmark: Value) -> Iterator[Figure]:
    subject, metric = _subject(benchmark), benchmark["primaryMetric"]
    mode, unit = benchmark["mode"].text(), metric["scoreUnit"]
    whole, _, per = unit.text().partition("/")
    factor = _NS.get(per if whole == "ops" else whole)
    if factor is None or "ops" not in (whole, per.replace("op", "ops")):
        raise unit.wrong("a unit such as ops/s or us/op")
    score = metric["score"].number(0.0)
    if whole == "ops":
        if score > 0:
            rate = score * 1e9 / factor
            yield Figure(subject, "throughput", rate, "/s", "higher", within=_error(_forks(metric)))
    elif score > 0:
        yield Figure(subject, "mean", score * factor, "ns", "lower", within=_error(_forks(metric)))
        if mode == "sample":
            yield from _quantiles(metric, subject, factor)
    yield from _secondary(benchmark, subject)


def _subject(benchmark: Value) -> str:
    """Return the benchmark's name with its parameters, its threads if there are several, and its mode.

    Averages, samples and single shots are all times, so the mode tells them apart.
    """
    parameters = benchmark.get("params")
    words = [] if parameters is None else [f"{key}={value.text()}" for key, value in parameters.items()]
    threads = benchmark.get("threads")
    words += [f"threads={threads.count()}"] if threads is not None and threads.count() > 1 else []
    words += filter(None, [_MODES.get(benchmark["mode"].text())])
    name = benchmark["benchmark"].text()
    return f"{name} ({', '.join(words)})" if words else name


def _forks(metric: Value) -> list[float]:
    """Return the mean of each fork; none if the file does not hold its iterations."""
    raw = metric.get("rawData")
    forks = (
        []
        if raw is None
        else [[element.number(0.0) for element in fork.elements()] for fork in raw.elements()]
    )
    return [math.fsum(values) / len(values) for values in forks if values]


def _error(forks: list[float]) -> float | None:
    """Return the standard error of the mean's logarithm; None unless there are several forks."""
    return mean_figure("", "", forks, "", "").within if len(forks) > 1 else None


def _quantiles(metric: Value, subject: str, factor: float) -> Iterator[Figure]:
    percentiles = metric.get("scorePercentiles")
    for key in _QUANTILES if percentiles is not None else ():
        value = percentiles.get(key) if percentiles is not None else None
        if value is not None and value.number(0.0) > 0:
            yield time(f"p{float(key):g}", value.number() * factor, subject)


def _secondary(benchmark: Value, subject: str) -> Iterator[Figure]:
    """Yield the bytes allocated per operation, which the gc profiler measures."""
    metrics = benchmark.get("secondaryMetrics")
    for key, metric in metrics.items() if metrics is not None else ():
        if key.endswith(_ALLOCATED) and metric["scoreUnit"].text() == "B/op":
            value = metric["score"].number(0.0)
            if value > 0:
                yield Figure(subject, "bytes each", value, "B", "lower")
