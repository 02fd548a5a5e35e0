"""The costs of an operation that reports list, in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from uncork.model.records import Record
from uncork.model.results.experiment import Cost

CostUnit = Literal["ns", "B", "", "share"]
HOT_UPDATES: Final = "HOT updates"
"""The cost that is a share: of updated rows, those whose indexes stayed as they were."""


class CostItem(Record):
    """One cost: its name, its base unit, and how to read it from a `Cost` (None if unknown).

    In a stored trial it is the sum of `columns`, divided by the column `over`.
    """

    name: str
    unit: CostUnit
    read: Callable[[Cost], float | None]
    columns: tuple[str, ...]
    over: Literal["started", "counted_operations", "updated"] = "counted_operations"


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other


def _processor(who: Literal["server", "service", "client"]) -> tuple[str, str]:
    return f"{who}_user_ns", f"{who}_system_ns"


COSTS: Final = (
    CostItem(
        *("server CPU", "ns", lambda cost: _sum(cost.server_user_ns, cost.server_system_ns)),
        *(_processor("server"), "started"),
    ),
    CostItem(
        "server CPU in the kernel", "ns", lambda cost: cost.server_system_ns, ("server_system_ns",), "started"
    ),
    CostItem(
        *("service CPU", "ns", lambda cost: _sum(cost.service_user_ns, cost.service_system_ns)),
        _processor("service"),
    ),
    CostItem("service CPU in the kernel", "ns", lambda cost: cost.service_system_ns, ("service_system_ns",)),
    CostItem(
        *("client CPU", "ns", lambda cost: _sum(cost.client_user_ns, cost.client_system_ns)),
        *(_processor("client"), "started"),
    ),
    CostItem("buffers hit", "", lambda cost: cost.shared_hit, ("shared_hit",)),
    CostItem("buffers read", "", lambda cost: cost.shared_read, ("shared_read",)),
    CostItem("buffers dirtied", "", lambda cost: cost.shared_dirtied, ("shared_dirtied",)),
    CostItem("WAL", "B", lambda cost: cost.wal_bytes, ("wal_bytes",)),
    CostItem("WAL records", "", lambda cost: cost.wal_records, ("wal_records",)),
    CostItem(HOT_UPDATES, "share", lambda cost: cost.hot_share, ("hot_updated",), "updated"),
    CostItem("temporary files", "B", lambda cost: cost.temp_bytes, ("temp_bytes",)),
    CostItem("queries", "", lambda cost: cost.queries, ("queries",)),
    CostItem("rows", "", lambda cost: cost.rows, ("rows",), "started"),
    CostItem("sent", "B", lambda cost: cost.sent_bytes, ("sent_bytes",), "started"),
    CostItem("received", "B", lambda cost: cost.received_bytes, ("received_bytes",), "started"),
)
