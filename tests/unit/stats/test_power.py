"""How much time an interval takes: plans, budgets, parts of the scatter."""

import math

import pytest

from uncork.stats.effect import estimate
from uncork.stats.interval import radius
from uncork.stats.power import (
    StdDevs,
    cautious_scatter,
    estimate_scatter,
    expected_half_width,
    feasible,
    rounds_to_decide,
)
from uncork.stats.sample import Units


def test_the_expected_half_width_is_that_of_the_judge():
    shape = {"rounds": 10, "blocks": 2, "cycles": 1, "confidence": 0.95}
    known = math.log1p(expected_half_width(StdDevs(0, 0, 0.02), **shape))
    assert known == pytest.approx(0.973 * 0.02 * float(radius(10, 1.0, 0.95)), rel=1e-3)
    assert expected_half_width(StdDevs(0, 0, 0.02), **shape | {"rounds": 3}) == math.inf
    assert expected_half_width(StdDevs(0, 0, 0.02), **shape | {"rounds": 1}) == math.inf


def test_parts_of_hand_made_data():
    flat = [[[0.1, 0.1], [0.1, 0.1]], [[0.1, 0.1], [0.1, 0.1]]]
    assert estimate_scatter(flat) == StdDevs(0.0, 0.0, 0.0)
    # Cycles of a block alike, blocks of a round alike, rounds differ by 2: variance 2.
    rounds = estimate_scatter([[[0.0, 0.0], [0.0, 0.0]], [[2.0, 2.0], [2.0, 2.0]]])
    assert (rounds.cycle, rounds.block) == (0.0, 0.0)
    assert rounds.round == pytest.approx(math.sqrt(2.0))
    cycles = estimate_scatter([[[-1.0, 1.0], [-1.0, 1.0]], [[-1.0, 1.0], [-1.0, 1.0]]])
    assert cycles == StdDevs(math.sqrt(2.0), 0.0, 0.0)
    assert estimate_scatter([[[1.0]]]) == StdDevs(0.0, 0.0, 0.0)
    for wrong in ([], [[]], [[[]]]):
        with pytest.raises(ValueError, match="every round needs a block"):
            estimate_scatter(wrong)


def test_the_sentence_names_the_part_that_dominates():
    assert StdDevs(0.3, 0.0, 0.01).sentence(2, 4) == (
        "99.1 % of the variance is between cycles: more measuring time narrows the interval, in any round"
    )
    assert (
        StdDevs(0.3, 0.0, 0.1).sentence(2, 100).startswith("96 % of the variance is between rounds: more r")
    )
    assert (
        StdDevs(0.01, 0.1, 0.0).sentence(2, 1).startswith("99.0 % of the variance is between blocks: more b")
    )
    assert StdDevs(0, 0, 0).sentence(2, 1) == "there is no variance: every cycle gave the same ratio"


def test_a_budget_that_fits_and_one_that_does_not():
    facts = {"setup_ns": 10.0, "round_ns": 2.0, "block_ns": 0.5, "slice_ns": 0.1, "blocks": 2}
    plan = facts | {"variants": 3, "pairs": 4, "minimum_rounds": 5}
    # One round: 2 + 4 · 2 · (0.5 + 5 · 0.1) = 10.
    enough = feasible(budget_ns=60.0, **plan)
    assert (enough.fits, enough.least_ns, enough.rounds) == (True, 60.0, 5)
    assert (enough.pairs, enough.variants) == (4, 3)
    short = feasible(budget_ns=45.0, **plan)
    # 35 for five rounds: 7 each, of which 2 are the restart.
    assert (short.fits, short.least_ns, short.rounds, short.pairs, short.variants) == (False, 60.0, 3, 2, 0)
    assert feasible(budget_ns=56.0, **plan).variants == 2
    assert feasible(budget_ns=5.0, **plan).rounds == 0


def test_a_part_too_small_to_be_seen_is_not_taken_for_zero_nor_above_the_usual():
    usual = StdDevs(0.1, 0.01, 0.015)
    alike = [[[-0.1, 0.1], [-0.1, 0.1]]] * 4
    assert estimate_scatter(alike).round == estimate_scatter(alike).block == 0.0
    cautious = cautious_scatter(alike, usual)
    assert (cautious.block, cautious.round) == (usual.block, usual.round)
    fine = [[[-0.001, 0.001] * 50, [-0.001, 0.001] * 50]] * 4
    assert 0.0 < cautious_scatter(fine, usual).round < 0.001
    apart = [[[one - 0.1, one + 0.1], [one - 0.1, one + 0.1]] for one in (-0.5, 0.5)]
    assert cautious_scatter(apart, usual).round == estimate_scatter(apart).round


def test_a_decision_is_forecast_from_the_effect_so_far():
    clear = estimate(Units((0.19, 0.21, 0.19, 0.22)), 0.95)
    needed = rounds_to_decide(clear, 0.03, 1)
    assert needed == 5  # as many as a verdict needs
    weak = estimate(Units((0.10, -0.02, 0.06, 0.0, 0.08, 0.02)), 0.95)
    assert 10 < rounds_to_decide(weak, 0.03, 1) < 30
    alike = estimate(Units((0.01, -0.01, 0.012, -0.012, 0.02, -0.02)), 0.95)
    assert 6 < rounds_to_decide(alike, 0.03, 1) < 30


@pytest.mark.parametrize("values", [(0.1,), (0.5, -0.5, 0.4, -0.41, 0.02)])
def test_no_decision_is_forecast_from_one_round_or_beyond_twenty_times_the_rounds(values):
    assert rounds_to_decide(estimate(Units(values), 0.95), 0.03, 1) is None
