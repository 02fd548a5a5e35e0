"""Costs of variants beside the baseline's: ratios with intervals, counts without noise, and shares."""

from __future__ import annotations

import random

import pytest

from uncork.analysis.experiment.result import cost_effects
from uncork.model.trial import Cell

CELLS = {"all": Cell(())}


def trials(rounds, cost, base, seed=3):
    """Return stored trials with a noisy processor time, equal buffers, and updates."""
    noise = random.Random(seed)
    for number in range(1, rounds + 1):
        for variant, again, mean, hot in (
            ("one", False, base, 90),
            ("one", True, base, 90),
            ("other", False, cost, 10),
        ):
            yield {
                "round": number,
                "block": 1,
                "cell": "all",
                "workload": "touch",
                "variant": variant,
                "again": again,
                "outcome": "complete",
                "started": 100,
                "counted_operations": 120,
                "client_user_ns": 100 * mean * noise.lognormvariate(0, 0.02),
                "client_system_ns": 0,
                "shared_hit": 120 * (4 if variant == "one" else 6),
                "updated": 100,
                "hot_updated": hot,
                "wal_bytes": 0,
            }


def effects(rows):
    found = cost_effects(list(rows), CELLS, baseline="one", confidence=0.95, kind="round")
    return {one.cost: one for one in found}


def test_a_noisy_cost_has_a_ratio_with_an_interval():
    found = effects(trials(10, 2_000, 1_000))["client CPU"]
    assert found.ratio == pytest.approx(2.0, rel=0.05)
    assert found.low < 2.0 < found.high
    assert (found.rounds, found.exact, found.difference) == (10, False, None)


def test_counts_that_never_vary_are_exact():
    found = effects(trials(10, 2_000, 1_000))["buffers hit"]
    assert (found.ratio, found.low, found.high, found.exact) == (1.5, 1.5, 1.5, True)


def test_the_share_of_hot_updates_has_a_difference():
    found = effects(trials(10, 2_000, 1_000))["HOT updates"]
    assert found.difference == pytest.approx(-0.8)
    assert found.difference_low < -0.8 < found.difference_high
    assert found.ratio is None


def test_what_is_zero_or_not_measured_has_no_effect():
    assert set(effects(trials(10, 2_000, 1_000))) == {"client CPU", "buffers hit", "HOT updates"}


def test_three_rounds_have_no_bounds_yet():
    found = effects(trials(3, 2_000, 1_000))["client CPU"]
    assert found.ratio is not None
    assert (found.low, found.high) == (None, None)
