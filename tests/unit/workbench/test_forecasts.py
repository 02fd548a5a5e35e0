"""A forecast from what an earlier run of the same experiment showed."""

import random
from math import exp

import pytest

from fakes.runners import experiment
from uncork.cli.console import forecast_words
from uncork.experiment.plan.forecast import ASSUMED, TYPICAL, Seen, WorkloadForecast
from uncork.experiment.plan.order import plan_document
from uncork.requests.source import Options, text_source
from uncork.workbench.experiment.checking import cells_seen, plan_with_forecast

READ = """
[workloads.find]
sql = "SELECT 1"
state = "keep"
"""
SPEC = experiment(READ, stop="budget = '60s'")


def rows(block, between, rounds=30, blocks=4):
    lot, found = random.Random(3), []
    for number in range(1, rounds + 1):
        moved = lot.gauss(0, between)
        for one in range(1, blocks + 1):
            for variant, again in (("base", False), ("base", True), ("new", False)):
                value = exp(moved + lot.gauss(0, block)) if variant == "new" else 1.0
                place = {"round": number, "block": one, "cell": "all", "workload": "find"}
                arm = {"variant": variant, "again": again, "value": value, "elapsed_ns": 400_000_000}
                found.append(place | arm)
    return found


TIMES = [
    {"cell": "all", "workload": "find", "variant": name, "round": 1, "mean_ns": mean}
    for name, mean in (("base", 2e5), ("new", 3e5))
]


def test_scatter_and_times_come_from_the_stored_trials():
    (seen,) = cells_seen(SPEC, rows(0.05, 0.04), TIMES)["find"]
    assert seen.operation_ns == (2e5, 2e5, 3e5)
    assert seen.std_dev.round == pytest.approx(0.04, rel=0.4)
    # A block of 20 cycles that scatters by 5 %: cycles of 10 % explain 2.2 % of it.
    assert seen.std_dev.cycle == pytest.approx(0.1)
    assert seen.std_dev.block == pytest.approx((0.05**2 - 0.1**2 / 20) ** 0.5, rel=0.25)


def test_a_run_of_two_rounds_shows_nothing():
    assert cells_seen(SPEC, rows(0.05, 0.04, rounds=2), TIMES) == {}


def test_without_an_earlier_run_the_plan_names_the_typical_values(tmp_path):
    text = (
        '[experiment]\nname = "x"\nquestion = "?"\n[variants.a]\nbaseline = true\n[variants.b]\n'
        f'[setup]\nsql = "SELECT 1"\n{READ}'
    )
    source = text_source(text, Options(), file="x.toml", folder=tmp_path)
    document = plan_with_forecast(tmp_path / "runs", source)
    assert document.basis == ASSUMED
    assert "10% between cycles, 1% between blocks and 1.5% between rounds" in ASSUMED


def test_a_plan_of_turns_counts_the_blocks_and_the_time_that_the_budget_holds():
    document = plan_document(SPEC)
    (one,) = document.forecasts
    assert document.blocks_a_round == one.blocks
    assert document.trials_a_round == 3 * one.blocks
    assert one.rounds * document.round_ns == pytest.approx(59e9, rel=0.01), "a second is for the report"
    assert document.worst_ns == 60 * 10**9
    assert document.least_ns == 3 * 2 * 20_000_000


@pytest.mark.parametrize(
    ("half_width", "needed_ns", "words"),
    [
        (0.021, 45e9, "±2.1% in 60.0 s; ±3.0% takes about 45.0 s (--budget)"),
        (None, 90e9, "no interval in 60.0 s: enough for only 8 rounds; ±3.0% takes about 90.0 s (--budget)"),
        (0.04, None, "±4.0% in 60.0 s; ±3.0% would take more than a day"),
    ],
)
def test_a_forecast_in_words(half_width, needed_ns, words):
    one = WorkloadForecast("find", 8, 7.5e9, 4, 28, 21e6, half_width, 0.03, needed_ns)
    assert forecast_words(one, 60 * 10**9) == words


def test_a_plan_knows_the_set_up_of_the_earlier_run():
    seen = {"find": [Seen((1e6,) * 3, TYPICAL)]}
    known, unknown = plan_document(SPEC, seen, "run a", 45 * 10**9), plan_document(SPEC, seen, "run a")
    assert (known.setup_ns, unknown.setup_ns) == (45 * 10**9, None)
    assert known.forecasts[0].rounds < unknown.forecasts[0].rounds
    assert known.forecasts[0].needed_ns == unknown.forecasts[0].needed_ns + 45e9
