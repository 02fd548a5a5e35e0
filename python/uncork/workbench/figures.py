"""Published figures of a case that are no metric of a cell: what of a run's costs corresponds to them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from uncork import cases
from uncork.model.result import BatchFacts, Cost, Levels, PublishedFigure
from uncork.model.trial import Cell
from uncork.report.kernel import kernel_share

__all__ = ["published_in_costs"]

Values = Mapping[tuple[str, str, str], float]
"""Each variant's metric, by cell name, workload and variant."""


@dataclass(frozen=True, slots=True)
class _Corresponding:
    """How one of our costs is read, and in which unit."""

    unit: Literal["ns", "B", "share", ""]
    read: Callable[[Cost, BatchFacts | None], float | None]


_COSTS: Mapping[str, _Corresponding] = {
    "server CPU": _Corresponding("ns", lambda cost, _: _sum(cost.server_user_ns, cost.server_system_ns)),
    "client CPU": _Corresponding("ns", lambda cost, _: _sum(cost.client_user_ns, cost.client_system_ns)),
    "WAL": _Corresponding("B", lambda cost, _: cost.wal_bytes),
    "statements": _Corresponding("", lambda _, batch: None if batch is None else float(batch.executions)),
    "kernel's share of server CPU": _Corresponding("share", lambda cost, _: kernel_share(cost)),
}
TIME = "time"


def published_in_costs(
    case: str | None, costs: Sequence[Cost], batches: Sequence[BatchFacts], values: Values
) -> tuple[PublishedFigure, ...]:
    """Return the figures under ``[[figures]]`` in a case's expected.toml, with those of ours beside them."""
    if case is None or case not in cases.names():
        return ()
    data = tomllib.loads((cases.path(case) / "expected.toml").read_text())
    return tuple(_figure(entry, costs, batches, values) for entry in data.get("figures", ()))


def _figure(
    entry: Mapping[str, Any], costs: Sequence[Cost], batches: Sequence[BatchFacts], values: Values
) -> PublishedFigure:
    name: str = entry.get("cost", "")
    cell: Levels = tuple(entry.get("cell", {}).items())
    workload, variants = entry.get("workload", ""), tuple(entry.get("variants", ()))
    found = [_a_row(name, (cell, workload, variant), costs, batches, values) for variant in variants]
    known = [number for number in found if number is not None and (number or name.startswith("kernel"))]
    return PublishedFigure(
        name=entry["name"],
        before=entry["before"],
        after=entry["after"],
        published_ratio=entry.get("ratio"),
        cost=name,
        unit=_COSTS[name].unit if name in _COSTS else "ns" if name == TIME else "",
        cell=cell,
        workload=workload,
        variants=variants,
        measured=(known[0], known[1]) if len(known) == 2 else None,
        note=entry["note"],
    )


def _a_row(
    name: str,
    place: tuple[Levels, str, str],
    costs: Sequence[Cost],
    batches: Sequence[BatchFacts],
    values: Values,
) -> float | None:
    """Return one of our costs a row of a batch, else an operation, if it was measured."""
    cell, workload, variant = place
    batch = next((b for b in batches if (b.cell, b.workload, b.variant) == place), None)
    cost = next((c for c in costs if (c.cell, c.workload, c.variant) == place), None)
    if cost is None:
        return None
    whole = (
        values.get((Cell(cell).name, workload, variant)) if name == TIME else _COSTS[name].read(cost, batch)
    )
    return whole if whole is None or batch is None else whole / batch.rows


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other
