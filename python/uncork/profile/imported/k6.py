"""The summary that k6 writes at the end of a test: from handleSummary, --summary-export, or version 2."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
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
    """Return the results of k6; None if the data is not its summary.

    Raises:
        KeyError, TypeError, ValueError: if a value is not a number.
    """
    values = _values(data) if isinstance(data, dict) else {}
    if not {"iterations", "http_reqs", "vus"} & set(values):
        return None
    vus = values.get("vus_max", values.get("vus", {}))
    options = {"virtual users at most": str(vus.get("max", vus.get("value", "")))}
    script = data.get("config", {}).get("script")
    if script:
        options["script"] = str(script)
    return ImportedRun(
        tool="k6",
        question=f"k6: {script or ('HTTP requests' if 'http_reqs' in values else 'iterations')}",
        figures=tuple(_figures(values)),
        asked=options,
        started_at=_begun(data),
    )


def _values(data: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return each metric's values by name, from any of the three formats; an empty dict for other data."""
    metrics, results = data.get("metrics"), data.get("results")
    if isinstance(metrics, dict):
        return {name: dict(metric.get("values", metric)) for name, metric in metrics.items()}
    if not (isinstance(results, dict) and isinstance(results.get("metrics"), list) and "metadata" in data):
        return {}
    checks = results.get("checks", {}).get("metrics", [])
    listed = [*results["metrics"], *(checks.values() if isinstance(checks, dict) else checks)]
    found = {metric["name"]: dict(metric["values"]) for metric in listed}
    if "checks_succeeded" in found:
        found["checks"] = found["checks_succeeded"]
    return found


def _begun(data: Mapping[str, Any]) -> str | None:
    """Return when the test began: its duration before the summary was written, if both are known."""
    made, lasted = data.get("metadata", {}).get("generatedAt"), data.get("config", {}).get("duration")
    if made is None or lasted is None:
        return None
    return (datetime.fromisoformat(made) - timedelta(seconds=float(lasted))).isoformat(timespec="seconds")


def _figures(values: Mapping[str, Mapping[str, Any]]) -> Iterator[Figure]:
    counted = values.get("http_reqs") or values.get("iterations") or {}
    if counted.get("rate"):
        yield throughput(float(counted["rate"]))
    for metric, trend in values.items():
        labels = _SUBMETRIC.fullmatch(metric)
        if metric in _TIMES or labels:
            yield from _trend(trend, _TIMES.get(metric, ""), labels[1] if labels else "")
    for metric, name, wrong in (("http_req_failed", "failed", 1.0), ("checks", "error of checks", -1.0)):
        if metric in values:
            rate, of = _rate(values[metric])
            yield from share(name, round((rate if wrong > 0 else 1.0 - rate) * of), of)
    if values.get("dropped_iterations"):
        dropped = int(values["dropped_iterations"].get("count", 0))
        done = int(values.get("iterations", {}).get("count", 0))
        yield from share("never sent", dropped, dropped + done)


def _rate(values: Mapping[str, Any]) -> tuple[float, int]:
    """Return a rate and its total count. Passes and fails are swapped between formats, so use their sum."""
    of = int(values.get("passes", 0)) + int(values.get("fails", 0))
    return float(values.get("rate", values.get("value", 0.0))), of


def _trend(trend: Mapping[str, Any], prefix: str, subject: str) -> Iterator[Figure]:
    """Yield a trend's times, which are in milliseconds."""
    names = {"avg": "mean", "med": "p50"}
    for key, value in trend.items():
        percentile = re.fullmatch(r"p\(([\d.]+)\)", key)
        name = names.get(key) or (f"p{float(percentile[1]):g}" if percentile else "")
        if name and float(value) > 0:
            yield time(f"{prefix}{name}", float(value) * 1e6, subject)
