"""Published numbers of a case that are not a cell's metric: which of a run's costs corresponds to them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from uncork import cases
from uncork.model.results.experiment import BatchFacts, Cost, Levels, PublishedFigure, RequestCounts
from uncork.model.trial import Cell

Values = Mapping[tuple[str, str, str], float]
"""Each variant's metric, by cell name, workload and variant."""

Place = tuple[Levels, str, str]
"""A cell, a workload and a variant."""


Unit = Literal["ns", "B", "share", "/s", ""]


@dataclass(frozen=True, slots=True)
class _Corresponding:
    """How to read one of the run's costs, and in which unit."""

    unit: Unit
    read: Callable[[Cost, BatchFacts | None], float | None]


_COSTS: Mapping[str, _Corresponding] = {
    "server CPU": _Corresponding("ns", lambda cost, _: _sum(cost.server_user_ns, cost.server_system_ns)),
    "client CPU": _Corresponding("ns", lambda cost, _: _sum(cost.client_user_ns, cost.client_system_ns)),
    "WAL": _Corresponding("B", lambda cost, _: cost.wal_bytes),
    "statements": _Corresponding("", lambda _, batch: None if batch is None else float(batch.executions)),
    "kernel's share of server CPU": _Corresponding("share", lambda cost, _: cost.kernel_share),
    "service CPU": _Corresponding("ns", lambda cost, _: _sum(cost.service_user_ns, cost.service_system_ns)),
    "database's share of CPU": _Corresponding("share", lambda cost, _: _database_share(cost)),
    "received": _Corresponding("B", lambda cost, _: cost.received_bytes),
}
_METRICS: Mapping[str, Unit] = {"time": "ns", "throughput": "/s", "success": "share"}
"""The workload's own metric; time is that of an operation, whichever latency it is."""

_REQUESTS: Mapping[str, tuple[Unit, Callable[[RequestCounts], float | None]]] = {
    "requests a second": ("/s", lambda counts: counts.throughput),
    "mean time": ("ns", lambda counts: counts.mean_ns),
    "longest time": ("ns", lambda counts: counts.longest_ns),
}
"""Metrics of requests, whatever they are compared by."""

WORDS = frozenset({*_COSTS, *_METRICS, *_REQUESTS})
"""Allowed values of `cost` in a published number."""


def published_in_costs(
    case: str | None,
    costs: Sequence[Cost],
    batches: Sequence[BatchFacts],
    values: Values,
    metrics: Mapping[str, str],
    requests: Sequence[RequestCounts] = (),
) -> tuple[PublishedFigure, ...]:
    """Return the numbers under ``[[figures]]`` in a case's expected.toml, with the run's own beside them."""
    if case is None or case not in cases.names():
        return ()
    data = tomllib.loads((cases.path(case) / "expected.toml").read_text())
    return beside_ours(data.get("figures", ()), costs, batches, values, metrics, requests)


def beside_ours(
    entries: Sequence[Mapping[str, Any]],
    costs: Sequence[Cost],
    batches: Sequence[BatchFacts],
    values: Values,
    metrics: Mapping[str, str],
    requests: Sequence[RequestCounts] = (),
) -> tuple[PublishedFigure, ...]:
    """Return published numbers with the run's own beside them; `metrics` names each workload's metric."""
    return tuple(_figure(entry, costs, batches, values, metrics, requests) for entry in entries)


def _figure(
    entry: Mapping[str, Any],
    costs: Sequence[Cost],
    batches: Sequence[BatchFacts],
    values: Values,
    metrics: Mapping[str, str],
    requests: Sequence[RequestCounts] = (),
) -> PublishedFigure:
    name: str = entry.get("cost", "")
    unit: Unit = _METRICS.get(name, "")
    if name in _REQUESTS:
        unit = _REQUESTS[name][0]
    elif name in _COSTS:
        unit = _COSTS[name].unit
    cell: Levels = tuple(entry.get("cell", {}).items())
    workload, variants = entry.get("workload", ""), tuple(entry.get("variants", ()))
    places = [(cell, workload, variant) for variant in variants]
    if name in _METRICS:
        told = metrics.get(workload, "").replace("latency", "time").partition("_")[0] == name
        found = [_of_metric(place, batches, values) if told else None for place in places]
    elif name in _REQUESTS:
        found = [_of_requests(name, place, requests) for place in places]
    else:
        found = [_a_row(name, place, costs, batches) for place in places]
    known = tuple(number for number in found if number is not None and (number or unit == "share"))
    return PublishedFigure(
        name=entry["name"],
        before=entry["before"],
        after=entry.get("after", ""),
        published_ratio=entry.get("ratio"),
        cost=name,
        unit=unit,
        cell=cell,
        workload=workload,
        variants=variants,
        measured=known if known and len(known) == len(variants) else None,
        note=entry["note"],
    )


def _of_metric(place: Place, batches: Sequence[BatchFacts], values: Values) -> float | None:
    """Return the workload's metric a row of a batch, else an operation, if it was measured."""
    cell, workload, variant = place
    return _each(values.get((Cell(cell).name, workload, variant)), place, batches)


def _of_requests(name: str, place: Place, requests: Sequence[RequestCounts]) -> float | None:
    counts = next(
        (request for request in requests if (request.cell, request.workload, request.variant) == place), None
    )
    return None if counts is None else _REQUESTS[name][1](counts)


def _a_row(name: str, place: Place, costs: Sequence[Cost], batches: Sequence[BatchFacts]) -> float | None:
    """Return one of the run's costs a row of a batch, else an operation, if it was measured."""
    batch = next((b for b in batches if (b.cell, b.workload, b.variant) == place), None)
    cost = next((c for c in costs if (c.cell, c.workload, c.variant) == place), None)
    if cost is None:
        return None
    return _each(_COSTS[name].read(cost, batch), place, batches)


def _each(whole: float | None, place: Place, batches: Sequence[BatchFacts]) -> float | None:
    batch = next((b for b in batches if (b.cell, b.workload, b.variant) == place), None)
    return whole if whole is None or batch is None else whole / batch.rows


def _database_share(cost: Cost) -> float | None:
    """Return the database's share of the processor time of services and database."""
    database = _sum(cost.server_user_ns, cost.server_system_ns)
    both = _sum(database, _sum(cost.service_user_ns, cost.service_system_ns))
    return database / both if database is not None and both else None


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
