"""The costs of an operation that reports list, in their order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from uncork.model.results.experiment import Cost

__all__ = ["COSTS", "CostItem", "CostUnit"]

CostUnit = Literal["ns", "B", ""]


@dataclass(frozen=True, slots=True)
class CostItem:
    """One cost: its name, its base unit, and how to read it from a `Cost` (None if unknown)."""

    name: str
    unit: CostUnit
    read: Callable[[Cost], float | None]


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


COSTS: Final = (
    CostItem("server CPU", "ns", lambda cost: _sum(cost.server_user_ns, cost.server_system_ns)),
    CostItem("server CPU in the kernel", "ns", lambda cost: cost.server_system_ns),
    CostItem("service CPU", "ns", lambda cost: _sum(cost.service_user_ns, cost.service_system_ns)),
    CostItem("service CPU in the kernel", "ns", lambda cost: cost.service_system_ns),
    CostItem("client CPU", "ns", lambda cost: _sum(cost.client_user_ns, cost.client_system_ns)),
    CostItem("buffers hit", "", lambda cost: cost.shared_hit),
    CostItem("buffers read", "", lambda cost: cost.shared_read),
    CostItem("buffers dirtied", "", lambda cost: cost.shared_dirtied),
    CostItem("WAL", "B", lambda cost: cost.wal_bytes),
    CostItem("WAL records", "", lambda cost: cost.wal_records),
    CostItem("temporary files", "B", lambda cost: cost.temp_bytes),
    CostItem("queries", "", lambda cost: cost.queries),
    CostItem("rows", "", lambda cost: cost.rows),
    CostItem("sent", "B", lambda cost: cost.sent_bytes),
    CostItem("received", "B", lambda cost: cost.received_bytes),
)
