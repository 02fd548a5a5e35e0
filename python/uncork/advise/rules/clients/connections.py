"""Clients that open a connection for each request, and close it again. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.advise.evidence import Evidence
from uncork.advise.rule import Rule
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.units import format_count, format_duration

_CPU_S: Final = 0.003
"""Processor time of the server for a connection: the process is forked and its caches are filled. Measured:
2.8 ms for PostgreSQL 18 and 3.7 ms for PostgreSQL 15 with ``SELECT 1``, 3.6 and 4.8 ms with a join of two
catalogue tables, over 200 connections on one machine, without TLS."""
_PER_S: Final = 5.0
_COMMITS: Final = 20.0
"""Connections per second, and transactions for each of them up to which they are opened for single requests.
A pool opens a connection every few minutes."""
_HOUR_S: Final = 3600.0


def _find(seen: Evidence) -> Iterator[Finding]:
    opened = _per_second(seen, "sessions", None if seen.rates is None else seen.rates.opened)
    commits = _per_second(seen, "xact_commit", None if seen.rates is None else seen.rates.commits)
    if opened is None or opened < _PER_S or (commits or 0.0) > _COMMITS * opened:
        return
    # Sessions that are starting are not in the samples, so their time is added to the busy time.
    busy = opened * _CPU_S
    share = busy / (busy + seen.sessions)
    applications = sorted({piece.application for piece in seen.pieces if piece.application})
    who = f" by application {applications[0]}" if len(applications) == 1 else ""
    number = format_count(round(opened))
    evidence = [
        f"The server starts a process for each connection, which takes about {format_duration(_CPU_S * 1e9)} "
        "of its processor time, and the client waits for it.",
    ]
    if commits:
        evidence.append(f"A connection executes {commits / opened:.1f} transactions on average.")
    yield RULE.finding(
        f"{number} connections a second are opened{who}, for few statements each",
        objects=applications,
        bill=Bill(busy * _HOUR_S, 0.5 * busy * _HOUR_S, 2 * busy * _HOUR_S, share),
        evidence=evidence,
        candidates=(
            Candidate(
                "client",
                "Keep connections open in a pool of the application or its driver.",
                against=(
                    "Requests share sessions: what a request sets (SET, temporary tables, advisory locks) "
                    "stays for the next one unless the pool resets it.",
                ),
                habit="connects",
                per_hour=opened * _HOUR_S,
            ),
            Candidate(
                "client",
                "Put PgBouncer (pool_mode = transaction) between the application and the server.",
                against=(
                    "Session state (SET, LISTEN, temporary tables, advisory locks) does not survive a "
                    "transaction.",
                ),
            ),
        ),
        proof="uncork cure compares the captured statements over new and over kept connections.",
    )


def _per_second(evidence: Evidence, counter: str, known: float | None) -> float | None:
    """Return a rate of the watched database; None if the server does not count it."""
    if known is not None or evidence.database is None:
        return known
    found = [
        one.delta
        for one in evidence.database.counters
        if (one.view, one.object, one.counter) == ("pg_stat_database", evidence.database.database, counter)
    ]
    return sum(found) / evidence.seconds if found else None


RULE: Final = Rule("connection-per-request", _find)
