"""Prove on a copy what a client gains that keeps its connections, instead of opening one for each request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from uncork.experiment.cure.judge import judge
from uncork.experiment.cure.pooling import (
    Request,
    connecting_habit,
    net_of_requests,
    pool_arm,
    pooling_experiment,
    request_of,
    request_times,
    times_known,
)
from uncork.experiment.plan.skip_rules import SKIPPING
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.workload import CapturedWorkload
from uncork.model.results.cure import Change, Tried
from uncork.workbench.cure.trials import measure_arms

__all__ = ["PoolPlan", "PoolProver", "pool_plan"]

_NOTHING_TO_SEND: Final = "No statement was captured that can be sent again over another connection."


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A finding about connections that are opened too often, with what the server executes for each."""

    finding: Finding
    candidate: Candidate
    request: Request


def pool_plan(finding: Finding, workload: CapturedWorkload) -> tuple[PoolPlan | None, str]:
    """Return the plan to prove a finding by a variant of the captured workload, or the reason why not. Pure.

    Both are empty if the finding is not about connections.
    """
    candidate = connecting_habit(finding)
    if candidate is None:
        return None, ""
    request = request_of(workload, finding, candidate)
    return (None, _NOTHING_TO_SEND) if request is None else (PoolPlan(finding, candidate, request), "")


class PoolProver:
    """Measures requests over new and over kept connections, on copies of the database at `conninfo`."""

    def __init__(self, root: Path, conninfo: str, told: Callable[[str], None]) -> None:
        self._root, self._conninfo, self._told = root, conninfo, told

    def of_finding(self, plan: PoolPlan, budget_s: float) -> Tried:
        """Measure the change, and if it helps, measure it again for as long. Only the last trials count."""
        self._told("measuring requests over new and over kept connections")
        change = self._measured(plan, budget_s)
        if change.state != "cured":
            return Tried(plan.finding, change.state, change.reason, (change,), change.name)
        self._told("measuring requests over kept connections again")
        again = self._measured(plan, budget_s)
        again = replace(again, runs=(*again.runs, *change.runs))
        reason = again.reason
        if again.state != "cured":
            reason = f"The gain was not confirmed when it was measured again: {reason}"
        return Tried(plan.finding, again.state, reason, (again,), again.name)

    def _measured(self, plan: PoolPlan, budget_s: float) -> Change:
        request = plan.request
        arm, assumed = pool_arm(plan.candidate, request)
        text = pooling_experiment(plan.finding.headline, self._conninfo, request, arm, budget_s=budget_s)
        measured = measure_arms(
            self._root, text, self._conninfo, [request.whole], request.clients, self._told, times_known
        )
        effects = tuple(map(request_times, measured.effects.get(arm.name, ())))
        net = net_of_requests(effects[0], request) if effects else None
        refused = measured.refused.get(arm.name, "")
        skipped = refused.startswith(SKIPPING)
        state, reason, worst = judge(arm, effects, net, refused="" if skipped else refused)
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
            assumed=assumed,
            habit="connects",
        )
