"""A load in the text format of Go's benchmarks, which `benchstat` reads and compares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from uncork.model.results.load import Distribution, LoadResult

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64", "i686": "386"}
_UNITS: Final = (
    *(("ns/op", "lower"), ("p50-ns", "lower"), ("p90-ns", "lower"), ("p99-ns", "lower")),
    *(("p99.9-ns", "lower"), ("max-ns", "lower"), ("tps", "higher"), ("errors", "lower")),
)


def render_go_bench(result: LoadResult) -> str:
    """Return a line per script and one for all: one sample, because `benchstat` reads several files."""
    return "\n".join(_lines(result)) + "\n"


def bench_environment(machine: Mapping[str, str], package: str) -> Iterator[str]:
    """Yield the configuration lines with which Go's own benchmarks begin."""
    architecture = machine.get("architecture", "")
    yield "goos: linux"
    yield f"goarch: {_ARCHITECTURES.get(architecture, architecture or 'unknown')}"
    yield f"pkg: {package}"
    if "processor" in machine:
        yield f"cpu: {machine['processor']}"


def bench_word(text: str) -> str:
    """Return a text without the characters that separate words and keys in a benchmark's name."""
    return re.sub(r"[^A-Za-z0-9._@+-]+", "_", text).strip("_") or "unnamed"


def bench_number(value: float | None) -> str:
    """Format a value as Go does; None is 0."""
    return f"{value or 0:.10g}"


def _lines(result: LoadResult) -> Iterator[str]:
    kind = "sql" if result.http is None else "http"
    yield from bench_environment(result.environment.get("machine", {}), f"uncork/load/{kind}")
    for unit, better in _UNITS:
        if unit == "tps" and result.http is not None:
            unit = "req/s"  # noqa: PLW2901
        yield f"Unit {unit} better={better}"
    seconds = result.run.elapsed_ns / 1e9
    if len(result.scripts) != 1:
        failed = result.counts.failed
        yield from _line(result, "all", result.operation, result.counts.succeeded, failed, seconds)
    for script in result.scripts:
        succeeded = script.executions - script.errors
        yield from _line(result, script.name, script.latency, succeeded, script.errors, seconds)


def _line(
    result: LoadResult, script: str, found: Distribution, succeeded: int, failed: int, seconds: float
) -> Iterator[str]:
    if not succeeded or found.mean_ns is None or not seconds:
        return
    settings = result.settings
    keys = {"script": script, "protocol": settings.protocol, "clients": str(settings.clients)}
    if result.http is not None:
        keys["streams"] = str(settings.pipeline_depth)
    if settings.open_loop:
        keys["arrivals"] = settings.arrivals or ""
        if settings.rate is not None:
            keys["rate"] = f"{settings.rate:g}"
    name = "/".join(f"{key}={bench_word(value)}" for key, value in keys.items())
    values = (
        *((found.mean_ns, "ns/op"), (found.p50_ns, "p50-ns"), (found.p90_ns, "p90-ns")),
        *((found.p99_ns, "p99-ns"), (found.p999_ns, "p99.9-ns"), (found.max_ns, "max-ns")),
        *((succeeded / seconds, "tps" if result.http is None else "req/s"), (failed, "errors")),
    )
    figures = " ".join(f"{bench_number(value)} {unit}" for value, unit in values)
    verb = "SQL" if result.http is None else "HTTP"
    yield f"BenchmarkLoad{verb}/{name} {succeeded} {figures}"
