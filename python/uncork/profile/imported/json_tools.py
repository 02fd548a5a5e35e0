"""The JSON of oha, hyperfine and k6, and their metrics. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from uncork.model.results.figure import Figure, ImportedRun
from uncork.profile.imported.parts import Value, is_known, mean_figure, share, throughput, time

_CUT_OFF: Final = "aborted due to deadline"
"""Requests under way when the time was over; oha's success rate does not count them either."""
_PERCENTILES: Final = (("latencyPercentiles", ""), ("firstBytePercentiles", "first byte "))
_OK: Final = range(200, 400)


def read_oha(data: Any) -> ImportedRun | None:
    """Return the results of oha; None if the data is not its output.

    Raises ValueError if a value is missing or wrong.
    """
    if not isinstance(data, dict) or not {"summary", "latencyPercentiles"} <= set(data):
        return None
    return ImportedRun(tool="oha", question="oha: HTTP requests", figures=tuple(_oha_figures(Value(data))))


def _oha_figures(document: Value) -> Iterator[Figure]:
    summary = document["summary"]
    statuses = {code: value.count() for code, value in document["statusCodeDistribution"].items()}
    answered, seconds = sum(statuses.values()), summary["total"].number(0.0)
    if answered and seconds > 0:
        # Not oha's requestsPerSec, which counts refused connections as well.
        yield throughput(answered / seconds)
    mean = summary.number_of("average")  # null if no request succeeded
    if mean > 0:
        yield time("mean", mean * 1e9)
    for key, prefix in _PERCENTILES:
        table = document.get(key)
        for name, value in table.items() if table else ():
            percent = re.fullmatch(r"p(\d+(?:\.\d+)?)", name)
            known = percent is not None and is_known(float(percent[1]) / 100, answered)
            if value and known and value.number(0.0) > 0:
                yield time(f"{prefix}{name}", value.number() * 1e9)
    details = document.get("details")
    connect = details["DNSDialup"].number_of("average") if details else 0.0
    if connect > 0:
        yield time("connect mean", connect * 1e9)
    errors = {text: value.count() for text, value in document["errorDistribution"].items()}
    lost = sum(count for text, count in errors.items() if text != _CUT_OFF)
    wrong = sum(count for code, count in statuses.items() if not (code.isdigit() and int(code) in _OK))
    yield from share("failed", wrong + lost, answered + lost)
    if lost:
        yield from share("error of connections", lost, answered + lost)


# ---- hyperfine --export-json, with one subject per command ----


def read_hyperfine(data: Any) -> ImportedRun | None:
    """Return the results of hyperfine; None if the data is not its export.

    Raises ValueError if a value is missing or wrong.
    """
    results = data.get("results") if isinstance(data, dict) else None
    if not (
        isinstance(results, list) and results and isinstance(results[0], dict) and "command" in results[0]
    ):
        return None
    listed = Value(data)["results"].elements()
    commands = [result["command"].text() for result in listed]
    return ImportedRun(
        tool="hyperfine",
        question=f"hyperfine: {', '.join(commands[:3])}",
        figures=tuple(figure for result in listed for figure in _hyperfine_figures(result)),
        asked={"commands": "; ".join(commands)},
    )


def _hyperfine_figures(result: Value) -> Iterator[Figure]:
    subject = result["command"].text()
    listed = result.get("times")
    times = [element.number(0.0) * 1e9 for element in listed.elements()] if listed else []
    several = len(times) > 1 and sum(times) > 0
    mean = 0.0 if several and not result.get("mean") else result["mean"].number(0.0)
    if several:
        yield mean_figure(subject, "mean", times, "ns", "lower")
    elif mean > 0:
        yield time("mean", mean * 1e9, subject)
    median = result.number_of("median")
    if median > 0:
        yield time("p50", median * 1e9, subject)
    spent = result.number_of("user") + result.number_of("system")
    if spent > 0:
        yield time("processor time each", spent * 1e9, subject)
    codes = result.get("exit_codes")
    found = [code.found for code in codes.elements()] if codes else []
    if found:
        failed = sum(code != 0 for code in found)  # null: ended by a signal
        yield from share("failed", failed, len(found), subject=subject)


# ---- the summary of k6 at the end of a test: from handleSummary, --summary-export, or version 2 ----

_TIMES: Final = {
    "http_req_duration": "",
    "http_req_waiting": "first byte ",
    "http_req_connecting": "connect ",
    "iteration_duration": "iteration ",
}
_SUBMETRIC: Final = re.compile(r"http_req_duration\{(.+)\}")


