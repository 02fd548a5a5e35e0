"""Find what keeps dead rows from VACUUM: sessions, standbys, prepared transactions, slots. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from uncork.model.database.wait_classes import IDLE
from uncork.model.results.database_transactions import HorizonHolder
from uncork.profile.activity import CLIENT

Row = Mapping[str, Any]
_MOST: Final = 10
_STANDBY: Final = "walsender"
_IGNORED: Final = re.compile(r"vacuum\b|(?:create|drop)\s+(?:unique\s+)?index\s+concurrently\b|reindex\b")
"""Statements whose own snapshots VACUUM ignores, or that end soon after it."""


def horizon_holders(
    sessions: Sequence[Row], others: Sequence[Row], database: str, texts: Mapping[int, str]
) -> tuple[HorizonHolder, ...]:
    """Return what keeps dead rows of a database, the oldest first.

    `sessions` are the rows of the last sample: a transaction that lasts is in every one. `others` are the
    rows of the table database_horizons, with the time of reading (`now_us`). Transactions in other databases
    keep nothing here; a physical slot and a standby have no database.
    """
    found = [
        *_sessions([session for session in sessions if session["database"] in (database, None)], texts),
        *_others([row for row in others if row["database"] in (database, None)]),
    ]
    return tuple(sorted(found, key=lambda one: (-one.held_age, -(one.open_ns or 0), one.name))[:_MOST])


def _sessions(rows: Sequence[Row], texts: Mapping[int, str]) -> Iterator[HorizonHolder]:
    for row in rows:
        text = texts.get(row["template"], "")
        if row["held_age"] is None or row["backend"] not in (CLIENT, _STANDBY) or _IGNORED.match(text):
            continue
        waits = (row["state"] or "").startswith(IDLE)
        yield HorizonHolder(
            "session" if row["backend"] == CLIENT else "standby",
            row["application"] or "",
            row["user"] or "",
            row["held_age"],
            None if row["transaction_us"] is None else row["transaction_us"] * 1000,
            idle_ns=row["state_us"] * 1000 if waits and row["state_us"] is not None else None,
            pid=row["pid"],
            template=row["template"],
            text=text,
        )


def _others(rows: Sequence[Row]) -> Iterator[HorizonHolder]:
    for row in rows:
        open_us = None if row["since_us"] is None else max(0, row["now_us"] - row["since_us"])
        yield HorizonHolder(
            row["kind"],
            row["name"],
            row["user"] or "",
            row["held_age"] or 0,
            None if open_us is None else open_us * 1000,
            active=bool(row["active"]),
        )
