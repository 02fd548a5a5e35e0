"""How often the knee lies outside its interval, and the law's numbers outside theirs."""

import math

import numpy as np
import pytest
from simulation import at_most

from fakes.sweeps import law, processors, spec, strongest, swept
from uncork.experiment.plan.sweep import findings
from uncork.stats.load.knee import FLAT, beaten, find_saturation, judge_limit
from uncork.stats.load.scalability import fit_scalability, scalable_throughput

ALPHA = 0.05
SYSTEMS = {"law": law, "2 processors": processors(2), "60 in a pool": processors(60)}
NOISES = {"calm": (0.02, 0.0), "usual": (0.05, 0.03), "wild": (0.15, 0.05)}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_the_knee_lies_in_its_interval(system, noise, runs, generator, figure):
    truth, missed, sweeps, steps, narrow = strongest(SYSTEMS[system]), 0, runs // 20, 0, 0
    std_dev, drift = NOISES[noise]
    for _ in range(sweeps):
        wanted = spec(seed=int(generator.integers(2**31)))
        seen = swept(SYSTEMS[system], wanted, generator, noise=std_dev, drift=drift)
        knee = findings(seen, wanted).knee
        steps += len(seen)
        low, high = knee.low or 0.0, knee.high or math.inf
        missed += not low < truth < high
        narrow += high <= 4 * low
    figure(f"knee outside its interval, {system}, {noise} ({steps / sweeps:.0f} visits)", missed / sweeps)
    figure(f"knee known within a factor of 4, {system}, {noise}", narrow / sweeps)
    assert missed / sweeps <= at_most(ALPHA, sweeps)


def test_the_best_level_is_ever_excluded_at_most_as_often_as_stated(runs, generator, figure):
    """Five levels, two of them equally the best: the hardest case, at every look from 3 to 12 rounds."""
    heights, excluded = np.array([0.0, 0.3, 0.5, 0.5, 0.2]), 0
    for _ in range(runs // 4):
        seen = heights[:, None] + generator.normal(0.0, 0.2, (5, 12)) + generator.normal(0.0, 0.3, 12)
        looks = (
            beaten({float(at): dict(enumerate(row[:rounds])) for at, row in enumerate(seen)}, 1 - ALPHA)
            for rounds in range(3, 13)
        )
        excluded += any(2.0 in out for out in looks)
    share = excluded / (runs // 4)
    figure("knee: a best level ever excluded", share)
    assert share <= at_most(ALPHA, runs // 4)


def test_a_level_that_is_just_not_saturated_is_seldom_called_so(runs, generator, figure):
    """Throughput grows by exactly what counts as flat, from 4 to 16: the hardest case, at every look."""
    heights = np.log1p([-0.5, -0.2, 0.0, FLAT / 2, FLAT])
    levels, wrong, many = (1.0, 2.0, 4.0, 8.0, 16.0), 0, runs // 4
    for _ in range(many):
        seen = heights[:, None] + generator.normal(0.0, 0.05, (5, 12)) + generator.normal(0.0, 0.3, 12)
        looks = (saturation_of(levels, seen[:, :rounds]) for rounds in range(3, 13))
        wrong += any(one is not None and one.level <= 4.0 for one in looks)
    figure("saturation: a level ever wrongly called saturated", wrong / many)
    assert wrong / many <= at_most(ALPHA, many)


@pytest.mark.parametrize(("noise", "least"), [(0.02, 0.9), (0.05, 0.2), (0.15, 0.0)])
def test_a_flat_throughput_is_called_saturated_from_its_first_level_on(noise, least, runs, generator, figure):
    heights, many = np.array([-0.7, 0.0, 0.0, 0.0, 0.0]), runs // 20
    seen = heights[:, None] + generator.normal(0.0, noise, (many, 5, 12))
    results = [saturation_of((1.0, 2.0, 4.0, 8.0, 16.0), one) for one in seen]
    share = sum(one is not None and one.level == 2.0 for one in results) / many
    figure(f"saturation: found at its first level in 12 rounds, noise {noise * 100:g} %", share)
    assert share >= least


def saturation_of(levels, seen):
    """Find the saturation of levels from their log throughput, a row a level and a column a round."""
    rows = zip(levels, seen.tolist(), strict=True)
    return find_saturation({level: dict(enumerate(row)) for level, row in rows}, 1 - ALPHA)


def test_an_objective_that_is_just_missed_is_seldom_said_to_hold(runs, generator, figure):
    wrong = sum(
        any(judge_limit(values[:rounds], 1.0, 1 - ALPHA) == "yes" for rounds in range(2, 13))
        for values in np.exp(generator.normal(0.0, 0.2, (runs, 12))).tolist()
    )
    figure("objective at its limit ever said to hold", wrong / runs)
    assert wrong / runs <= at_most(ALPHA / 2, runs)


def test_the_laws_numbers_lie_in_their_intervals(runs, generator, figure):
    truth = (1000.0, 0.05, 0.0005, math.sqrt(0.95 / 0.0005))
    loads = np.repeat([1.0, 2, 4, 8, 16, 32, 64], 3)
    curve = np.array([scalable_throughput(load, *truth[:3]) for load in loads])
    missed, fits = np.zeros(4), runs // 4
    for _ in range(fits):
        fitted = fit_scalability(loads, curve * np.exp(generator.normal(0.0, 0.05, loads.size)), generator)
        numbers = (fitted.alone, fitted.contention, fitted.coherency, fitted.peak)
        missed += [not one.low <= true <= one.high for one, true in zip(numbers, truth, strict=True)]
    for name, share in zip(("alone", "contention", "coherency", "peak"), missed / fits, strict=True):
        figure(f"law: {name} outside its interval", share)
        assert share <= at_most(0.08, fits)  # the bootstrap's promise is approximate
