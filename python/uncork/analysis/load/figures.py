"""The metrics of a load, and what it was asked to do."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from uncork.model.http import request_text
from uncork.model.results.figure import Direction, Figure, FigureUnit
from uncork.model.results.load import Distribution, LoadResult, SecondFacts
from uncork.model.results.sweep import SweepResult
from uncork.model.sweep import SweepSpec

_RESOLUTION: Final = 0.0005
"""A histogram's quantiles have three significant digits."""
_LEAST_INTERVALS: Final = 10
"""With fewer seconds, variation within a load does not show how precise its metrics are."""
_MOST_BATCHES: Final = 20
_PERCENTILES: Final = (
    *(("p50", "p50_ns"), ("p90", "p90_ns"), ("p95", "p95_ns"), ("p99", "p99_ns")),
    *(("p99.9", "p999_ns"), ("p99.99", "p9999_ns")),
)
_SWEPT: Final = (
    "protocol",
    "operations under way a connection",
    "tries",
    "a connection for each",
    "variables",
)
"""What a load is asked that holds for all steps of a sweep."""
CLOSED_LOOP: Final = "closed loop"
"""The name of a closed loop's arrivals in what was asked."""
_NEEDED: Final = {"p99": 1_000, "p99.9": 10_000, "p99.99": 100_000}
"""Operations that a percentile requires so that at least ten lie beyond it."""


