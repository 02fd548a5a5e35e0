"""What the role that watched a server may not see: the work of other roles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from uncork.model.database.missing import HiddenWork
from uncork.model.tables.database import HIDDEN_STATEMENTS

Row = Mapping[str, Any]

_LEAST_ACTIVE: Final = 0.05
"""Active sessions on average, by the server's count, below which no share of them is computed."""


def hidden_work(
    server: Row,
    hidden_sessions: float,
    statements: Iterable[Row],
    counters: tuple[Iterable[Row], Iterable[Row]],
    sessions: Iterable[Row],
    own_active: float | None,
    length_us: float,
) -> HiddenWork | None:
    """Return what other roles did unseen; None if the role may see everything, or missed nothing. Pure.

    `statements` are the differences of the entries that the role may see, `counters` the rows before and
    after. `sessions` are the time of busy sessions by place (`weight`), and `own_active` the number of active
    ones by the server's count. If the counters of hidden statements fell (a reset, or entries that were
    evicted), their share is unknown.
    """
    if server["sees_all"]:
        return None
    database = server["database"]
    seen_ms = (
        sum(row["execution_ns"] for row in statements if row["database"] == database and row["toplevel"])
        / 1e6
    )
    before_ms, after_ms = map(_hidden_ms, counters)
    hidden_ms = None if before_ms is None or after_ms is None else after_ms - before_ms
    rows = list(sessions)
    active = (
        sum(row["weight"] for row in rows if row["database"] == database and row["state"] == "active")
        / length_us
    )
    share: float | None = None
    base: Literal["statements", "sessions", ""] = ""
    if hidden_ms is not None and hidden_ms >= 0 and hidden_ms + seen_ms > 0:
        share, base = hidden_ms / (hidden_ms + seen_ms), "statements"
    elif own_active is not None and own_active >= _LEAST_ACTIVE:
        share, base = max(0.0, 1.0 - active / own_active), "sessions"
    if not hidden_sessions and not share:
        return None
    return HiddenWork(server["role"], hidden_sessions, share, base, busy=bool(rows))


def _hidden_ms(counters: Iterable[Row]) -> float | None:
    wanted = (HIDDEN_STATEMENTS, "total_exec_time")
    return next((row["value"] for row in counters if (row["view"], row["counter"]) == wanted), None)