def read_k6(data: Any) -> ImportedRun | None:
    """Return the results of k6; None if the data is not its summary.

    Raises ValueError if a value is missing or wrong.
    """
    values = _values(Value(data)) if isinstance(data, dict) else {}
    if not {"iterations", "http_reqs", "vus"} & set(values):
        return None
    document = Value(data)
    users = values.get("vus_max") or values.get("vus") or Value(None)
    most, script = users.get("max") or users.get("value"), document.get("config").get("script")
    options = {"virtual users at most": f"{most.number():g}" if most else ""}
    what = "HTTP requests" if "http_reqs" in values else "iterations"
    if script and script.text():
        whole = "\n" in script.text()  # the file holds the script itself
        digest = hashlib.sha256(script.text().encode()).hexdigest()[:12]
        options["script"] = f"sha256 {digest}" if whole else script.text()
        what = what if options["script"].startswith("sha256") else script.text()
    return ImportedRun(
        tool="k6",
        question=f"k6: {what}",
        figures=tuple(_k6_figures(values, _seconds(document))),
        asked=options,
        started_at=_begun(document),
    )


def _values(document: Value) -> dict[str, Value]:
    metrics, results = document.get("metrics"), document.get("results")
    if isinstance(metrics.found, dict):
        return {name: metric.get("values") or metric for name, metric in metrics.items()}
    listed = results.get("metrics") if isinstance(results.found, dict) else None
    if not listed or not document.get("metadata"):
        return {}
    checked = results.get("checks").get("metrics")
    all_metrics = listed.elements()
    if checked:
        named = isinstance(checked.found, dict)
        all_metrics += [value for _, value in checked.items()] if named else checked.elements()
    found = {metric["name"].text(): metric["values"] for metric in all_metrics}
    if "checks_succeeded" in found:
        found["checks"] = found["checks_succeeded"]
    return found


def _seconds(document: Value) -> float | None:
    """Return how long the test ran, which only the newest format says."""
    found = document.get("config").get("duration")
    return found.number(0.0) if found else None


def _begun(document: Value) -> str | None:
    """Return when the test began: its duration before the summary was written, if both are known."""
    metadata, lasted = document.get("metadata"), _seconds(document)
    made = metadata.get("generated_at") or metadata.get("generatedAt")
    if not made or lasted is None:
        return None
    try:
        ended = datetime.fromisoformat(made.text())
    except ValueError as error:
        raise made.wrong("a time such as 2026-05-31T08:30:00Z") from error
    return (ended - timedelta(seconds=lasted)).isoformat(timespec="seconds")


def _k6_figures(values: Mapping[str, Value], seconds: float | None) -> Iterator[Figure]:
    counted = values.get("http_reqs") or values.get("iterations")
    rate = counted.get("rate") if counted else counted
    if rate and rate.number(0.0) > 0:
        yield throughput(rate.number())
    elif counted and not rate and seconds and counted.count_of("count"):
        yield throughput(counted.count_of("count") / seconds)
    for metric, trend in values.items():
        labels = _SUBMETRIC.fullmatch(metric)
        if metric in _TIMES or labels:
            yield from _trend(trend, _TIMES.get(metric, ""), labels[1] if labels else "")
    for metric, name, wrong in (("http_req_failed", "failed", 1.0), ("checks", "error of checks", -1.0)):
        if metric in values:
            part, of = _rate(values[metric])
            yield from share(name, round((part if wrong > 0 else 1.0 - part) * of), of)
    dropped = values.get("dropped_iterations")
    if dropped:
        done, left = values.get("iterations"), dropped.count_of("count")
        yield from share("never sent", left, left + (done.count_of("count") if done else 0))


def _rate(values: Value) -> tuple[float, int]:
    """Return a rate and its total count. Passes and fails are swapped between formats, so use their sum."""
    of = values.count_of("total") or values.count_of("passes") + values.count_of("fails")
    rate = values.get("rate") or values.get("value")
    if not rate:
        return 0.0, of
    if rate.number(0.0) > 1:
        raise rate.wrong("a share from 0 to 1")
    return rate.number(), of


def _trend(trend: Value, prefix: str, subject: str) -> Iterator[Figure]:
    """Yield a trend's times, which are in milliseconds."""
    names = {"avg": "mean", "med": "p50"}
    for key, value in trend.items():
        percentile = re.fullmatch(r"p\(?(\d+(?:\.\d+)?)\)?", key)
        name = names.get(key) or (f"p{float(percentile[1]):g}" if percentile else "")
        if name and value and value.number() > 0:
            yield time(f"{prefix}{name}", value.number() * 1e6, subject)
