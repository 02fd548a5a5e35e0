"""What precision a budget buys, before anything is measured."""

import pytest

from uncork.experiment.plan.forecast import (
    TYPICAL,
    Limits,
    Seen,
    budget_needed,
    expected_design,
    forecast_workload,
    reasons,
)
from uncork.stats.power import Costs, StdDevs

SECOND = 1e9
LIMITS = Limits(pairs=1, minimum_rounds=5, maximum_rounds=40, confidence=0.95)
COSTS = Costs(cycle_ns=63e6, block_ns=30e6, round_ns=1.5e9)


def forecast(seen=(), *, budget=60.0, after=0.0, pairs=1, rate=None, clients=1):
    limits = Limits(pairs, 5, 40, 0.95)
    return forecast_workload(
        "find",
        seen,
        arms=3,
        clients=clients,
        rate=rate,
        budget_ns=budget * SECOND,
        after_ns=after * SECOND,
        precision=0.03,
        limits=limits,
    )


@pytest.mark.parametrize("budget", [20, 60, 150, 1800])
def test_rounds_fill_the_budget_and_no_more(budget):
    design = expected_design(COSTS, TYPICAL, budget * SECOND, LIMITS)
    assert 0.9 * budget * SECOND <= design.total_ns <= budget * SECOND
    round_ns = COSTS.of_round(design.blocks, design.cycles)
    assert round_ns <= design.total_ns / design.rounds <= round_ns + 2 * design.blocks * COSTS.cycle_ns


def test_evidence_leaves_less_of_the_budget_to_the_rounds():
    whole, part = forecast(budget=60), forecast(budget=90, after=30)
    assert (whole.rounds, whole.half_width) == (part.rounds, part.half_width)
    assert part.needed_ns == whole.needed_ns + 30 * SECOND


def test_a_longer_budget_narrows_the_interval():
    widths = [expected_design(COSTS, TYPICAL, one * SECOND, LIMITS).half_width for one in (30, 60, 150, 600)]
    assert widths == sorted(widths, reverse=True)


def test_comparisons_share_the_time():
    assert forecast(pairs=6).half_width > 1.3 * forecast(pairs=1).half_width
    assert forecast(pairs=6).needed_ns > forecast(pairs=1).needed_ns


def test_the_budget_that_is_named_reaches_the_precision_and_a_tenth_less_does_not():
    needed = budget_needed(0.02, COSTS, TYPICAL, LIMITS)
    assert expected_design(COSTS, TYPICAL, needed, LIMITS).half_width <= 0.02
    assert expected_design(COSTS, TYPICAL, 0.9 * needed, LIMITS).half_width > 0.02


def test_a_precision_below_what_rounds_differ_by_is_out_of_reach():
    assert budget_needed(0.001, COSTS, StdDevs(0.1, 0.01, 0.015), LIMITS) is None


def test_a_budget_of_too_few_rounds_has_no_interval():
    found = forecast(budget=30.0, pairs=200)
    assert found.half_width is None
    assert found.rounds < 4


def test_what_an_earlier_run_showed_replaces_typical_values_and_the_widest_cell_counts():
    quiet, loud = Seen((1e5,) * 3, StdDevs(0.01, 0.001, 0.002)), Seen((1e5,) * 3, StdDevs(0.3, 0.05, 0.05))
    assert forecast([quiet]).half_width < forecast().half_width < forecast([quiet, loud]).half_width
    assert forecast([quiet, loud]) == forecast([loud])


def test_slow_operations_and_arrivals_make_slices_longer_and_the_reasons_say_how_long():
    short, slow, open_loop = forecast(), forecast([Seen((2e8,) * 3, TYPICAL)]), forecast(rate=10.0)
    assert short.slice_ns < 25e6 < slow.slice_ns < open_loop.slice_ns
    assert "slices of about 21.0 ms: at least 20.0 ms" in reasons([short])[0]
    assert "slices of about 21.0 ms to 200 ms" in reasons([short, slow])[0]
    assert reasons([]) == ()
