"""Plans: the parts of the scatter that data show, and the width that a plan promises."""

import math

import numpy as np
import pytest
from simulation import looks, units

from uncork.stats.compare import MINIMUM_ROUNDS
from uncork.stats.effect import estimate
from uncork.stats.interval import radius
from uncork.stats.power import (
    StdDevs,
    detectable_change,
    detection_power,
    expected_half_width,
    rounds_to_decide,
    variance_parts,
)
from uncork.stats.sample import Units

PARTS = {
    "all three": StdDevs(0.3, 0.1, 0.05),
    "cycles alone": StdDevs(0.3, 0.0, 0.0),
    "rounds above all": StdDevs(0.05, 0.02, 0.1),
}


def _cycles(generator, std_dev, rounds):
    """Return log ratios of an unbalanced run: 2 to 5 blocks a round, 2 to 12 cycles a block."""
    found = []
    for _ in range(rounds):
        around, blocks = std_dev.round * generator.standard_normal(), []
        for _ in range(generator.integers(2, 6)):
            here = around + std_dev.block * generator.standard_normal()
            blocks.append(here + std_dev.cycle * generator.standard_normal(generator.integers(2, 13)))
        found.append(blocks)
    return found


@pytest.mark.parametrize("name", PARTS)
def test_the_parts_are_right_on_average(name, runs, generator, figure):
    truth = PARTS[name]
    found = np.array([variance_parts(_cycles(generator, truth, 8)) for _ in range(runs // 4)])
    for part, estimates in zip(("cycle", "block", "round"), found.T, strict=True):
        true, error = getattr(truth, part) ** 2, estimates.std() / math.sqrt(len(estimates))
        figure(
            f"power: variance between {part}s, mean error over that between cycles; {name}",
            (estimates.mean() - true) / truth.cycle**2,
        )
        assert abs(estimates.mean() - true) < 4.0 * error


@pytest.mark.parametrize("rounds", [5, 8, 15])
@pytest.mark.parametrize(("blocks", "cycles"), [(2, 10), (4, 5), (8, 3)])
def test_the_width_is_what_the_plan_promises(rounds, blocks, cycles, runs, generator, figure):
    std_dev = StdDevs(0.1, 0.03, 0.01)
    within = math.hypot(std_dev.block, std_dev.cycle / math.sqrt(cycles)) / math.sqrt(1.5)
    values = within * generator.standard_normal((runs, rounds, blocks, 3))
    values[..., 2] += std_dev.round * generator.standard_normal((runs, rounds, 1))
    half = np.median(looks(units(values)[:, 0], widen=False).half[:, -1])
    promised = math.log1p(
        expected_half_width(std_dev, rounds=rounds, blocks=blocks, cycles=cycles, confidence=0.95)
    )
    name = f"{rounds} rounds, {blocks} blocks, {cycles} cycles"
    figure(f"power: promised half-width over the simulated median; {name}", promised / half)
    assert abs(promised / half - 1.0) < 0.1


@pytest.mark.parametrize(("rounds", "std_dev"), [(5, 0.02), (8, 0.05), (15, 0.1), (30, 0.3)])
def test_the_power_that_the_doctor_reports_is_the_power_of_the_interval(
    generator, runs, figure, rounds, std_dev
):
    least = detectable_change(0.8, rounds, std_dev, 0.95)
    for change in (0.05, 0.2, least):
        units = math.log1p(change) + std_dev * generator.standard_normal((runs, rounds))
        half = radius(rounds, units.std(axis=1, ddof=1), 0.95)
        found = float((np.abs(units.mean(axis=1)) > half).mean())
        figure(f"power of {rounds} rounds, SD {std_dev:.0%}, a change of {change:.1%}", found)
        stated = detection_power(change, rounds, std_dev, 0.95)
        assert abs(found - stated) < 4 * math.sqrt(0.25 / runs)
    assert detection_power(least, rounds, std_dev, 0.95) == pytest.approx(0.8, abs=0.001)


def test_power_at_the_edges():
    assert detection_power(0.2, 2, 0.05, 0.95) == 0.0
    assert detectable_change(0.8, 2, 0.05, 0.95) is None
    assert (detection_power(0.2, 5, 0.0, 0.95), detection_power(0.0, 5, 0.0, 0.95)) == (1.0, 0.0)


LOOKS, ALPHA, PRACTICAL = 20 * 15, 0.05, 0.03
SEEN = [(0.05, 0.05), (0.05, 0.08), (0.1, 0.15), (0.2, 0.15), (0.35, 0.3), (0.0, 0.02), (0.0, 0.05)]
"""True effects, and standard deviations of units as seen on quiet and on busy machines."""


@pytest.mark.parametrize("so_far", [5, 8, 15])
@pytest.mark.parametrize("comparisons", [1, 12])
def test_half_of_the_forecasts_of_a_decision_are_within_a_factor_of_one_and_a_half(
    so_far, comparisons, runs, generator, figure
):
    shares, said = [], []
    bar = math.log(comparisons / ALPHA)
    for effect, std_dev in SEEN:
        samples = generator.normal(math.log1p(effect), std_dev, (runs // 40, 1, LOOKS))
        state = looks(samples)
        differs = (state.log_e() >= bar) & (state.half < np.abs(state.mean))
        alike = (state.log_e_equivalence(PRACTICAL) >= bar) & state.inside(PRACTICAL)
        decided = (differs | alike)[:, 0]
        decided[:, : MINIMUM_ROUNDS - 1] = False
        first = np.where(decided.any(axis=1), decided.argmax(axis=1) + 1, LOOKS + 1)
        is_open = np.flatnonzero(first > so_far)
        if len(is_open) < 10:
            continue
        effects = [estimate(Units(tuple(samples[run, 0, :so_far])), 1 - ALPHA) for run in is_open]
        forecasts = [
            (first[run], found)
            for run, effect in zip(is_open, effects, strict=True)
            if (found := rounds_to_decide(effect, PRACTICAL, comparisons)) is not None
        ]
        said.append(len(forecasts) / len(is_open))
        shares.append(np.mean([2 / 3 <= found / true <= 3 / 2 for true, found in forecasts]))
    name = f"after {so_far} rounds, {comparisons} comparisons"
    figure(f"forecast of a decision: within a factor of 1.5, {name}", np.mean(shares))
    figure(f"forecast of a decision: worst of {len(shares)} effects and SDs, {name}", np.min(shares))
    figure(f"forecast of a decision: said, {name}", np.mean(said))
    assert np.mean(shares) >= 0.5 - 2 / math.sqrt(runs)
