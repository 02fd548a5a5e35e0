"""Servers whose settings are the fault."""

from __future__ import annotations

from databases.scenario import Scenario

SCENARIOS: tuple[Scenario, ...] = ()
