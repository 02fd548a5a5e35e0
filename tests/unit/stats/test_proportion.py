"""Differences of shares of success: units, the interval by requests against brute force, verdicts."""

import math

import numpy as np
import pytest

from uncork.model.verdict import Verdict
from uncork.stats.compare import judge, settled
from uncork.stats.proportion import (
    Counted,
    ShareUnits,
    estimate_share,
    log_e_of_requests,
    requests_interval,
    share_interval,
    share_units,
)

NAMES = {"baseline": "base", "again": "base#2", "variant": "new"}


def trials(rounds, *, base=(300, 300), again=(300, 300), new=(300, 300), blocks=2):
    return [
        Counted(number, block, arm, *counts)
        for number in range(1, rounds + 1)
        for block in range(1, blocks + 1)
        for arm, counts in (("base", base), ("base#2", again), ("new", new), ("other", (1, 300)))
    ]


def test_a_unit_is_the_difference_of_a_round_over_its_complete_blocks():
    counts = trials(2, base=(290, 300), again=(280, 300), new=(299, 300))
    units = share_units(counts[:-2], **NAMES)
    assert units.values == pytest.approx([299 / 300 - 570 / 600] * 2)
    assert (units.own, units.base) == ((3 * 299, 900), (3 * 570, 1800))
    assert (units.complete_blocks, units.dropped_blocks) == (3, 1)
    assert len(share_units(counts, **NAMES, kind="block")) == 4
    itself = share_units(counts, baseline="base", again=None, variant="base#2")
    assert itself.values == pytest.approx([-10 / 300] * 2)


def test_counts_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="301 of 300"):
        share_units([Counted(1, 1, "new", 301, 300)], **NAMES)
    with pytest.raises(ValueError, match="occurs twice"):
        share_units([Counted(1, 1, "new", 3, 3)] * 2, **NAMES)
    with pytest.raises(ValueError, match="at least one unit"):
        estimate_share(ShareUnits((), (0, 0), (0, 0)), 0.95)


@pytest.mark.parametrize(
    "counts", [(3000, 3000, 5934, 6000), (0, 10, 20, 20), (5, 5, 7, 7), (150, 300, 100, 300), (1, 1000, 0, 9)]
)
@pytest.mark.parametrize("difference", [-0.3, -0.001, 0.0, 0.02, 0.9])
def test_the_evidence_is_what_trying_all_shares_gives(counts, difference):
    s, n, t, m = counts
    low, high = max(0.0, -difference), min(1.0, 1.0 - difference)
    tried = np.linspace(low, high, 400_001)

    def likelihood(good, all_, share):
        share = np.clip(share, 1e-300, 1.0)
        bad = np.clip(1.0 - share, 1e-300, 1.0)
        return good * np.log(share) + (all_ - good) * np.log(bad)

    best = (likelihood(s, n, tried + difference) + likelihood(t, m, tried)).max()

    def average(good, all_):
        def log_beta(a, b):
            return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

        priors = ((0.5, 0.5), (1.0, 0.1))
        parts = [log_beta(good + a, all_ - good + b) - log_beta(a, b) for a, b in priors]
        return np.logaddexp(*parts) - math.log(2)

    expected = average(s, n) + average(t, m) - best
    found = float(log_e_of_requests(s, n, t, m, difference))
    assert found == pytest.approx(expected, rel=1e-3, abs=2e-2) or (found > 500 and expected > 500)


def test_the_interval_ends_where_the_evidence_reaches_its_bar():
    low, high = requests_interval(2990, 3000, 5934, 6000, 0.95)
    for end in (float(low), float(high)):
        assert float(log_e_of_requests(2990, 3000, 5934, 6000, end)) == pytest.approx(math.log(20), abs=1e-3)
    assert low < 2990 / 3000 - 5934 / 6000 < high
    low, high = share_interval(3000, 3000, 0.95)
    assert high == 1.0
    assert 0.997 < low < 0.999
    with pytest.raises(ValueError, match="needs at least one request"):
        share_interval(0, 0, 0.95)


def test_without_a_failure_the_interval_is_no_point():
    effect = estimate_share(share_units(trials(10), **NAMES), 0.95)
    assert effect.difference == 0.0
    assert -0.004 < effect.low < -0.0005
    assert 0.0003 < effect.high < 0.002
    assert effect.e_value < 1.0


def test_a_clear_difference_is_told_in_points():
    counts = [
        Counted(number, 1, arm, 300 - failed, 300)
        for number, failures in enumerate(((3, 4), (2, 5), (4, 2), (3, 3), (5, 1), (2, 4), (4, 4)))
        for arm, failed in zip(("base", "base#2", "new"), (*failures, 0), strict=True)
    ]
    effect = estimate_share(share_units(counts, **NAMES), 0.95)
    assert effect.difference == pytest.approx(0.011, abs=0.001)
    assert 0.001 < effect.low < effect.difference < effect.high < 0.03
    (judgement,) = judge([effect], better=["higher"], practical=0.005, confidence=0.95)
    assert judgement.verdict is Verdict.FASTER
    assert judgement.reason.startswith("the interval excludes 0: +0.")
    assert judgement.reason.endswith(" percentage points")
    (small,) = judge([effect], better=["higher"], practical=[0.05], confidence=0.95)
    assert small.reason.startswith("more succeed, but by less than the practical threshold of 5 points: +0.")
    for precision, done in ((0.001, False), (0.02, True)):
        assert settled([effect], precision=[precision], practical=[0.001], confidence=0.95) == [done]


def test_too_few_rounds_have_no_bounds():
    effect = estimate_share(share_units(trials(2, new=(100, 300)), **NAMES), 0.95)
    assert (effect.low, effect.high) == (-1.0, 1.0)
    assert math.isinf(effect.half_width)
    (judgement,) = judge([effect], better=["higher"], practical=0.03, confidence=0.95)
    assert judgement.reason == "only 2 rounds; a verdict needs 5"


def test_alike_within_the_threshold_is_no_practical_difference():
    effect = estimate_share(share_units(trials(10), **NAMES), 0.95)
    (judgement,) = judge([effect], better=["higher"], practical=0.01, confidence=0.95)
    assert judgement.verdict is Verdict.NO_PRACTICAL_DIFFERENCE
    far = estimate_share(share_units(trials(6, new=(250, 300)), **NAMES), 0.95)
    assert far.evidence_of_equivalence(0.01) <= 1.0
