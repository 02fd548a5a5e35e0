"""What may be said of two runs that were made at different times."""

import math

import pytest

from uncork.stats.run_comparison import (
    TAILS,
    ComparableRun,
    Measured,
    benjamini_hochberg,
    claims,
    compare_effects,
    compare_runs,
    compare_shares,
    log_odds,
    run_to_run,
)
from uncork.stats.student import student_quantile

HOW = {"practical": 0.03, "confidence": 0.95}


def like(*values: float, start: float = 0.0) -> list[ComparableRun]:
    return [ComparableRun(start + 10 * place, value) for place, value in enumerate(values)]


def test_scatter_is_pooled_within_groups_each_about_its_own_mean():
    found = run_to_run([like(1, 2, 3), like(11, 13), like(7)])
    assert found.dof == 3
    assert found.runs == 5
    assert found.std_dev == pytest.approx(math.sqrt((2 + 2) / 3))
    assert found.span_s == 20


def test_without_two_like_runs_nothing_is_known():
    assert run_to_run([like(1), like(2), []]) is None


def test_the_interval_is_that_of_two_more_such_runs():
    known = run_to_run([like(0.00, 0.04, -0.02, 0.03, -0.05)])
    found = compare_runs(Measured(0, 1.0), Measured(30, 1.1), known, **HOW)
    half = student_quantile(1 - 0.05 / TAILS / 2, 4) * math.sqrt(2) * known.std_dev
    assert found.ratio == pytest.approx(math.exp(0.1))
    assert math.log(found.high / found.ratio) == pytest.approx(half)
    assert found.unknown == ""
    assert (found.differs <= 0.05) == (found.low > 1)


def test_an_interval_at_the_edge_and_a_p_value_at_the_level_are_one():
    known = run_to_run([like(0.00, 0.04, -0.02, 0.03, -0.05)])
    half = student_quantile(1 - 0.05 / TAILS / 2, 4) * math.sqrt(2) * known.std_dev
    found = compare_runs(Measured(0, 0.0), Measured(30, half), known, **HOW)
    assert found.low == pytest.approx(1.0)
    assert found.differs == pytest.approx(0.05)
    threshold = math.expm1(half)
    alike = compare_runs(Measured(0, 0.0), Measured(30, 0.0), known, practical=threshold, confidence=0.95)
    assert alike.alike == pytest.approx(0.05)
    assert alike.high == pytest.approx(1 + threshold)


@pytest.mark.parametrize("values", [(), (0.1,), (0.1, 0.2), (0.1, 0.2, 0.3, 0.2)])
def test_a_short_history_says_so_and_claims_nothing(values):
    found = compare_runs(Measured(0, 0.0), Measured(1, 5.0), run_to_run([like(*values)]), **HOW)
    assert claims([found], confidence=0.95) == [""]
    assert "too few comparable runs" in found.unknown
    assert "a verdict needs 5 of one kind" in found.unknown


def test_without_history_the_interval_is_of_what_happened_within_the_runs():
    found = compare_runs(Measured(0, 0.0, 0.03), Measured(1, 0.5, 0.04), None, **HOW)
    assert found.error == pytest.approx(0.05)
    assert claims([found], confidence=0.95) == [""]
    assert compare_runs(Measured(0, 0.0), Measured(1, 0.5, 0.04), None, **HOW).low is None


def test_like_runs_that_are_all_equal_leave_the_rounding_of_the_figure():
    known = run_to_run([like(1, 1, 1, 1, 1, 1)])
    ends = Measured(0, 0.0, None, 0.0005), Measured(1, 0.0004, None, 0.0005)
    found = compare_runs(*ends, known, **HOW)
    assert found.low < 1 < found.high
    assert "same value" in found.warnings[0]
    exact = compare_runs(Measured(0, 0.0), Measured(1, 0.0), known, **HOW)
    assert claims([exact], confidence=0.95) == ["alike"]


def test_dependence_between_neighbours_widens():
    drifting = run_to_run([like(*(0.1 * n for n in range(12)))])
    assert drifting.inflation > 1.5
    found = compare_runs(Measured(0, 0.0), Measured(1, 0.1), drifting, **HOW)
    assert "are correlated; the interval was inflated" in found.warnings[0]


def test_none_against_a_few_failures_is_no_claim_but_many_are():
    known = run_to_run([like(*[log_odds(0, 10_000)] * 8)])
    few = compare_shares((0, 10_000), (3, 10_000), known, (0, 1), **HOW)
    many = compare_shares((0, 10_000), (300, 10_000), known, (0, 1), **HOW)
    assert claims([few, many], confidence=0.95) == ["", "differs"]


@pytest.mark.parametrize("share", [(-1, 10), (11, 10)])
def test_a_share_is_a_part_of_a_whole(share):
    with pytest.raises(ValueError, match="a share needs a count"):
        log_odds(*share)


def test_effects_measured_side_by_side_are_compared_by_their_own_intervals():
    clear = compare_effects((0.0, 10, 0.01), (0.2, 10, 0.01), minimum_rounds=5, **HOW)
    none = compare_effects((0.0, 40, 0.005), (0.001, 40, 0.005), minimum_rounds=5, **HOW)
    few = compare_effects((0.0, 3, 0.01), (0.2, 10, 0.01), minimum_rounds=5, **HOW)
    assert claims([clear, none, few], confidence=0.95) == ["differs", "alike", ""]
    assert few.unknown == "one of the runs has only 3 rounds; a verdict needs 5"
    assert few.low is None


def test_benjamini_and_hochberg_keep_what_their_paper_says():
    p_values = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240]
    p_values += [0.4262, 0.5719, 0.6528, 0.7590, 1.0000]
    assert benjamini_hochberg(p_values, 0.05) == [True] * 4 + [False] * 11
    assert benjamini_hochberg([], 0.05) == []


@pytest.mark.parametrize(("p_values", "alpha"), [([0.5], 0.0), ([-0.1], 0.05), ([1.5], 0.05)])
def test_what_is_no_p_value_is_refused(p_values, alpha):
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg(p_values, alpha)
