"""Findings about services that do not keep their connections to the database. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from uncork.advise.service_causes import Causes, outside_shares
from uncork.model.results.service import RequestFacts, SentTemplate, ServiceFinding
from uncork.model.units import format_duration

_OFTEN: Final = 0.5
"""Connections for each request from which on a service opens them again and again."""
_PREPARES: Final = re.compile(r"set |show |select (?:pg_catalog\.)?(?:set_config|version|current_schema)\b")
"""Statements with which drivers prepare a connection."""


def prepares(request: RequestFacts, template: SentTemplate) -> bool:
    """Return whether a request sends a statement because it opens a connection."""
    return (request.connections or 0.0) >= _OFTEN and _PREPARES.match(template.text) is not None


def opened_connections(
    requests: Sequence[RequestFacts], causes: Causes, connect_ns: float | None
) -> tuple[ServiceFinding, ...]:
    """Report that requests open connections; `connect_ns` is how long one takes, None if it was not measured.

    The requests wait that long for each connection, and others wait for their processes meanwhile. Statements
    that prepare the connection count too.
    """
    found = [request for request in requests if (request.connections or 0.0) >= _OFTEN]
    whole = sum((request.mean_ns or 0.0) * request.sent for request in requests)
    if not found or not whole or not connect_ns:
        return ()
    outside, executing = outside_shares(requests, causes), _executing(requests)
    shares = {
        one.name: min(
            outside[one.name],
            (one.connections or 0.0) * connect_ns * one.sent / whole * causes.grown,
        )
        for one in found
    }
    preparing = _executing(found, preparing=True) / executing if executing else 0.0
    most = max(found, key=lambda one: shares[one.name])
    every = len(found) == len(requests) > 1
    many = f"{most.connections:.2g} connections" if (most.connections or 0.0) >= 1.5 else "a connection"
    who = "each request" if every else f"{most.name}"
    return (
        ServiceFinding(
            "connections",
            f"{who} opens {many} to the database{'' if every else ' for each request'}; opening one takes "
            f"{format_duration(connect_ns)} under this load, before the first statement",
            "keep connections open: a pool in the service, persistent connections (Django: CONN_MAX_AGE or "
            "pool), or pgbouncer next to the service",
            sum(shares.values()) + causes.executing * preparing,
            most.name,
        ),
    )


def _executing(requests: Sequence[RequestFacts], *, preparing: bool = False) -> float:
    """Return the execution time of the requests' statements, or only of what prepares connections."""
    return sum(
        template.ns * request.sent
        for request in requests
        for template in request.templates
        if not preparing or prepares(request, template)
    )
