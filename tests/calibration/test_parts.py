"""How often parts of a load are named that are like the others, and how often one that is not.

The model: all parts of a load meet the same server, whose latency wanders from second to second (an
autoregression) and stalls now and then. Each part adds noise of its own to the quantiles of a second, which
wanders too, because a machine's other work lasts longer than a second. The p99 of a second rests on few
operations, so its noise is larger.
"""

import numpy as np
import pytest

from uncork.stats.load.parts import LEAST_INTERVALS, disagreements

_NOISE = {"p50": 0.05, "p99": 0.25}
"""Standard deviation of the logarithm of a second's quantile in one part."""


def _load(
    random: np.random.Generator, parts: int, seconds: int, odd: float, wander: float
) -> dict[str, dict[int, list[float | None]]]:
    found: dict[str, dict[int, list[float | None]]] = {}
    for name, noise in _NOISE.items():
        server = _wandering(random, seconds, 0.3, 0.8)
        server[random.random(seconds) < 0.03] += 2.0
        found[name] = {}
        for part in range(1, parts + 1):
            own = _wandering(random, seconds, noise, wander)
            shift = np.log(odd) if part == 1 else 0.0
            values = np.exp(server + own + shift) * 1e6
            silent = random.random(seconds) < 0.02
            found[name][part] = [
                None if gone else float(one) for one, gone in zip(values, silent, strict=True)
            ]
    return found


def _wandering(random: np.random.Generator, seconds: int, deviation: float, wander: float) -> np.ndarray:
    """Return an autoregression with a standard deviation and a correlation from one second to the next."""
    values = np.empty(seconds)
    values[0] = random.normal(0, deviation)
    for place in range(1, seconds):
        values[place] = wander * values[place - 1] + random.normal(0, deviation * np.sqrt(1 - wander**2))
    return values


@pytest.mark.parametrize(("parts", "seconds"), [(2, 5), (4, 10), (16, 5), (4, 60)])
@pytest.mark.parametrize("wander", [0.0, 0.5])
def test_parts_that_are_alike_are_not_named(parts, seconds, wander, runs, generator, figure):
    loads = runs // 20
    named = sum(bool(disagreements(_load(generator, parts, seconds, 1.0, wander))) for _ in range(loads))
    figure(f"parts: one of {parts} alike is named, {seconds} s, correlation {wander}", named / loads)
    assert named <= 0.02 * loads


@pytest.mark.parametrize(("odd", "seconds"), [(2.0, 10), (0.5, 10), (10.0, 10), (1.5, 60)])
def test_a_part_that_differs_is_named(odd, seconds, runs, generator, figure):
    loads = runs // 20
    found = [disagreements(_load(generator, 4, seconds, odd, 0.5)) for _ in range(loads)]
    power = sum(any(one.part == 1 for one in each) for each in found) / loads
    wrong = sum(any(one.part != 1 for one in each) for each in found) / loads
    figure(f"parts: one that is {odd} times as slow is named, {seconds} s", power)
    figure(f"parts: another than the one that is {odd} times as slow is named, {seconds} s", wrong)
    assert power >= 0.95
    assert wrong <= 0.02


@pytest.mark.parametrize(("odd", "seconds", "begins"), [(10.0, 12, 2), (3.0, 60, 15)])
def test_a_part_that_is_slow_for_most_of_the_time_is_named(odd, seconds, begins, runs, generator, figure):
    loads, named = runs // 20, 0
    for _ in range(loads):
        load = _load(generator, 4, seconds, 1.0, 0.5)
        for values in load.values():
            values[1] = [
                None if one is None else one * (odd if place >= begins else 1.0)
                for place, one in enumerate(values[1])
            ]
        named += [one.part for one in disagreements(load)][:1] == [1]
    figure(
        f"parts: one that is {odd} times as slow from second {begins} of {seconds} on is named", named / loads
    )
    assert named >= 0.95 * loads


def test_a_small_difference_is_no_fault_and_a_short_load_no_evidence(generator):
    assert not disagreements(_load(generator, 4, 600, 1.1, 0.0))
    assert not disagreements(_load(generator, 4, LEAST_INTERVALS - 1, 10.0, 0.0))
