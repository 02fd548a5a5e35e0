"""Prove on a copy what a client gains that sends the same requests or transactions in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.judge import choose, doubt, judge, state_of
from uncork.experiment.cure.pooling import (
    connecting_habit,
    net_of_requests,
    pool_arm,
    pooling_experiment,
    request_of,
    times_known,
)
from uncork.experiment.cure.text import effect_of_times
from uncork.experiment.plan.skip_rules import SKIPPING
from uncork.model.database.finding import ClientHabit, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.records import build_from
from uncork.model.results.cure import Change, Net, StatementEffect, Tried
from uncork.workbench.cure.trials import Allowance, Measured, measure_arms


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way to send an operation: the change, the habit that it replaces, and what it assumes."""

    arm: Arm
    habit: ClientHabit
    assumed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class VariantPlan:
    """A finding whose operations can be sent in other ways, and how to compare them.

    `what` says what is measured. `whole` is the operation as a statement, and `clients` how many
    sessions send it at once. `experiment` returns an experiment file that compares the variants of
    some names with the present way on a copy, within a budget in seconds. `effect` makes the effect
    on the time of an operation from one on operations a second. `net` returns the sessions' time
    that a variant saves per hour; None if it is unknown. `doubt` returns why a gain may be smaller
    on the server, as sentences; empty if there is no reason.
    """

    finding: Finding
    what: str
    whole: CapturedStatement
    clients: int
    variants: tuple[Variant, ...]
    experiment: Callable[[str, Sequence[str], float], str]
    effect: Callable[[str, StatementEffect], StatementEffect]
    net: Callable[[StatementEffect], Net | None]
    doubt: Callable[[StatementEffect], str] = lambda _: ""


class VariantProver:
    """Measures ways to send an operation, on copies of the database at `conninfo`."""

    def __init__(self, root: Path, conninfo: str, told: Callable[[str], None]) -> None:
        self._root, self._conninfo, self._told = root, conninfo, told

    def of_finding(self, plan: VariantPlan, allowed: Allowance) -> Tried:
        """Measure all variants, and the best one again if it helps. Of it, only the last trials count."""
        self._told(f"measuring {plan.what}")
        names = [variant.arm.name for variant in plan.variants]
        measured = self._measure(plan, names, allowed.first())
        found = tuple(_change(plan, variant, measured) for variant in plan.variants)
        best = choose(found)
        if best is None:
            return Tried(plan.finding, "not tried", "There is no other way to send it.")
        if best.state != "cured":
            return Tried(plan.finding, state_of(found), best.reason, found, best.name)
        self._told(f"measuring the best of it again: {best.text.rstrip('. ')}")
        (variant,) = (variant for variant in plan.variants if variant.arm.name == best.name)
        again = _change(plan, variant, self._measure(plan, [best.name], allowed))
        again = replace(again, runs=(*again.runs, *best.runs))
        found = tuple(again if change.name == best.name else change for change in found)
        reason = again.reason
        if again.state != "cured":
            reason = f"The gain was not confirmed when it was measured again: {reason}"
        return Tried(plan.finding, again.state, reason, found, again.name)

    def _measure(self, plan: VariantPlan, names: Sequence[str], allowed: Allowance) -> Measured:
        text = plan.experiment(self._conninfo, names, allowed.budget_s)
        return measure_arms(
            self._root,
            text,
            self._conninfo,
            [plan.whole],
            plan.clients,
            self._told,
            times_known,
            until_s=allowed.until_s,
        )


def _change(plan: VariantPlan, variant: Variant, measured: Measured) -> Change:
    arm = variant.arm
    effects = tuple(plan.effect(arm.name, effect) for effect in measured.effects.get(arm.name, ()))
    net = plan.net(effects[0]) if effects else None
    refused = measured.refused.get(arm.name, "")
    skipped = refused.startswith(SKIPPING)
    state, reason, worst = judge(arm, effects, net, refused="" if skipped else refused)
    other = doubt(arm, effects, [plan.whole], state)
    if state == "cured" and effects:
        other = other or plan.doubt(effects[0])
    if state in ("cured", "not cured") and other:
        state, reason = "unclear", other
    return build_from(
        Change,
        arm,
        state=state,
        reason=f"It could not be measured: {refused}." if skipped else reason,
        net=net,
        effects=effects,
        worst=worst,
        runs=(measured.run,),
        assumed=variant.assumed,
        habit=variant.habit,
    )


_NOTHING_TO_SEND: Final = "No statement was captured that can be sent again over another connection."


def pool_plan(finding: Finding, workload: CapturedWorkload) -> tuple[VariantPlan | None, str]:
    """Return the plan to prove what a client gains that keeps its connections, or the reason why not. Pure.

    Both are empty if the finding is not about connections.
    """
    candidate = connecting_habit(finding)
    if candidate is None:
        return None, ""
    request = request_of(workload, finding, candidate)
    if request is None:
        return None, _NOTHING_TO_SEND
    arm, assumed = pool_arm(candidate, request)
    plan = VariantPlan(
        finding,
        "requests over new and over kept connections",
        request.whole,
        request.clients,
        (Variant(arm, "connects", assumed),),
        experiment=lambda copy, _, budget_s: pooling_experiment(
            finding.headline, copy, request, arm, budget_s=budget_s
        ),
        effect=lambda _, rate: effect_of_times(rate),
        net=lambda effect: net_of_requests(effect, request),
    )
    return plan, ""
