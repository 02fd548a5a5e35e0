"""Shared by all tests: a place for runs that is not the checkout, and hypothesis without a stopwatch."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("uncork", deadline=None)
settings.load_profile("uncork")


@pytest.fixture(autouse=True)
def runs_away_from_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("UNCORK_RUNS", str(tmp_path / "runs"))
    for name in ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
