"""The mean time of a call in one watch before a change and one after it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from uncork.model.results.database import StatementFacts
from uncork.profile.deltas import statement_deltas
from uncork.stats.run_comparison import ASSUMED_STD_DEV, ComparableRun, Measured, compare_runs, run_to_run

NONE = StatementFacts(*[0] * 16, None, None)
DAY = 86_400.0


def compare(ratio, *, calls=10_000, within=0.01, like=None):
    sides = Measured(0.0, 0.0, within), Measured(DAY, math.log(ratio), within)
    return compare_runs(*sides, like, practical=0.03, confidence=0.95, calls=calls)


def test_a_large_change_of_one_pair_has_a_verdict_and_an_interval_of_use():
    found = compare(33e-6 / 82e-3)
    assert found.assumed and found.unknown == "" and found.differs < 1e-6
    assert found.high / found.low == pytest.approx(
        math.exp(2 * 2.326 * math.sqrt(2) * ASSUMED_STD_DEV), rel=0.01
    )


@pytest.mark.parametrize("ratio", [0.6, 1.0, 1.6])
def test_a_change_that_watches_could_have_by_themselves_has_none(ratio):
    found = compare(ratio)
    assert found.differs > 0.05 and found.alike == 1.0 and found.low < 1 < found.high


def test_a_few_calls_are_too_few():
    found = compare(0.01, calls=49)
    assert found.differs == 1.0
    assert found.unknown == "one of the watches has only 49 calls; a verdict needs 50"


def test_two_comparable_watches_are_not_taken_for_knowledge_and_five_are():
    few, known = (run_to_run([[ComparableRun(DAY * n, 0.05 * n) for n in range(many)]]) for many in (2, 6))
    assert compare(0.01, like=few).assumed and compare(0.01, like=few).high < 0.03
    assert not compare(0.01, like=known).assumed
    assert compare(0.01, within=None).unknown.startswith("too few comparable runs")


def test_the_error_of_a_mean_comes_from_the_sum_of_squares():
    times = np.random.default_rng(7).lognormal(10.0, 1.0, 500)
    facts = replace(NONE, calls=500, execution_ns=float(times.sum()), squares_ns2=float((times**2).sum()))
    assert facts.mean_error() == pytest.approx(times.std(ddof=1) / math.sqrt(500) / times.mean())
    assert replace(facts, squares_ns2=None).mean_error() is None
    assert replace(facts, calls=1).mean_error() is None
    assert replace(facts, squares_ns2=0.0).mean_error() == 0.0  # lost to rounding


def test_squares_that_fall_by_a_trifle_are_no_reset():
    key = {"user_oid": 1, "database_oid": 1, "query_id": 1, "toplevel": True, "since_us": None}
    figures = {name: 0 for name in StatementFacts.__dataclass_fields__}
    before = {**key, **figures, "calls": 1_000, "execution_ns": 1e12, "squares_ns2": 1e30}
    after = {**before, "calls": 1_001, "execution_ns": 1e12 + 1, "squares_ns2": 1e30 * (1 - 1e-16 * 2)}
    (delta,) = statement_deltas([before], [after])
    assert delta["calls"] == 1 and delta["squares_ns2"] <= 0
