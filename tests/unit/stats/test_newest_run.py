"""The newest run against those before it: worse, not worse, or undecided."""

import math

import pytest

from uncork.model.results.figure import Figure
from uncork.model.results.guard import GateOutcome
from uncork.requests.stored_options import LEAST_WINDOW
from uncork.stats.newest_run import judge_newest
from uncork.stats.run_comparison import KNOWN_RUNS

DAY = 86_400.0
USUAL = (100.0, 102.0, 99.0, 101.0, 98.0, 100.0, 101.0, 99.0)


def judged(new, before=USUAL, **changes):
    def figure(value):
        fields = {"unit": "ns", "better": "lower", **changes}
        return value if isinstance(value, Figure) else Figure("", "mean", value, **fields)

    window = [(DAY * day, figure(value)) for day, value in enumerate(before)]
    return judge_newest((DAY * len(before), figure(new)), window, confidence=0.95, practical=0.03)


def share(count, of=10_000, **changes):
    fields = {"unit": "share", "better": "lower", "scale": "share", **changes}
    return Figure("", "failed", count / of, count=count, of=of, **fields)


def effect(ratio, std_dev=0.01, rounds=20):
    return Figure("new", "mean", ratio, "ratio", "lower", "effect", rounds=rounds, std_dev=std_dev)


def test_the_option_asks_for_as_many_runs_as_the_statistics_need():
    assert LEAST_WINDOW == KNOWN_RUNS


def test_a_slower_run_is_broken_and_a_faster_one_kept():
    slower = judged(130.0)
    assert (slower.outcome, slower.before) == (GateOutcome.BROKEN, pytest.approx(100.0))
    assert 1.0 < slower.low < 1.3 < slower.high
    assert judged(70.0).outcome is GateOutcome.KEPT


def test_the_direction_that_is_better_turns_the_judgement():
    assert judged(130.0, unit="/s", better="higher").outcome is GateOutcome.KEPT
    assert judged(70.0, unit="/s", better="higher").outcome is GateOutcome.BROKEN
    with pytest.raises(ValueError, match="neither direction"):
        judged(130.0, better="")


def test_noise_that_hides_a_change_that_matters_leaves_it_undecided():
    found = judged(101.0, (100.0, 120.0, 90.0, 110.0, 95.0))
    assert found.outcome is GateOutcome.UNDECIDED
    assert found.low < 1.0
    assert found.high > 1.03


def test_quiet_runs_show_that_it_is_not_worse():
    found = judged(100.05, (100.0, 100.1, 99.9, 100.0, 100.1, 99.95))
    assert found.outcome is GateOutcome.KEPT
    assert 1.0 / 1.03 < found.low < found.high < 1.03


@pytest.mark.parametrize(("before", "said"), [((), "only 0 comparable runs"), ((100.0,), "is only 1")])
def test_too_few_runs_decide_nothing_however_large_the_change(before, said):
    found = judged(1e6, before)
    assert found.outcome is GateOutcome.UNDECIDED
    assert (found.low, found.high) == (None, None)
    assert said in found.reason
    assert judged(1e6, USUAL[: KNOWN_RUNS - 1]).outcome is GateOutcome.UNDECIDED
    assert judged(1e6, USUAL[:KNOWN_RUNS]).outcome is GateOutcome.BROKEN


def test_a_run_long_after_the_window_is_not_judged_by_it():
    window = [(DAY * day, Figure("", "mean", value, "ns", "lower")) for day, value in enumerate(USUAL)]
    late = (400 * DAY, Figure("", "mean", 200.0, "ns", "lower"))
    found = judge_newest(late, window, confidence=0.95, practical=0.03)
    assert found.outcome is GateOutcome.UNDECIDED
    assert "days apart" in found.reason


def test_shares_are_compared_by_counts():
    assert judged(share(0), [share(0)] * 6).outcome is GateOutcome.KEPT
    assert judged(share(900), [share(n) for n in (10, 12, 9, 11, 8, 10)]).outcome is GateOutcome.BROKEN
    kept = judged(share(11), [share(n) for n in (10, 12, 9, 11, 8, 10)])
    assert (kept.outcome, kept.before) == (GateOutcome.KEPT, pytest.approx(0.001))
    few = judged(share(1, 20), [share(n, 20) for n in (0, 2, 1, 0, 1, 0)])
    assert few.outcome is GateOutcome.UNDECIDED


def test_a_share_of_success_is_worse_if_it_falls():
    before = [share(of, better="higher") for of in (9_990, 9_988, 9_991, 9_989, 9_992, 9_990)]
    assert judged(share(9_000, better="higher"), before).outcome is GateOutcome.BROKEN
    assert judged(share(9_991, better="higher"), before).outcome is GateOutcome.KEPT


def test_counts_without_noise_are_compared_with_the_run_before():
    assert judged(101.0, (90.0, 100.0), scale="exact", unit="B").outcome is GateOutcome.BROKEN
    same = judged(100.0, (90.0, 100.0), scale="exact", unit="B")
    assert (same.outcome, same.before, same.ratio) == (GateOutcome.KEPT, 100.0, 1.0)


def test_effects_are_compared_by_their_own_intervals():
    assert judged(effect(1.4), [effect(1.0)]).outcome is GateOutcome.BROKEN
    assert judged(effect(1.0, std_dev=0.002), [effect(1.0, std_dev=0.002)]).outcome is GateOutcome.KEPT
    assert judged(effect(1.4, rounds=2), [effect(1.0)]).outcome is GateOutcome.UNDECIDED


@pytest.mark.parametrize(("new", "before", "outcome"), [
    (0.0, [0.0] * 6, GateOutcome.KEPT),
    (3.0, [0.0] * 6, GateOutcome.UNDECIDED),
    (0.0, USUAL, GateOutcome.UNDECIDED),
    (-1.0, [-1.0] * 3, GateOutcome.UNDECIDED),
])  # fmt: skip
def test_values_without_a_ratio_are_only_judged_if_nothing_changed(new, before, outcome):
    found = judged(new, before, unit="")
    assert (found.outcome, found.ratio) == (outcome, None)


def test_no_number_of_a_judgement_is_invalid():
    for new in (1e-300, 1.0, 1e300):
        found = judged(new, [1e-300, 1e300, 1.0, 2.0, 3.0])
        assert all(math.isfinite(one) for one in (found.ratio, found.low, found.high) if one is not None)
