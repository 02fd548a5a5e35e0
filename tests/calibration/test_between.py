"""Two runs of the same thing at different times: verdicts come no more often than stated.

A simulated run has a log value that scatters from run to run (5 %). The functions that judge real runs judge
these; nothing differs unless a test says so.
"""

import numpy as np
import pytest

from uncork.stats.run_comparison import (
    KNOWN_RUNS,
    ComparableRun,
    Measured,
    claims,
    compare_effects,
    compare_runs,
    compare_shares,
    log_odds,
    run_to_run,
)

CONFIDENCE, PRACTICAL = 0.95, 0.03
SCATTER = 0.05
DAY = 86_400.0


def judged(values: np.ndarray, first: int, last: int, figures: int = 1) -> list[str]:
    """Judge runs `first` and `last` of a series of daily runs (a row a figure) by all the others."""
    found = []
    for row in np.reshape(values, (figures, -1)):
        others = [ComparableRun(DAY * n, value) for n, value in enumerate(row) if n not in (first, last)]
        ends = [Measured(DAY * n, row[n]) for n in (first, last)]
        found.append(compare_runs(*ends, run_to_run([others]), practical=PRACTICAL, confidence=CONFIDENCE))
    return claims(found, confidence=CONFIDENCE)


def normal(generator, runs):
    return generator.normal(0.0, SCATTER, runs)


def heavy(generator, runs):
    return SCATTER * generator.standard_t(3, runs)


def skewed(generator, runs):
    return SCATTER * generator.exponential(1.0, runs)


def dependent(generator, runs, kept=0.5):
    """Each run resembles the one before."""
    values = np.empty(runs)
    values[0] = generator.normal()
    for n in range(1, runs):
        values[n] = kept * values[n - 1] + np.sqrt(1 - kept**2) * generator.normal()
    return SCATTER * values


def walk(generator, runs):
    """A machine that drifts away and never comes back."""
    return np.cumsum(generator.normal(0.0, SCATTER, runs))


def spoiled(generator, runs):
    """One run in ten is far too slow."""
    return SCATTER * (
        generator.normal(size=runs) + (generator.random(runs) < 0.1) * generator.exponential(5, runs)
    )


def share(generator, many, noise, like, *, first=None, last=None):
    """Return how often two runs of a series that holds `like` others are called different."""
    alarms = 0
    for _ in range(many):
        values = noise(generator, like + 2)
        alarms += "differs" in judged(
            values, like if first is None else first, like + 1 if last is None else last
        )
    return alarms / many


@pytest.mark.parametrize("like", [5, 10, 30])
@pytest.mark.parametrize("noise", [normal, heavy, skewed, spoiled], ids=lambda noise: noise.__name__)
def test_two_runs_of_the_same_thing_differ_as_seldom_as_stated(generator, runs, figure, noise, like):
    found = share(generator, runs, noise, like)
    figure(
        f"A/A at different times, {noise.__name__} scatter, {like} comparable runs: called different", found
    )
    stated = {normal: 0.05, heavy: 0.05, skewed: 0.055, spoiled: 0.075}[noise]
    assert found <= stated + 3 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("like", [5, 10, 30])
@pytest.mark.parametrize("apart", ["neighbours", "first and last", "within"])
@pytest.mark.parametrize("noise", [dependent, walk], ids=lambda noise: noise.__name__)
def test_dependence_between_runs_is_measured_not_hidden(generator, runs, figure, noise, like, apart):
    first, last = {"neighbours": (like, like + 1), "first and last": (0, like + 1), "within": (1, like)}[
        apart
    ]
    found = share(generator, runs, noise, like, first=first, last=last)
    figure(
        f"A/A at different times, {noise.__name__} runs, {like} comparable runs, {apart}: called different",
        found,
    )
    stated = 0.06 if (noise, like, apart) == (walk, 5, "first and last") else 0.05
    assert found <= stated + 3 * np.sqrt(0.05 * 0.95 / runs)


@pytest.mark.parametrize("like", range(KNOWN_RUNS))
def test_a_short_history_gives_no_verdict_however_clear_it_looks(generator, like):
    for shift in (0.0, 1.0):
        values = normal(generator, like + 2)
        values[-1] += shift
        assert judged(values, like, like + 1) == [""]


