"""The summary that k6 writes at the end of a test: from handleSummary, --summary-export, or version 2."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import share, throughput, time
from uncork.profile.imported.strict import Value

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
        ValueError: if a value is missing or wrong.
    """
    values = _values(Value(data)) if isinstance(data, dict) else {}
    if not {"iterations", "http_reqs", "vus"} & set(values):
        return None
    document = Value(data)
    options = {"virtual users at most": _most_users(values)}
    config = document.get("config")
    script = None if config is None else config.get("script")
    if script is not None and script.text():
        options["script"] = _script(script.text())
    named = options.get("script", "sha256")
    what = (
        named
        if not named.startswith("sha256")
        else ("HTTP requests" if "http_reqs" in values else "iterations")
    )
    return ImportedRun(
        tool="k6",
        question=f"k6: {what}",
        figures=tuple(_figures(values, _seconds(document))),
        asked=options,
        started_at=_begun(document),
    )


def _values(document: Value) -> dict[str, Value]:
    """Return each metric's values by name, from any of the three formats; an empty dict for other data."""
    metrics, results = document.get("metrics"), document.get("results")
    if metrics is not None and isinstance(metrics.found, dict):
        return {name: metric.get("values") or metric for name, metric in metrics.items()}
    listed = results.get("metrics") if results is not None and isinstance(results.found, dict) else None
    if results is None or listed is None or document.get("metadata") is None:
        return {}
    checks = results.get("checks")
    checked = None if checks is None else checks.get("metrics")
    all_metrics = listed.elements()
    if checked is not None:
        named = isinstance(checked.found, dict)
        all_metrics += [value for _, value in checked.items()] if named else checked.elements()
    found = {metric["name"].text(): metric["values"] for metric in all_metrics}
    if "checks_succeeded" in found:
        found["checks"] = found["checks_succeeded"]
    return found


def _seconds(document: Value) -> float | None:
    """Return how long the test ran, which only the newest format says."""
    config = document.get("config")
    found = None if config is None else config.get("duration")
    return None if found is None else found.number(0.0)


def _script(text: str) -> str:
    """Return the name of a script; of one that the file holds as a whole, its digest."""
    return text if "\n" not in text else f"sha256 {hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _most_users(values: Mapping[str, Value]) -> str:
    users = values.get("vus_max") or values.get("vus")
    most = None if users is None else users.get("max") or users.get("value")
    return "" if most is None else f"{most.number():g}"


def _begun(document: Value) -> str | None:
    """Return when the test began: its duration before the summary was written, if both are known."""
    metadata, lasted = document.get("metadata"), _seconds(document)
    made = None if metadata is None else metadata.get("generated_at") or metadata.get("generatedAt")
    if made is None or lasted is None:
        return None
    try:
        ended = datetime.fromisoformat(made.text())
    except ValueError as error:
        raise made.wrong("a time such as 2026-05-31T08:30:00Z") from error
    return (ended - timedelta(seconds=lasted)).isoformat(timespec="seconds")


def _figures(values: Mapping[str, Value], seconds: float | None) -> Iterator[Figure]:
    counted = values.get("http_reqs") or values.get("iterations")
    rate = None if counted is None else counted.get("rate")
    if rate is not None and rate.number(0.0) > 0:
        yield throughput(rate.number())
    elif rate is None and counted is not None and seconds and _count(counted, "count"):
        yield throughput(_count(counted, "count") / seconds)
    for metric, trend in values.items():
        labels = _SUBMETRIC.fullmatch(metric)
        if metric in _TIMES or labels:
            yield from _trend(trend, _TIMES.get(metric, ""), labels[1] if labels else "")
    for metric, name, wrong in (("http_req_failed", "failed", 1.0), ("checks", "error of checks", -1.0)):
        if metric in values:
            part, of = _rate(values[metric])
            yield from share(name, round((part if wrong > 0 else 1.0 - part) * of), of)
    dropped = values.get("dropped_iterations")
    if dropped is not None:
        done = values.get("iterations")
        left, count = _count(dropped, "count"), 0 if done is None else _count(done, "count")
        yield from share("never sent", left, left + count)


def _rate(values: Value) -> tuple[float, int]:
    """Return a rate and its total count. Passes and fails are swapped between formats, so use their sum."""
    of = _count(values, "total") or _count(values, "passes") + _count(values, "fails")
    rate = values.get("rate") or values.get("value")
    if rate is None:
        return 0.0, of
    if rate.number(0.0) > 1:
        raise rate.wrong("a share from 0 to 1")
    return rate.number(), of


def _count(values: Value, key: str) -> int:
    found = values.get(key)
    return 0 if found is None else found.count()


def _trend(trend: Value, prefix: str, subject: str) -> Iterator[Figure]:
    """Yield a trend's times, which are in milliseconds."""
    names = {"avg": "mean", "med": "p50"}
    for key, value in trend.items():
        percentile = re.fullmatch(r"p\(?(\d+(?:\.\d+)?)\)?", key)
        name = names.get(key) or (f"p{float(percentile[1]):g}" if percentile else "")
        if name and value.found is not None and value.number() > 0:
            yield time(f"{prefix}{name}", value.number() * 1e6, subject)
