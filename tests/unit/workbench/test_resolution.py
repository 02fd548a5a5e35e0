"""What the doctor says about how small a difference a machine can resolve."""

import random

import pytest

from uncork.errors import RunError
from uncork.experiment.plan.forecast import Limits
from uncork.model.block import Slice
from uncork.stats.power import Costs
from uncork.workbench.experiment.resolution import (
    MINUTES,
    StatementResolution,
    cycle_ratios,
    resolution_sentence,
    resolve_statement,
)

LIMITS = Limits(pairs=1, minimum_rounds=5, maximum_rounds=40, confidence=0.95)
COSTS = Costs(cycle_ns=63e6, block_ns=30e6, round_ns=300e6)


def ratios(cycle, between, rounds=8, seed=1):
    lot = random.Random(seed)
    found = []
    for _ in range(rounds):
        centre = lot.gauss(0, between)
        found.append([[centre + lot.gauss(0, cycle) for _ in range(8)] for _ in range(2)])
    return found


def resolved(*widths):
    return StatementResolution("short", "a row", 2e4, 0.1, 0.01, 0.015, widths, "cycles differ")


def slice_of(arm, cycle, mean_ns, succeeded=10):
    return Slice(arm, cycle, 0, 10, succeeded, succeeded, int(mean_ns * succeeded), None)


def test_a_cycle_s_ratio_is_the_third_arm_against_the_mean_of_the_first_two():
    slices = [slice_of(arm, 0, mean) for arm, mean in ((2, 2000), (0, 1000), (1, 1000))]
    slices += [slice_of(0, 1, 1000), slice_of(1, 1, 4000), slice_of(2, 1, 0, succeeded=0)]
    assert cycle_ratios(slices) == [pytest.approx(0.6931, abs=1e-4)], "a cycle without all arms has none"


def test_more_minutes_resolve_smaller_differences():
    found = resolve_statement("short", "a row", 2e4, ratios(0.1, 0.01), COSTS, LIMITS)
    one, five, thirty = found.half_widths
    assert one > five > thirty > 0.0
    assert 0.01 < one < 0.06
    assert found.cycle == pytest.approx(0.1, rel=0.2)


def test_what_differs_between_rounds_bounds_what_time_can_buy():
    steady = resolve_statement("short", "a row", 2e4, ratios(0.1, 0.0), COSTS, LIMITS)
    moving = resolve_statement("short", "a row", 2e4, ratios(0.1, 0.1), COSTS, LIMITS)
    assert moving.half_widths[-1] > 3 * steady.half_widths[-1]
    assert "between rounds: more rounds" in moving.reason


def test_a_server_that_restarts_slowly_has_no_interval_in_a_minute():
    slow = Costs(cycle_ns=63e6, block_ns=30e6, round_ns=25e9)
    found = resolve_statement("short", "a row", 2e4, ratios(0.1, 0.01), slow, LIMITS)
    assert found.half_widths[0] is None
    assert found.half_widths[-1] is not None
    sentence = resolution_sentence([found], load=0.1, processors=2)
    assert "in 1 minute" not in sentence
    assert "in 30 minutes here" in sentence


def test_a_block_without_a_cycle_is_an_error_that_says_what_to_do():
    with pytest.raises(RunError, match="increase --budget"):
        resolve_statement("short", "a row", 2e4, [[[0.1], []]], COSTS, LIMITS)


def test_the_sentence_takes_the_statement_that_is_harder_to_resolve():
    statements = [resolved(0.021, 0.01, 0.006), resolved(0.034, 0.015, 0.005)]
    assert len(MINUTES) == 3
    assert resolution_sentence(statements, load=0.2, processors=2) == (
        "One comparison cannot detect differences below 3.4% in 1 minute, or below 0.6% in 30 minutes here. "
        "More comparisons share the time."
    )


def test_other_programs_are_named_if_they_were_busy():
    sentence = resolution_sentence([resolved(0.1, 0.1, 0.1)], load=3.2, processors=2)
    assert sentence.endswith(
        "Other programs were busy when this began (load 3.2 on 2 processors): a quieter machine resolves "
        "smaller differences."
    )
