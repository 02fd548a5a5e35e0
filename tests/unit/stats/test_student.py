"""Student's t against its tables and its closed forms."""

import math

import pytest

from uncork.stats.student import student_quantile, student_reach, student_tail


@pytest.mark.parametrize(("dof", "level", "quantile"), [
    (1, 0.975, 12.7062047),
    (2, 0.995, 9.9248432),
    (4, 0.975, 2.7764451),
    (4, 0.99, 3.7469474),
    (10, 0.9999, 5.6938201),
    (100, 0.6, 0.2540222),
    (1e6, 0.975, 1.9599664),
])  # fmt: skip
def test_quantiles_are_those_of_the_tables(dof, level, quantile):
    assert student_quantile(level, dof) == pytest.approx(quantile, rel=1e-7)
    assert student_quantile(1 - level, dof) == pytest.approx(-quantile, rel=1e-7)


@pytest.mark.parametrize("t", [0.0, 0.3, 1.0, 7.0, 1e3, 1e9])
def test_tails_have_closed_forms_for_one_and_two_degrees(t):
    assert student_tail(t, 1) == pytest.approx(2 / math.pi * math.atan2(1, t), rel=1e-9)
    assert student_tail(t, 2) == pytest.approx(1 - t / math.sqrt(2 + t * t), rel=1e-6, abs=1e-12)
    assert student_tail(-t, 3) == student_tail(t, 3)


def test_the_tail_of_infinity_is_nothing():
    assert student_tail(math.inf, 5) == 0.0


@pytest.mark.parametrize("wrong", [(0.0, 3), (1.0, 3), (0.5, 0), (0.5, -1)])
def test_what_cannot_be_is_refused(wrong):
    level, dof = wrong
    with pytest.raises(ValueError, match="must"):
        student_quantile(level, dof) if dof > 0 else student_tail(1.0, dof)


@pytest.mark.parametrize(
    ("dof", "known"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (7, 2.3646), (30, 2.0423)]
)
def test_the_reach_holds_what_it_says(dof, known):
    assert student_reach(0.95, dof) == pytest.approx(known, abs=1e-4)
    assert student_tail(known, dof) == pytest.approx(0.05, abs=1e-5)


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_no_reach_holds_nothing_or_all(confidence):
    with pytest.raises(ValueError, match="must"):
        student_reach(confidence, 3)
