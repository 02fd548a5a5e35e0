"""Guards: how often gates alarm without cause, how often a regression is caught, and what stopping costs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from guards import BLOCKS, BROKEN, KEPT, decisions, guarded, measured, noise, until_decided
from simulation import at_most, looks, series, units

from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateOutcome
from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.effect import estimate
from uncork.stats.gates.decision import GateQuestion, decide
from uncork.stats.sample import Units

ALPHA, PRACTICAL = 0.05, math.log1p(0.03)
BOUNDS = {"< +3%": (PRACTICAL, PRACTICAL), "<= baseline": (0.0, PRACTICAL)}
OUTCOMES = {BROKEN: GateOutcome.BROKEN, KEPT: GateOutcome.KEPT, 0: GateOutcome.UNDECIDED}


@pytest.mark.parametrize("bound", BOUNDS)
def test_the_simulation_decides_as_the_judge_does(bound, generator):
    samples = generator.normal(0.02, 0.03, (200, 5, 12))
    counts = generator.integers(3, 13, (200, 5))
    limit, allowed = BOUNDS[bound]
    simulated = decisions(looks(samples), np.maximum(counts, MINIMUM_ROUNDS), limit, allowed, ALPHA)
    gate = parse_gate(f"p50 {bound}")
    for guard, numbers, outcomes in zip(samples, np.maximum(counts, MINIMUM_ROUNDS), simulated, strict=True):
        asked = [
            GateQuestion(gate, estimate(Units(tuple(gate_units[:number])), 1.0 - ALPHA))
            for gate_units, number in zip(guard, numbers, strict=True)
        ]
        found = [one.outcome for one in decide(asked, confidence=1.0 - ALPHA)]
        assert found == [OUTCOMES[outcome] for outcome in outcomes.tolist()]
    assert {BROKEN, KEPT, 0} == set(simulated.ravel().tolist()), "every outcome was there to be compared"


@pytest.mark.parametrize("gates", [1, 5, 20])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("std_dev", [0.02, 0.04])
def test_equal_sides_alarm_far_less_often_than_stated(std_dev, bound, gates, runs, generator, figure):
    guards, (limit, allowed) = runs // gates, BOUNDS[bound]
    found = guarded(
        *(generator, std_dev, np.zeros(gates), limit), guards=guards, gates=gates, rounds=20, allowed=allowed
    )
    name = f"guard: A/A, {gates:>2} gates {bound}, scatter {std_dev:.0%}"
    figure(f"{name}: some gate looks broken at first", found.looked_broken)
    figure(f"{name}: alarm, after the second measurement", found.alarmed)
    figure(f"{name}: all gates kept within 20 rounds", float((found.outcome == KEPT).all(axis=1).mean()))
    assert found.looked_broken <= at_most(ALPHA, guards)
    assert found.alarmed <= at_most(0.005, guards)


@pytest.mark.parametrize("gates", [1, 5, 20])
@pytest.mark.parametrize("rounds", [40, 60])
def test_equal_sides_are_kept_if_they_are_measured_long_enough(rounds, gates, runs, generator, figure):
    guards = runs // (4 * gates)
    state = measured(generator, 0.04, np.zeros(gates), guards=guards, gates=gates, rounds=rounds)
    outcome, counts = until_decided(state, PRACTICAL, PRACTICAL)
    kept = (outcome == KEPT).all(axis=1).mean()
    name = f"guard: A/A, {gates:>2} gates < +3%, scatter 4%, {rounds} rounds"
    figure(f"{name}: all kept", kept)
    figure(f"{name}: mean rounds of a gate, in hundreds", counts.mean() / 100)
    assert (outcome == KEPT).mean() >= 0.8


@pytest.mark.parametrize("rounds", [20, 40])
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("std_dev", [0.01, 0.02, 0.04])
@pytest.mark.parametrize("percent", [2, 3, 5, 10])
def test_a_regression_is_found_by_both_measurements(percent, std_dev, bound, rounds, runs, generator, figure):
    limit, allowed = BOUNDS[bound]
    truth = [math.log1p(percent / 100)]
    facts = {"guards": runs // 4, "gates": 1, "rounds": rounds, "allowed": allowed}
    found = guarded(generator, std_dev, truth, limit, **facts)
    name = f"guard: slower by {percent:>2} %, {bound}, scatter {std_dev:.0%}, {rounds} rounds"
    figure(f"{name}: alarm", found.alarmed)
    if percent >= 5:
        assert found.alarmed >= 0.9


def test_one_slow_workload_among_twenty_is_found(runs, generator, figure):
    truth = np.zeros(20)
    truth[7] = math.log(1.05)
    found = guarded(generator, 0.03, truth, PRACTICAL, guards=runs // 20, gates=20, rounds=40)
    alarmed = found.confirmed[:, 7].mean()
    figure("guard: one of 20 gates slower by 5 %, scatter 3 %, 40 rounds: that one alarms", alarmed)
    others = np.delete(found.confirmed, 7, axis=1).any(axis=1).mean()
    figure("guard: ... another alarms", others)
    assert alarmed >= 0.9
    assert others <= at_most(0.01, runs // 20)


@pytest.mark.parametrize("std_dev", [0.02, 0.04])
def test_a_candidate_exactly_at_the_bound_is_seldom_called_kept(std_dev, runs, generator, figure):
    facts = {"guards": runs // 2, "gates": 1, "rounds": 40}
    found = guarded(generator, std_dev, [PRACTICAL], PRACTICAL, **facts)
    kept = float((found.outcome == KEPT).mean())
    figure(f"guard: truth exactly at the bound of +3 %, scatter {std_dev:.0%}: kept", kept)
    figure(f"guard: truth exactly at the bound of +3 %, scatter {std_dev:.0%}: alarm", found.alarmed)
    assert kept <= at_most(ALPHA, runs // 2)


def test_what_was_stopped_when_it_looked_broken_is_overstated_a_little(runs, generator, figure):
    facts = {"guards": runs // 2, "gates": 1, "rounds": 40}
    found = guarded(generator, 0.04, [math.log(1.05)], PRACTICAL, **facts)
    first, second = found.estimates()
    figure("guard: slower by 5 %, scatter 4 %: mean estimate of alarms when first stopped", first)
    figure("guard: ... of the second measurement", second)
    assert 0.05 < first < 0.06
    assert 0.05 < second < 0.06


@pytest.mark.parametrize("confirmation", [0.95, 0.9, 0.8, 0.5])
def test_the_choice_of_the_second_confidence(confirmation, runs, generator, figure):
    facts = {"guards": runs // 2, "gates": 1, "rounds": 20, "confirmation": confirmation}
    same = guarded(generator, 0.04, [0.0], 0.0, allowed=PRACTICAL, **facts)
    slow = guarded(generator, 0.04, [math.log(1.05)], PRACTICAL, **facts)
    figure(f"guard: second at {confirmation:.0%}, scatter 4 %, 20 rounds: A/A alarm", same.alarmed)
    figure(f"guard: second at {confirmation:.0%}, scatter 4 %, 20 rounds: 5 % found", slow.alarmed)
    assert same.alarmed <= at_most(ALPHA * (1.0 - confirmation), runs // 2)


def test_a_value_is_called_beyond_its_bound_or_within_it_at_most_as_often_as_stated(runs, generator, figure):
    # The candidate alone: what all arms feel does not cancel, slow lives of the server among it.
    quiet = noise(0.03)
    values = series(generator, quiet, runs=runs, rounds=40, arms=3, blocks=BLOCKS)[..., 2].mean(axis=2)
    truth = quiet.slow_life * quiet.slow_life_share + quiet.spike * quiet.spike_share
    state = looks(values)
    beyond = (state.mean - state.half > truth)[:, MINIMUM_ROUNDS - 1 :].any(axis=1).mean()
    within = (state.mean + state.half < truth)[:, MINIMUM_ROUNDS - 1 :].any(axis=1).mean()
    figure("guard: a value exactly at its bound, slow lives: ever called beyond", beyond)
    figure("guard: a value exactly at its bound, slow lives: ever called within", within)
    assert beyond <= at_most(ALPHA, runs)
    steady = replace(quiet, slow_life_share=0.0)
    values = series(generator, steady, runs=runs, rounds=40, arms=3, blocks=BLOCKS)[..., 2].mean(axis=2)
    state = looks(values)
    within = (state.mean + state.half < steady.spike * steady.spike_share)[:, MINIMUM_ROUNDS - 1 :].any(
        axis=1
    )
    figure("guard: a value exactly at its bound, no slow lives: ever called within", within.mean())
    assert within.mean() <= at_most(ALPHA, runs)


def test_the_check_can_fail_a_threshold_alone_alarms_without_cause(runs, generator, figure):
    values = series(generator, noise(0.04), runs=runs, rounds=3, arms=3, blocks=BLOCKS)
    beyond = units(values)[:, 0].mean(axis=1) > PRACTICAL
    figure("check: A/A, scatter 4 %: the mean of 3 rounds is beyond +3 %", beyond.mean())
    assert beyond.mean() > at_most(0.01, runs)


def test_the_check_can_fail_twenty_gates_without_correction(runs, generator, figure):
    guards = runs // 20
    state = measured(generator, 0.04, np.zeros(1), guards=20 * guards, gates=1, rounds=20)
    alone = until_decided(state, 0.0, PRACTICAL)[0].reshape(guards, 20)
    share = (alone == BROKEN).any(axis=1).mean()
    figure("check: A/A, 20 gates <= baseline, scatter 4 %, each by itself: some look broken", share)
    assert share > at_most(ALPHA, guards)
