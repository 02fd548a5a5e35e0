"""A load carried out again beside its history: alarms come no more often than stated, before and after the
second look.

A simulated run has a log value that scatters from run to run (5 %), one run a day. The two newest are the run
in question and the one made to confirm it.
"""

import numpy as np
import pytest

from calibration.test_between import DAY, SCATTER, dependent, heavy, normal, skewed, spoiled, walk
from uncork.experiment.spec.gates import parse_gate
from uncork.model.results.guard import GateOutcome
from uncork.stats.gates.history import beside_past, past_of, share_beside_past
from uncork.stats.gates.history_gates import judge_past, ratio_beside
from uncork.stats.run_comparison import KNOWN_RUNS, ComparableRun, log_odds

CONFIDENCE = 0.95
MINUTE = 60.0


def step(generator, runs):
    """A history that moved by 30 % half-way, before the runs in question."""
    values = normal(generator, runs)
    values[: (runs - 2) // 2] += 0.3
    return values


def days(generator, runs):
    """The two newest are made within minutes, and share all that changes from day to day."""
    values = normal(generator, runs)
    values[-1] = values[-2]
    return values


NOISES = {one.__name__: one for one in (normal, heavy, skewed, spoiled, dependent, walk, step, days)}
STATED = {"skewed": 0.06, "spoiled": 0.06}


def worse(values: np.ndarray) -> list[bool | None]:
    """Say of the two newest runs whether each is shown to be slower than the rest; None if not known."""
    past = past_of([ComparableRun(DAY * n, value) for n, value in enumerate(values[:-2])])
    now = DAY * (len(values) - 2)
    found = []
    for place, value in enumerate(values[-2:]):
        one = beside_past([ComparableRun(now + place * MINUTE, value)], past, confidence=CONFIDENCE)
        found.append(None if one.unknown else one.ratio > 1.0 and one.differs <= 1.0 - CONFIDENCE)
    return found


@pytest.mark.parametrize("like", [5, 10, 30])
@pytest.mark.parametrize("noise", NOISES)
def test_a_run_like_those_before_alarms_as_seldom_as_stated(generator, runs, figure, noise, like):
    many, once, twice = runs // 8, 0, 0
    for _ in range(many):
        found = worse(NOISES[noise](generator, like + 2))
        once += bool(found[0])
        twice += all(found)
    figure(f"A/A against history, {noise}, {like} comparable runs: alarms at the first run", once / many)
    figure(f"A/A against history, {noise}, {like} comparable runs: alarms after the second", twice / many)
    stated = STATED.get(noise, 0.05)
    assert once / many <= stated + 3 * np.sqrt(0.05 * 0.95 / many)
    if noise != "days":
        assert twice / many <= 0.02 + 3 * np.sqrt(0.02 * 0.98 / many)


@pytest.mark.parametrize("common", [0.9, 0.0], ids=["moving together", "apart"])
def test_many_gates_of_one_guard_share_one_rate(generator, runs, figure, common):
    """Twenty gates at the baseline, the bound that alarms most easily."""
    gate, many, like = parse_gate("p99 <= baseline"), runs // 20, 10
    alarms = 0
    for _ in range(many):
        own = generator.normal(size=(20, like + 1))
        values = SCATTER * (np.sqrt(common) * generator.normal(size=like + 1) + np.sqrt(1 - common) * own)
        asked = []
        for row in values:
            past = past_of([ComparableRun(DAY * n, value) for n, value in enumerate(row[:-1])])
            found = beside_past([ComparableRun(DAY * like, row[-1])], past, confidence=CONFIDENCE)
            asked.append(ratio_beside(gate, found, practical=0.03))
        outcomes = {one.outcome for one in judge_past(asked, confidence=CONFIDENCE)}
        alarms += GateOutcome.BROKEN in outcomes
    name = "moving together" if common else "apart"
    figure(
        f"A/A against history, 20 gates, {name}, 10 comparable runs: any alarm at the first run",
        alarms / many,
    )
    assert alarms / many <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / many)


@pytest.mark.parametrize("like", range(KNOWN_RUNS))
def test_a_short_history_gives_no_alarm_however_clear_it_looks(generator, like):
    values = normal(generator, like + 2)
    values[-2:] += 1.0
    if like:
        assert worse(values) == [None, None]
    else:
        with pytest.raises(ValueError, match="no comparable run"):
            worse(values)


def test_a_history_of_an_hour_says_nothing_of_tomorrow(generator):
    past = past_of([ComparableRun(10 * MINUTE * n, value) for n, value in enumerate(normal(generator, 7))])
    found = beside_past([ComparableRun(DAY, 2.0)], past, confidence=CONFIDENCE)
    assert "apart" in found.unknown
    assert found.differs == 1.0


@pytest.mark.parametrize(("shift", "std_dev"), [(0.05, 0.01), (0.10, 0.02), (0.05, 0.05), (0.20, 0.05)])
@pytest.mark.parametrize("like", [5, 10, 30])
def test_a_real_change_is_found_twice(generator, runs, figure, shift, std_dev, like):
    many, found = runs // 8, 0
    for _ in range(many):
        values = normal(generator, like + 2) * std_dev / SCATTER
        values[-2:] += shift
        found += all(worse(values))
    name = f"slower by {shift:.0%}, scatter {std_dev:.0%}, {like} comparable runs: found twice"
    figure(name, found / many)
    if like >= 10 and shift / std_dev >= 5:
        assert found / many > 0.75


def test_failures_alarm_as_seldom_as_stated(generator, runs, figure):
    many, like, of = runs // 8, 8, 10_000
    for chance in (0.0, 0.0005, 0.02):
        alarms = 0
        for _ in range(many):
            counts = generator.binomial(of, chance * generator.gamma(2.0, 0.5, like + 1))
            past = past_of(
                [ComparableRun(DAY * n, log_odds(int(c), of)) for n, c in enumerate(counts[:like])]
            )
            before = (int(counts[:like].sum()), like * of)
            after = (int(counts[like]), of)
            found = share_beside_past(after, DAY * like, before, past, confidence=CONFIDENCE)
            alarms += found.ratio > 1.0 and found.differs <= 1.0 - CONFIDENCE
        figure(f"A/A against history, failures of {chance:.2%} in clusters: alarms", alarms / many)
        assert alarms / many <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / many)
