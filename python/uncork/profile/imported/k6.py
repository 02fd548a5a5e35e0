"""What k6 writes of a test at its end: handleSummary's data, or --summary-export's, which is flatter."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from uncork.model.figure import Figure
from uncork.model.imported import ImportedRun
from uncork.profile.imported.parts import share, throughput, time

__all__ = ["read"]

_TIMES: Final = {
    "http_req_duration": "",
    "http_req_waiting": "first byte ",
    "http_req_connecting": "connect ",
    "iteration_duration": "iteration ",
}
_SUBMETRIC: Final = re.compile(r"http_req_duration\{(.+)\}")


def read(data: Any) -> ImportedRun | None:
    """Return what k6 wrote; None if it was not k6.

    Raises:
        KeyError, TypeError, ValueError: if something is no number.
    """
    metrics = data.get("metrics") if isinstance(data, dict) else None
    if not isinstance(metrics, dict) or not {"iterations", "http_reqs", "vus"} & set(metrics):
        return None
    values = {name: dict(metric.get("values", metric)) for name, metric in metrics.items()}
    vus = values.get("vus_max", values.get("vus", {}))
    return ImportedRun(
        tool="k6",
        question=f"k6: {'HTTP requests' if 'http_reqs' in values else 'iterations'}",
        figures=tuple(_figures(values)),
        asked={"virtual users at most": str(vus.get("max", vus.get("value", "")))},
    )


def _figures(values: Mapping[str, Mapping[str, Any]]) -> Iterator[Figure]:
    counted = values.get("http_reqs") or values.get("iterations") or {}
    if counted.get("rate"):
        yield throughput(float(counted["rate"]))
    for metric, trend in values.items():
        labels = _SUBMETRIC.fullmatch(metric)
        if metric in _TIMES or labels:
            yield from _trend(trend, _TIMES.get(metric, ""), labels[1] if labels else "")
    failed = values.get("http_req_failed")
    if failed:
        # Of this rate, what passes is a request that failed.
        wrong, right = int(failed.get("passes", 0)), int(failed.get("fails", 0))
        yield from share("failed", wrong, wrong + right)
    checks = values.get("checks")
    if checks:
        wrong, right = int(checks.get("fails", 0)), int(checks.get("passes", 0))
        yield from share("error of checks", wrong, wrong + right)
    if values.get("dropped_iterations"):
        dropped = int(values["dropped_iterations"].get("count", 0))
        done = int(values.get("iterations", {}).get("count", 0))
        yield from share("never sent", dropped, dropped + done)


def _trend(trend: Mapping[str, Any], prefix: str, subject: str) -> Iterator[Figure]:
    """Yield a trend's times, which are in milliseconds."""
    names = {"avg": "mean", "med": "p50"}
    for key, value in trend.items():
        percentile = re.fullmatch(r"p\(([\d.]+)\)", key)
        name = names.get(key) or (f"p{float(percentile[1]):g}" if percentile else "")
        if name and float(value) > 0:
            yield time(f"{prefix}{name}", float(value) * 1e6, subject)
