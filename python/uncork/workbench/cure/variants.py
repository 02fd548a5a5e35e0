"""Prove on a copy what a client gains that sends the same requests or transactions in another way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.judge import choose, doubt, judge, state_of
from uncork.experiment.cure.pooling import times_known
from uncork.experiment.plan.skip_rules import SKIPPING
from uncork.model.database.finding import ClientHabit, Finding
from uncork.model.database.workload import CapturedStatement
from uncork.model.results.cure import Change, Net, StatementEffect, Tried
from uncork.workbench.cure.trials import Measured, measure_arms


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way to send an operation: the change, the habit that it replaces, and what it assumes."""

    arm: Arm
    habit: ClientHabit
    assumed: tuple[str, ...]


class VariantPlan(Protocol):
    """A finding whose operations can be sent in other ways, and how to compare them.

    `what` says what is measured. `whole` is the operation as a statement, and `clients` how many sessions
    send it at once.
    """

    @property
    def finding(self) -> Finding: ...  # noqa: D102

    @property
    def what(self) -> str: ...  # noqa: D102

    @property
    def whole(self) -> CapturedStatement: ...  # noqa: D102

    @property
    def clients(self) -> int: ...  # noqa: D102

    @property
    def variants(self) -> tuple[Variant, ...]: ...  # noqa: D102

    def experiment(self, copy_dsn: str, names: Sequence[str], *, budget_s: float) -> str:
        """Return an experiment file that compares the variants of these names with the present way."""

    def effect(self, name: str, rate: StatementEffect) -> StatementEffect:
        """Return an effect of a variant on the time of an operation, from one on operations a second."""

    def net(self, effect: StatementEffect) -> Net | None:
        """Return the sessions' time that a variant saves per hour; None if it is unknown."""

    def doubt(self, effect: StatementEffect) -> str:
        """Return why a gain may be smaller on the server, as sentences; empty if there is no reason."""


class VariantProver:
    """Measures ways to send an operation, on copies of the database at `conninfo`."""

    def __init__(self, root: Path, conninfo: str, told: Callable[[str], None]) -> None:
        self._root, self._conninfo, self._told = root, conninfo, told

    def of_finding(self, plan: VariantPlan, budget_s: float) -> Tried:
        """Measure all variants, and the best one again if it helps. Of it, only the last trials count."""
        self._told(f"measuring {plan.what}")
        names = [variant.arm.name for variant in plan.variants]
        measured = self._measure(plan, names, budget_s)
        found = tuple(_change(plan, variant, measured) for variant in plan.variants)
        best = choose(found)
        if best is None:
            return Tried(plan.finding, "not tried", "There is no other way to send it.")
        if best.state != "cured":
            return Tried(plan.finding, state_of(found), best.reason, found, best.name)
        self._told(f"measuring the best of it again: {best.text.rstrip('. ')}")
        (variant,) = (variant for variant in plan.variants if variant.arm.name == best.name)
        again = _change(plan, variant, self._measure(plan, [best.name], budget_s))
        again = replace(again, runs=(*again.runs, *best.runs))
        found = tuple(again if change.name == best.name else change for change in found)
        reason = again.reason
        if again.state != "cured":
            reason = f"The gain was not confirmed when it was measured again: {reason}"
        return Tried(plan.finding, again.state, reason, found, again.name)

    def _measure(self, plan: VariantPlan, names: Sequence[str], budget_s: float) -> Measured:
        text = plan.experiment(self._conninfo, names, budget_s=budget_s)
        return measure_arms(
            self._root, text, self._conninfo, [plan.whole], plan.clients, self._told, times_known
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
    return Change(
        name=arm.name,
        kind=arm.kind,
        text=arm.text,
        sql=arm.sql,
        undo=arm.undo,
        state=state,
        reason=f"It could not be measured: {refused}." if skipped else reason,
        net=net,
        effects=effects,
        worst=worst,
        against=arm.against,
        runs=(measured.run,),
        assumed=variant.assumed,
        habit=variant.habit,
    )
