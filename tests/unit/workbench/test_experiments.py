"""Experiments: forecasts, resolution, evidence of trials, and hosts of merged runs."""

import random
from math import exp

import pytest

from fakes.ports import measured
from fakes.runners import experiment
from uncork.cli.console import forecast_words
from uncork.errors import RunError
from uncork.experiment.plan.forecast import ASSUMED, TYPICAL, Limits, Seen, WorkloadForecast
from uncork.experiment.plan.order import plan_document
from uncork.model.block import Slice
from uncork.model.request import LoadRequest, Statement
from uncork.model.server import Target
from uncork.model.stored_run import RunHost
from uncork.model.trial import Cell
from uncork.model.variant_evidence import Sampling
from uncork.requests.source import Options, text_source
from uncork.stats.power import Costs
from uncork.workbench.experiment import evidence_collection as trial_evidence
from uncork.workbench.experiment.checking import cells_seen, plan_with_forecast
from uncork.workbench.experiment.joining import host_numbers
from uncork.workbench.experiment.resolution import (
    MINUTES,
    StatementResolution,
    cycle_ratios,
    resolution_sentence,
    resolve_statement,
)
from uncork.workbench.profile.stack_recording import Recorded

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


@pytest.mark.parametrize(("half_width", "needed_ns", "words"), [
    (0.021, 45e9, "±2.1% in 60.0 s; ±3.0% takes about 45.0 s (--budget)"),
    (None, 90e9, "no interval in 60.0 s: enough for only 8 rounds; ±3.0% takes about 90.0 s (--budget)"),
    (0.04, None, "±4.0% in 60.0 s; ±3.0% would take more than a day"),
])  # fmt: skip
def test_a_forecast_in_words(half_width, needed_ns, words):
    one = WorkloadForecast("find", 8, 7.5e9, 4, 28, 21e6, half_width, 0.03, needed_ns)
    assert forecast_words(one, 60 * 10**9) == words


def test_a_plan_knows_the_set_up_of_the_earlier_run():
    seen = {"find": [Seen((1e6,) * 3, TYPICAL)]}
    known, unknown = plan_document(SPEC, seen, "run a", 45 * 10**9), plan_document(SPEC, seen, "run a")
    assert (known.setup_ns, unknown.setup_ns) == (45 * 10**9, None)
    assert known.forecasts[0].rounds < unknown.forecasts[0].rounds
    assert known.forecasts[0].needed_ns == unknown.forecasts[0].needed_ns + 45e9


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


class Load:
    def run(self, request):
        return measured(1_000_000)


def request(**changes):
    connection = {"host": "/nowhere", "port": 1, "user": "u", "database": "d"}
    target = Target("d", connection, **changes)
    return LoadRequest(
        target, (Statement("s", "SELECT 1", ()),), ((),), False, 1, 1, "prepared", 0, 1, None, 10**9
    )


def gather(folder, what, asked):
    place = (Cell(()), "w", "v")
    return trial_evidence.LocalEvidence(folder).gather(place, (what,), asked, Load(), Sampling(1, 0))


def test_an_interrupted_recording_interrupts_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_evidence, "record_stacks", lambda wanted: Recorded("interrupted", {}, {}, ""))
    with pytest.raises(KeyboardInterrupt):
        gather(tmp_path, "stacks", request())
    assert not list(tmp_path.iterdir())


def test_an_engine_whose_processes_are_not_known_is_told_in_a_line(tmp_path):
    lack = gather(tmp_path, "cpu", request(engine="duckdb"))
    assert lack == "uncork cannot sample the processes of duckdb yet"


def test_runs_of_one_machine_or_name_share_a_host():
    hosts = [RunHost("a", 1), RunHost("b", 2), RunHost("container", 1), RunHost("a", 9), RunHost("c", 0)]
    assert host_numbers([*hosts, RunHost("d", 0)]) == [1, 2, 1, 1, 3, 4]
