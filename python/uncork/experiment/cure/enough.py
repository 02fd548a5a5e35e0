"""Decide which comparisons of a cure no longer matter to its decisions, and so need no more trials. Pure.

The intervals are valid at every look, so an experiment may end as soon as they decide. None of the rules
looks at whether an effect is significant, because effects that stop at their first significance are
overstated. ``tests/calibration/test_enough.py`` simulates what the rules do to errors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from uncork.experiment.cure.arms import CONTROL, Arm
from uncork.experiment.cure.bill import account_of, saved_by
from uncork.experiment.cure.judge import COST_SHARE, SLOWER, bounded, judge
from uncork.model.database.workload import CapturedWorkload
from uncork.model.results.cure import PRACTICAL, Net, StatementEffect
from uncork.stats.combined import Bounded, difference

Comparison = tuple[str, int]
"""The name of a change, and the template of a statement."""


def needless(
    arms: Sequence[Arm], effects: Mapping[str, Sequence[StatementEffect]], workload: CapturedWorkload
) -> set[Comparison]:
    """Return the comparisons that need no more trials.

    A comparison needs none if it is about

    - a statement whose part of the bill is known so well that the sum of equally well known parts is known to
      3 % of the time, and which cannot be harmed too much;
    - a control that surely saves less than the chosen changes, the first of the `arms`;
    - a set without one of its members, which surely contributes to it;
    - a change that surely saves less than another change of the same finding.

    `effects` has every statement that is compared, by change; without an interval if it is not known yet.
    """
    nets = {arm.name: _net(arm, effects.get(arm.name, ()), workload) for arm in arms}
    means = {statement.template: statement.mean_ns for statement in workload.statements}
    idle = _idle(arms, nets)
    return {
        (arm.name, effect.template)
        for arm in arms
        for effect in effects.get(arm.name, ())
        if arm.name in idle or _is_known(effect, effects[arm.name], means)
    }


def promising(
    arms: Sequence[Arm], effects: Mapping[str, Sequence[StatementEffect]], workload: CapturedWorkload
) -> bool:
    """Return whether no change is proven, and one seems to save enough without a sure interval."""
    found = []
    for arm in arms:
        net = account_of(arm, effects.get(arm.name, ()), workload).net
        if net is not None:
            state, _, _ = judge(arm, effects[arm.name], net)
            found.append((state, net.saved >= PRACTICAL * net.before))
    return ("unclear", True) in found and not any(state == "cured" for state, _ in found)


def _net(arm: Arm, effects: Sequence[StatementEffect], workload: CapturedWorkload) -> Net | None:
    """Return what a change saves; None unless each of its statements has an interval."""
    if not effects or any(effect.low is None or effect.high is None for effect in effects):
        return None
    return account_of(arm, effects, workload).net


def _idle(arms: Sequence[Arm], nets: Mapping[str, Net | None]) -> set[str]:
    """Return the changes about which nothing is left to decide."""
    confirming = any(arm.kind == CONTROL for arm in arms)
    known = [(arm, net) for arm in arms if (net := nets[arm.name]) is not None]
    if not known:
        return set()
    if not confirming:
        best = max(net.low for _, net in known)
        return {arm.name for arm, net in known if net.high < best}
    whole = nets[arms[0].name]
    if whole is None:
        return set()
    return {
        arm.name
        for arm, net in known
        if arm is not arms[0]
        and (
            net.high < whole.low
            if arm.kind == CONTROL
            else difference(bounded(whole), bounded(net)).low > PRACTICAL * whole.before
        )
    }


def _is_known(
    effect: StatementEffect, effects: Sequence[StatementEffect], means: Mapping[int, float]
) -> bool:
    """Return whether a statement's part of the bill is precise enough, and no harm to it is possible."""
    saved = _saved(effect, means)
    if saved is None:
        return False
    before = math.fsum(
        statement_effect.calls_per_hour * means[statement_effect.template] / 1e9
        for statement_effect in effects
    )
    sure = math.fsum(
        max(0.0, part.low)
        for statement_effect in effects
        if (part := _saved(statement_effect, means)) is not None
    )
    harm = effect.high is not None and effect.high > SLOWER and -saved.low > COST_SHARE * sure
    return not harm and (saved.high - saved.low) / 2 <= PRACTICAL * before / math.sqrt(len(effects))


def _saved(effect: StatementEffect, means: Mapping[int, float]) -> Bounded | None:
    return saved_by(effect, means[effect.template])
