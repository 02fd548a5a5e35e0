"""Small databases of known health, with real clients: what the advice must say of each."""

from __future__ import annotations

from databases import (
    clients,
    functions,
    healthy,
    indexes,
    internal_locks,
    locks,
    plans,
    schema,
    server,
    services,
    space,
    writes,
)
from databases.scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = (
    *healthy.SCENARIOS,
    *clients.SCENARIOS,
    *functions.SCENARIOS,
    *indexes.SCENARIOS,
    *internal_locks.SCENARIOS,
    *locks.SCENARIOS,
    *plans.SCENARIOS,
    *schema.SCENARIOS,
    *server.SCENARIOS,
    *services.SCENARIOS,
    *space.SCENARIOS,
    *writes.SCENARIOS,
)
