"""How often one more round, at a size far beyond the measured ones, would lie outside its interval."""

import math

import pytest
from simulation import at_most

from uncork.stats.growth import fit_growth

ALPHA = 0.05
TO = 180e6
LARGE = 30e6
"""A size past which data no longer fits memory, in the one system where that matters."""

SHAPES = {
    "no growth": lambda n: 5e6,
    "logarithmic": lambda n: 3e6 + 0.5e6 * math.log(n / 1e5),
    "power 0.5": lambda n: 5e6 * (n / 1e5) ** 0.5,
    "power 0.85": lambda n: 5e6 * (n / 1e5) ** 0.85,
    "linear, a fixed cost beside it": lambda n: 5e6 + 200 * n,
    "linear, hidden by its fixed cost": lambda n: 5e6 + 0.2 * n,
    "n log n, which is none of the shapes": lambda n: 20 * n * math.log(n),
}
DESIGNS = {"3 sizes, 4 rounds": ((1e5, 3e5, 1e6), 4), "5 sizes, 8 rounds": ((1e5, 3e5, 1e6, 3e6, 1e7), 8)}


def shares(truth, design, runs, generator, *, of_rounds=0.05, of_trials=0.1):
    """Return how often the interval misses another round, how often there is none, and its median width."""
    sizes, rounds = DESIGNS[design]
    missed, none, widths = 0, 0, []
    for _ in range(runs):
        found = []
        for shift in generator.normal(0.0, of_rounds, rounds):
            noise = generator.normal(0.0, of_trials, len(sizes))
            found.append({n: truth(n) * math.exp(shift + off) for n, off in zip(sizes, noise, strict=True)})
        predicted = fit_growth(found, TO).predicted
        if predicted is None:
            none += 1
            continue
        then = truth(TO) * math.exp(generator.normal(0.0, of_rounds) + generator.normal(0.0, of_trials))
        missed += not predicted.low <= then <= predicted.high
        widths.append(predicted.high / predicted.low)
    return missed / runs, none / runs, sorted(widths)[len(widths) // 2]


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_time_lies_in_its_interval_when_its_growth_goes_on(shape, design, runs, generator, figure):
    missed, none, width = shares(SHAPES[shape], design, runs, generator)
    figure(f"growth outside its interval, {shape}, {design} (width: x{width:.3g})", missed)
    figure(f"growth not predicted, {shape}, {design}", none)
    assert missed <= at_most(ALPHA, runs)
    assert none <= at_most(ALPHA, runs)


def test_it_does_not_when_growth_changes_its_ways_beyond_what_was_measured(runs, generator, figure):
    """What every such prediction is told with: nothing measured can tell of a step that lies beyond."""
    missed, _, _ = shares(
        lambda n: (5e6 + 200 * n) * (20.0 if n > LARGE else 1.0), "3 sizes, 4 rounds", runs // 4, generator
    )
    figure("growth outside its interval, twenty times slower once data outgrows memory", missed)
    assert missed > 0.5