def test_runs_farther_apart_than_any_were_watched_give_no_verdict(generator):
    others = [ComparableRun(n, value) for n, value in enumerate(normal(generator, 20))]
    ends = Measured(0.0, 0.0), Measured(DAY, 2.0)
    found = compare_runs(*ends, run_to_run([others]), practical=PRACTICAL, confidence=CONFIDENCE)
    assert claims([found], confidence=CONFIDENCE) == [""]
    assert "apart" in found.unknown


def test_without_history_the_naive_test_would_be_wrong_most_of_the_time(generator, runs, figure):
    """The check can fail: an interval from within the runs alone knows nothing of what changes between."""
    within, alarms = 0.01, 0
    for first, last in generator.normal(0.0, SCATTER, (runs, 2)):
        ends = Measured(0.0, first, within), Measured(DAY, last, within)
        found = compare_runs(*ends, None, practical=PRACTICAL, confidence=CONFIDENCE)
        assert claims([found], confidence=CONFIDENCE) == [""]
        alarms += not found.low <= 1.0 <= found.high
    figure("A/A at different times, interval from within the runs alone: excludes 1", alarms / runs)
    assert alarms / runs > 0.4


def test_many_figures_of_one_comparison_share_one_rate(generator, runs, figure):
    """Twelve figures that move together, as throughput and latencies do, and twelve that do not."""
    for name, common in (("alike", 0.9), ("apart", 0.0)):
        alarms = 0
        for _ in range(runs // 2):
            own = generator.normal(size=(12, 12))
            values = SCATTER * (np.sqrt(common) * generator.normal(size=12) + np.sqrt(1 - common) * own)
            values[::2] *= -1  # throughput falls where latency rises
            alarms += "differs" in judged(values, 10, 11, figures=12)
        found = alarms / (runs // 2)
        figure(f"A/A at different times, 12 figures, {name}, 10 comparable runs: any called different", found)
        assert found <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / (runs // 2))


def test_a_real_difference_is_found(generator, runs, figure):
    for shift, like in ((0.10, 10), (0.10, 30), (0.20, 5), (0.20, 10), (0.20, 30)):
        found = 0
        for _ in range(runs // 2):
            values = normal(generator, like + 2)
            values[-1] += shift
            found += judged(values, like, like + 1) == ["differs"]
        figure(
            f"run slower by {shift:.0%} found, scatter {SCATTER:.0%}, {like} comparable runs",
            found / (runs // 2),
        )
        if (shift, like) == (0.20, 30):
            assert found / (runs // 2) > 0.6


@pytest.mark.parametrize("chance", [0.0, 0.0005, 0.02])
@pytest.mark.parametrize("clustered", [False, True], ids=["independent failures", "failures in clusters"])
def test_shares_of_failures_differ_as_seldom_as_stated(generator, runs, figure, chance, clustered):
    alarms, like, of = 0, 8, 10_000
    for _ in range(runs // 2):
        chances = chance * (generator.gamma(2.0, 0.5, like + 2) if clustered else np.ones(like + 2))
        counts = generator.binomial(of, chances)
        others = [ComparableRun(DAY * n, log_odds(int(count), of)) for n, count in enumerate(counts[:like])]
        ends = [(int(count), of) for count in counts[like:]]
        found = compare_shares(
            *ends, run_to_run([others]), (DAY, 2 * DAY), practical=PRACTICAL, confidence=CONFIDENCE
        )
        alarms += claims([found], confidence=CONFIDENCE) == ["differs"]
    name = "in clusters" if clustered else "independent"
    figure(
        f"A/A at different times, failures of {chance:.2%}, {name}: called different", alarms / (runs // 2)
    )
    assert alarms / (runs // 2) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / (runs // 2))


def test_effects_measured_side_by_side_differ_as_seldom_as_stated(generator, runs, figure):
    alarms = 0
    for _ in range(runs):
        sides = []
        for _ in range(2):
            units = generator.normal(0.1, 0.03, 10)
            sides.append((float(units.mean()), 10, float(units.std(ddof=1))))
        found = compare_effects(*sides, practical=PRACTICAL, confidence=CONFIDENCE, minimum_rounds=5)
        alarms += claims([found], confidence=CONFIDENCE) == ["differs"]
    figure("A/A of two experiments' effects, 10 rounds each: called different", alarms / runs)
    assert alarms / runs <= 0.05
