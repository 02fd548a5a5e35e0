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

GROUPS: tuple[tuple[Scenario, ...], ...] = tuple(
    tuple(module.SCENARIOS)
    for module in (
        healthy,
        clients,
        functions,
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
)
"""The databases by what their faults are about."""
SCENARIOS: tuple[Scenario, ...] = tuple(scenario for group in GROUPS for scenario in group)
