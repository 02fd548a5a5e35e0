"""A budget that is too small, in words."""

import pytest

from fakes.ports import MILLISECOND
from fakes.runners import Attempt, experiment
from uncork.errors import BudgetTooShort
from uncork.experiment.plan.feasibility import (
    budget_shortage,
    feasibility_words,
    setup_notice,
    smaller_question,
)
from uncork.experiment.plan.order import cells
from uncork.experiment.run.events import BudgetShort, Finished, Preparing, RoundStarted
from uncork.stats.power import feasible

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (60, ""),
        (56,
         "the budget of 56.0 s is enough for 4 rounds, but a verdict needs 5: raise it to 60.0 s with "
         "--budget, "
         "or measure less: 3 pairs of cell and workload instead of 4 or 2 variants instead of 3"),
        (30,
         "the budget of 30.0 s is enough for 2 rounds, but a verdict needs 5: raise it to 60.0 s with "
         "--budget, " "or measure less: 1 pair of cell and workload instead of 4"),
        (12,
         "the budget of 12.0 s is enough for 0 rounds, but a verdict needs 5: raise it to 60.0 s with "
         "--budget; " "no smaller part of the experiment fits"),
    ],
)  # fmt: skip
def test_what_fits_is_offered(budget, expected):
    found = feasible(
        budget_ns=budget * SECOND,
        setup_ns=10 * SECOND,
        round_ns=2 * SECOND,
        block_ns=SECOND // 2,
        slice_ns=SECOND // 10,
        variants=3,
        pairs=4,
        blocks=2,
        minimum_rounds=5,
    )
    assert feasibility_words(found, minimum_rounds=5, pairs=4, variants=3) == expected


READ = """
[workloads.find]
sql = "SELECT 1"
state = "keep"
warmup_operations = 1
[workloads.scan]
sql = "SELECT 2"
state = "keep"
warmup_operations = 1
"""
LEVELS = "[factors]\nrows = [10, 20, 40]\n"


def slow(spec, operation_ns):
    return {
        (cell, name, variant): operation_ns
        for cell in cells(spec)
        for name in spec.workloads
        for variant in spec.variants
    }


def test_quick_operations_fit_and_slow_ones_are_reported_with_what_to_do():
    spec = experiment(READ, levels=LEVELS, stop="budget = '60s'")
    assert budget_shortage(spec, slow(spec, MILLISECOND)) == ""
    # Six pairs of three arms; an arm warms up with one operation and measures two.
    assert budget_shortage(spec, slow(spec, 700 * MILLISECOND)) == (
        "the budget of 60.0 s is enough for 1 round, but a verdict needs 5: raise it to 3 min 31 s with "
        "--budget, "
        "or measure less: 1 pair of cell and workload instead of 6 (--workload find --set rows=10)"
    )


def test_the_budget_that_is_proposed_fits():
    spec = experiment(READ, levels=LEVELS, stop="budget = '211s'")
    assert budget_shortage(spec, slow(spec, 700 * MILLISECOND)) == ""


def test_trials_of_a_fixed_length_count_as_long_as_they_are():
    fixed = READ.replace('state = "keep"', 'state = "keep"\nduration = "2s"')
    spec = experiment(fixed, stop="budget = '30s'")
    assert "is enough for 2 rounds, but a verdict needs 5" in budget_shortage(spec, {})


def test_refused_variants_take_no_time():
    spec = experiment(READ, stop="budget = '40s'")
    times = slow(spec, MILLISECOND) | {
        (cell, name, "new"): 10_000 * MILLISECOND for cell in cells(spec) for name in spec.workloads
    }
    assert budget_shortage(spec, times)
    refused = [key for key in times if key[2] == "new"]
    assert budget_shortage(spec, times, refused) == ""


@pytest.mark.parametrize(
    ("pairs", "options"),
    [
        (6, ""),
        (5, "--set rows=10,20"),
        (3, "--workload find"),
        (2, "--workload find --set rows=10,20"),
        (1, "--workload find --set rows=10"),
        (0, ""),
    ],
)
def test_the_options_keep_as_much_as_fits(pairs, options):
    assert smaller_question(experiment(READ, levels=LEVELS), pairs) == options


def test_a_run_warns_before_its_first_round_and_goes_on_all_the_same():
    attempt = Attempt(experiment(READ, levels=LEVELS, stop="budget = '1s'")).run()
    kinds = [type(event) for event in attempt.events]
    assert kinds.count(BudgetShort) == 1
    assert kinds.index(BudgetShort) < kinds.index(RoundStarted)
    assert attempt.of(BudgetShort)[0].message.startswith("the budget of 1.00 s is enough for 0 rounds")
    assert attempt.load.blocks
    assert "but a verdict needs 5" in attempt.of(Finished)[0].reason


def test_a_budget_that_holds_the_rounds_gives_no_warning():
    assert not Attempt(experiment(READ, stop="budget = '60s'")).run().of(BudgetShort)


@pytest.mark.parametrize(
    ("used", "done", "steps", "words"),
    [
        (12, 1, 8, ""),
        (24, 3, 4, ""),
        (30, 1, 8, "so far (1 of 8 steps), and takes about 4 min 00 s at this pace: raise the budget with"),
        (55, 0, 1, "55.0 s of the budget of 100 s so far: raise the budget with"),
        (30, 0, 1, ""),
    ],
)  # fmt: skip
def test_set_up_is_announced_once_it_takes_a_large_part_of_the_budget(used, done, steps, words):
    found = setup_notice(100 * SECOND, used * SECOND, done=done, steps=steps)
    assert words in found and bool(words) == bool(found)


def test_a_long_set_up_is_announced_while_it_lasts():
    spec = experiment(READ, levels=LEVELS, stop="budget = '300s'")
    attempt = Attempt(spec, build_ns=60 * SECOND)
    with pytest.raises(BudgetTooShort, match="nothing was measured: set-up has taken 6 min 00 s of"):
        attempt.run()
    first = attempt.of(BudgetShort)[0]
    assert first.message.startswith(
        "set-up has taken 60.0 s of the budget of 5 min 00 s so far (1 of 6 steps)"
    )
    left = [event for event in attempt.events[attempt.events.index(first) :] if isinstance(event, Preparing)]
    assert any(event.what.startswith("filling") for event in left)
    assert len(attempt.of(BudgetShort)) == 1