def asked_of_load(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return what a load was asked to do, by name, without its seed and its target."""
    http, arrivals = plan.get("http") or {}, plan["arrivals"] or {}
    asked = {
        "clients": plan["clients"],
        "connections at most": plan["max_clients"] or plan["clients"],
        "threads": plan["threads"],
        "protocol": http.get("version") or plan.get("protocol"),
        "operations under way a connection": plan["pipeline_depth"],
        "arrivals": ", ".join(f"{key} {value}" for key, value in arrivals.items() if key != "offsets_ns")
        or CLOSED_LOOP,
        "latency limit": plan["latency_limit_ns"],
        "tries": plan.get("max_tries", 1),
        "a connection for each": plan["connect_each"],
        "ends after": ", ".join(f"{key} {value}" for key, value in sorted(plan["stop"].items())),
        "warm-up": plan["warmup_ns"],
        "variables": json.dumps(plan.get("variables", {}), sort_keys=True),
    }
    part = plan["part"]
    if part.get("count", 1) > 1:
        asked["part"] = f"{part['index'] + 1}/{part['count']}"
    if plan.get("order") == "sequential":
        asked["requests"] = "in order"
    for step in http.get("login", ()):
        text = request_text(step["request"])
        asked[f"login {step['name']}"] = hashlib.sha256(text.encode()).hexdigest()[:12]
    weights = sum(script["weight"] for script in plan["scripts"])
    for script in plan["scripts"]:
        text = request_text(script["request"]) if "request" in script else script["text"]
        asked[f"script {script['name']}"] = (
            f"{script['weight']}/{weights} {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        )
    return {name: str(value) for name, value in asked.items()}


def asked_of_sweep(plan: Mapping[str, Any], spec: SweepSpec) -> dict[str, str]:
    """Return what a sweep was asked to do, by name, without where it began and ended."""
    load = asked_of_load(plan)
    kept = {name: text for name, text in load.items() if name.startswith("script ") or name in _SWEPT}
    objectives = "; ".join(objective.text for objective in spec.objectives)
    return {**kept, "raised": spec.axis, "a visit": f"{spec.step_ns} ns", "objectives": objectives}


def sweep_figures(result: SweepResult) -> Iterator[Figure]:
    """Yield the highest throughput, the knee, the cliff, and the highest load of each objective."""
    working = [level.throughput for level in result.levels if level.works and level.throughput > 0]
    if working:
        yield Figure("", "most throughput", max(working), "/s", "higher")
    levels = [
        ("knee", None if result.knee is None else result.knee.level),
        ("breaks at", None if result.cliff is None else result.cliff.breaks),
        *((f"most that holds {objective.text}", objective.holds) for objective in result.objectives),
    ]
    for name, level in levels:
        if level is not None and level > 0:
            yield Figure("", name, level, "/s" if result.axis == "rate" else "", "higher")


def load_figures(result: LoadResult) -> Iterator[Figure]:
    """Yield throughput, times, shares of failures and statuses, and the costs of an operation."""
    counts, http = result.counts, result.http
    if counts.succeeded and result.run.elapsed_ns:
        rate = [second.succeeded / second.length_ns for second in _full(result)]
        yield Figure(
            "", "throughput", result.operations_per_second, "/s", "higher", within=_batch_error(rate)
        )
        yield from _times("", result.operation, _within(result))
    if len(result.scripts) > 1:
        for script in result.scripts:
            yield from _times(script.name, script.latency, {})
            for kind, count in script.errors_by_kind.items():
                yield from _shares(f"error {kind}", {"": count}, script.executions, subject=script.name)
    if result.lateness is not None and result.lateness.p99_ns:
        yield Figure("", "lateness p99", result.lateness.p99_ns, "ns", "lower", resolution=_RESOLUTION)
    yield from _shares("failed", {"": counts.failed}, counts.started)
    yield from _shares("error", counts.errors, counts.started)
    if http is not None:
        yield from _shares("status", http.statuses, sum(http.statuses.values()), better="")
    if counts.arrivals:
        yield from _shares("skipped", {"": counts.skipped}, counts.arrivals)
        yield from _shares("never sent", {"": counts.unsent}, counts.arrivals)
    refused = sum(counts.connect_errors.values())
    yield from _shares("refused connections", {"": refused}, refused + result.connections.opened)
    yield from _load_costs(result)


def _load_costs(result: LoadResult) -> Iterator[Figure]:
    started, generator = result.counts.started, result.generator
    if not started:
        return
    costs: list[tuple[str, float, FigureUnit]] = [
        ("generator processor time", generator.user_ns + generator.system_ns, "ns"),
        ("sent", result.counts.sent_bytes, "B"),
        ("received", result.counts.received_bytes, "B"),
    ]
    if generator.server_user_ns is not None and generator.server_system_ns is not None:
        costs.insert(
            0, ("server processor time", generator.server_user_ns + generator.server_system_ns, "ns")
        )
    for name, total, unit in costs:
        if total:
            yield Figure("", f"{name} each", total / started, unit, "lower")
    if result.counts.round_trips:
        yield Figure("", "round trips each", result.counts.round_trips / started, "", "lower", "exact")


def _times(subject: str, found: Distribution, within: Mapping[str, float | None]) -> Iterator[Figure]:
    if found.mean_ns:
        yield Figure(subject, "mean", found.mean_ns, "ns", "lower")
    for name, field in _PERCENTILES:
        value = getattr(found, field)
        if value and found.count >= _NEEDED.get(name, 0):
            yield Figure(subject, name, value, "ns", "lower", within=within.get(name), resolution=_RESOLUTION)


def _shares(
    name: str, counts: Mapping[str, int], of: int, *, better: Direction = "lower", subject: str = ""
) -> Iterator[Figure]:
    for word, count in counts.items() if of else ():
        title = f"{name} {word}".strip()
        yield Figure(subject, title, count / of, "share", better, "share", count=count, of=of)


def _full(result: LoadResult) -> list[SecondFacts]:
    """Return the intervals of full length in which anything happened; the last is usually shorter."""
    longest = max((second.length_ns for second in result.series), default=0)
    return [
        second
        for second in result.series
        if second.length_ns == longest
        and any((second.started, second.succeeded, second.failed, second.skipped, second.retries))
    ]


def _within(result: LoadResult) -> dict[str, float | None]:
    seconds = _full(result)
    return {
        "p50": _batch_error([second.p50_ns or 0 for second in seconds]),
        "p99": _batch_error([second.p99_ns or 0 for second in seconds]),
    }


def _batch_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the log of a mean, from batches, which hardly depend on each other.

    None with fewer than ten values, or if one is not positive.
    """
    if len(values) < _LEAST_INTERVALS or min(values) <= 0:
        return None
    size = math.ceil(len(values) / _MOST_BATCHES)
    batches = [
        math.fsum(math.log(value) for value in values[start : start + size]) / size
        for start in range(0, len(values) - size + 1, size)
    ]
    mean = math.fsum(batches) / len(batches)
    squares = math.fsum((batch - mean) ** 2 for batch in batches)
    return math.sqrt(squares / (len(batches) - 1) / len(batches))
