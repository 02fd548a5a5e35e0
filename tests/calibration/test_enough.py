"""A confirmation ends early, as soon as the control cannot matter: that does not make it err more often.

A simulated change has one statement, with blocks of lognormal noise. The databases of all variants differ
from the baseline's by a common factor, which the control is there to notice.
"""

import numpy as np
import pytest

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.judge import account_of, judge, needless
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import StatementEffect
from uncork.stats.interval import radius

ONE = CapturedStatement(1, "SELECT", ((),), "none", 3600.0, 1e9, 1.0, ("t",), changes=False)
WORKLOAD = CapturedWorkload((ONE,), (), 60.0, 1.0)
CHANGE = Arm("change", "index", "Change it.", "", "", settings={"jit": "off"})
CONTROL = Arm("control", "control", "Change nothing.", "", "", settings={"jit": "on"})
LEAST, MOST = 5, 60
NOISE = 0.2


def confirmed(generator, gain, offset, *, early):
    """Return whether a change is confirmed, and how many blocks the control was measured in."""
    truths = {CHANGE.name: np.log(gain * offset), CONTROL.name: np.log(offset)}
    logs = {name: generator.normal(truth, NOISE, MOST) for name, truth in truths.items()}
    count = dict.fromkeys(logs, MOST)
    if early:
        for blocks in range(LEAST, MOST + 1):
            effects = {name: [effect(units[: min(count[name], blocks)])] for name, units in logs.items()}
            for name, _ in needless([CHANGE, CONTROL], effects, WORKLOAD):
                count[name] = min(count[name], blocks)
            if max(count.values()) <= blocks:
                break
    found = {name: [effect(units[: count[name]])] for name, units in logs.items()}
    change, control = (account_of(one, found[one.name], WORKLOAD).net for one in (CHANGE, CONTROL))
    cured = judge(CHANGE, found[CHANGE.name], change)[0] == "cured"
    helps = judge(CONTROL, found[CONTROL.name], control)[0] == "cured"
    return cured and not (helps and change.low <= control.high), count[CONTROL.name]


def effect(units):
    half = float(radius(len(units), units.std(ddof=1), 0.95))
    middle = units.mean()
    low, ratio, high = (float(one) for one in np.exp([middle - half, middle, middle + half]))
    return StatementEffect(1, "SELECT", False, 3600.0, "none", 1e9, None, ratio, low, high)


@pytest.mark.parametrize("offset", [1.0, 0.8])
def test_a_change_without_effect_is_confirmed_as_seldom_as_without_an_early_end(
    generator, runs, figure, offset
):
    many = runs // 20
    rates = [
        sum(confirmed(generator, 1.0, offset, early=early)[0] for _ in range(many)) / many
        for early in (True, False)
    ]
    figure(f"confirmed without effect, databases differ by {offset}, early end", rates[0])
    figure(f"confirmed without effect, databases differ by {offset}, whole budget", rates[1])
    assert rates[0] <= 0.05


def test_a_large_gain_needs_few_blocks_of_the_control(generator, runs, figure):
    found = [confirmed(generator, 0.3, 1.0, early=True) for _ in range(runs // 20)]
    share = sum(one for one, _ in found) / len(found)
    blocks = sum(blocks for _, blocks in found) / len(found) / MOST
    figure("confirmed with a gain of 70 %", share)
    figure("blocks of the control with a gain of 70 %, as a part of all", blocks)
    assert share >= 0.95
    assert blocks < 0.25
