"""Build the rates of sessions and transactions from the growth of the server's counters. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from uncork.model.database.sessions import SessionRates
from uncork.model.results.database import CounterFacts, DatabaseResult

_VIEW: Final = "pg_stat_database"
_SESSIONS: Final = 14
"""The first version whose pg_stat_database counts sessions."""


def session_rates_of(result: DatabaseResult) -> SessionRates | None:
    """Return the rates of the watched database; None if its counters did not grow or were reset meanwhile.

    Commits of uncork's own samples are left out.
    """
    version = re.search(r"\d+", result.server_version)
    reset = any(name.startswith(_VIEW) and name.endswith(f" {result.database}") for name in result.resets)
    seconds = (result.watch.ended_us - result.watch.begun_us) / 1e6
    if version is None or reset or seconds <= 0:
        return None
    return session_rates(
        result.counters, result.database, seconds, int(version[0]), own_commits=result.watch.samples
    )


def session_rates(
    counters: Iterable[CounterFacts], database: str, seconds: float, version: int, *, own_commits: int = 0
) -> SessionRates | None:
    """Return the rates of a database over `seconds`; None if none of its counters grew.

    `version` is the server's major version. `own_commits` are left out.
    """
    grown = {one.counter: one.delta for one in counters if (one.view, one.object) == (_VIEW, database)}
    if not grown:
        return None

    def rate(counter: str) -> float:
        return grown.get(counter, 0.0) / seconds

    def since_14(counter: str) -> float | None:
        return rate(counter) if version >= _SESSIONS else None

    idle, active = (grown.get(f"{state}_time", 0.0) for state in ("idle_in_transaction", "active"))
    return SessionRates(
        commits=max(0.0, rate("xact_commit") - own_commits / seconds),
        rollbacks=rate("xact_rollback"),
        deadlocks=rate("deadlocks"),
        temp_files=rate("temp_files"),
        temp_bytes=rate("temp_bytes"),
        opened=since_14("sessions"),
        abandoned=since_14("sessions_abandoned"),
        fatal=since_14("sessions_fatal"),
        killed=since_14("sessions_killed"),
        idle_share=idle / (idle + active) if version >= _SESSIONS and idle + active > 0 else None,
    )
