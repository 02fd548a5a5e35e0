"""The order of the legs that two targets are sent, and a leg as a row that gates read."""

from __future__ import annotations

import pytest

from fakes.load_results import closed_load, refused_load
from uncork.experiment.guard.turns import (
    LONGEST_TURN_NS,
    SHORTEST_TURN_NS,
    TURN_NS,
    Turn,
    plan_turns,
    turn_ns,
    turn_row,
)
from uncork.model.results.gate_metrics import trial_value
from uncork.stats.compare import MINIMUM_ROUNDS


def arms(round_, seed=7):
    return [(turn.block, turn.role, turn.again) for turn in plan_turns(seed, round_)]


@pytest.mark.parametrize("round_", [1, 2, 9])
def test_a_round_is_two_blocks_of_three_the_second_in_reverse(round_):
    turns = plan_turns(7, round_)
    assert [turn.number for turn in turns] == list(range(6 * round_ - 5, 6 * round_ + 1))
    assert {turn.round for turn in turns} == {round_}
    first, second = arms(round_)[:3], arms(round_)[3:]
    assert sorted(arm[1:] for arm in first) == [("baseline", False), ("baseline", True), ("candidate", False)]
    assert [arm[1:] for arm in second] == [arm[1:] for arm in first[::-1]]
    assert {arm[0] for arm in first} == {1}


def test_orders_differ_by_round_and_come_again_with_the_seed():
    assert len({tuple(arms(round_)) for round_ in range(1, 40)}) == 6
    assert arms(3) == arms(3)
    assert any(arms(round_) != arms(round_, seed=8) for round_ in range(1, 10))


@pytest.mark.parametrize(
    ("rate", "needed", "budget_s", "expected"),
    [
        (10_000, 1_000, 300, TURN_NS),
        (500, 1_000, 300, 4 * 10**9),
        (10, 1_000, 3_600, LONGEST_TURN_NS),
        (0, 1, 3_600, LONGEST_TURN_NS),
        (10, 1_000, 4, SHORTEST_TURN_NS),
    ],
)
def test_a_leg_holds_enough_operations_within_bounds(rate, needed, budget_s, expected):
    assert turn_ns(rate, needed, budget_s * 10**9) == expected


@pytest.mark.parametrize("budget_s", [10, 60, 300])
def test_the_legs_of_the_rounds_that_a_verdict_needs_fit_into_the_budget(budget_s):
    legs = 2 + len(plan_turns(1, 1)) * MINIMUM_ROUNDS
    assert 0.8 * budget_s < legs * turn_ns(10, 10_000, budget_s * 10**9) / 1e9 < 0.95 * budget_s


def test_a_leg_is_read_as_a_trial():
    measured = closed_load()
    row = turn_row(Turn(3, 1, 1, "candidate"), measured)
    totals = measured.totals
    assert (row["variant"], row["again"], row["round"], row["block"]) == ("candidate", False, 1, 1)
    assert trial_value("throughput", row) == totals.succeeded / (totals.elapsed_ns / 1e9)
    assert trial_value("errors", row) == totals.failed / totals.started
    whole = next(one for one in measured.times if one.kind == "operation")
    assert trial_value("latency_p99", row) == whole.p99_ns
    script = next(one for one in measured.times if one.kind == "script")
    assert turn_row(Turn(3, 1, 1, "candidate"), measured, script.script)["p50_ns"] == script.p50_ns


def test_a_leg_of_which_nothing_succeeded_has_no_times():
    row = turn_row(Turn(1, 1, 1, "baseline"), refused_load())
    assert trial_value("latency_p50", row) is None
    assert trial_value("throughput", row) is None
