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


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run measured: `values` by cell, workload and variant; `metrics` names each workload's metric."""

    costs: Sequence[Cost]
    batches: Sequence[BatchFacts]
    values: Values
    metrics: Mapping[str, str]
    requests: Sequence[RequestCounts] = ()

    def a_row(self, name: str, place: Place) -> float | None:
        """Return a number under its published name, a row of a batch, else an operation; None if unknown."""
        cell, workload, variant = place
        batch = next((b for b in self.batches if (b.cell, b.workload, b.variant) == place), None)
        if name in _REQUESTS:
            counts = next((r for r in self.requests if (r.cell, r.workload, r.variant) == place), None)
            return None if counts is None else _REQUESTS[name][1](counts)
        if name in _METRICS:
            metric = self.metrics.get(workload, "").replace("latency", "time").partition("_")[0]
            whole = self.values.get((Cell(cell).name, workload, variant)) if metric == name else None
        else:
            cost = next((c for c in self.costs if (c.cell, c.workload, c.variant) == place), None)
            whole = None if cost is None else _COSTS[name].read(cost, batch)
        return whole if whole is None or batch is None else whole / batch.rows


def published_in_costs(case: str | None, measured: Measured) -> tuple[PublishedFigure, ...]:
    """Return the numbers under ``[[figures]]`` in a case's expected.toml, with the run's own beside them."""
    if case is None or case not in cases.names():
        return ()
    data = tomllib.loads((cases.path(case) / "expected.toml").read_text())
    return tuple(beside_ours(entry, measured) for entry in data.get("figures", ()))


def beside_ours(entry: Mapping[str, Any], measured: Measured) -> PublishedFigure:
    """Return a published number with the run's own beside it."""
    name: str = entry.get("cost", "")
    unit: Unit = _METRICS.get(name, "")
    if name in _REQUESTS:
        unit = _REQUESTS[name][0]
    elif name in _COSTS:
        unit = _COSTS[name].unit
    cell: Levels = tuple(entry.get("cell", {}).items())
    workload, variants = entry.get("workload", ""), tuple(entry.get("variants", ()))
    found = [measured.a_row(name, (cell, workload, variant)) for variant in variants]
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


def _database_share(cost: Cost) -> float | None:
    database = _sum(cost.server_user_ns, cost.server_system_ns)
    both = _sum(database, _sum(cost.service_user_ns, cost.service_system_ns))
    return database / both if database is not None and both else None


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
