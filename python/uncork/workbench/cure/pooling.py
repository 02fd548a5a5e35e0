"""Plan to prove on a copy what a client gains that keeps its connections. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from uncork.experiment.cure.operations import effect_of_times
from uncork.experiment.cure.pooling import (
    Request,
    connecting_habit,
    net_of_requests,
    pool_arm,
    pooling_experiment,
    request_of,
)
from uncork.model.database.finding import Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import Net, StatementEffect
from uncork.workbench.cure.variants import Variant

_NOTHING_TO_SEND: Final = "No statement was captured that can be sent again over another connection."


@dataclass(frozen=True, slots=True)
class PoolPlan:
    """A finding about connections that are opened too often, with what the server executes for each."""

    finding: Finding
    candidate: Candidate
    request: Request

    @property
    def what(self) -> str:
        """What is measured."""
        return "requests over new and over kept connections"

    @property
    def whole(self) -> CapturedStatement:
        """The request as a statement."""
        return self.request.whole

    @property
    def clients(self) -> int:
        """How many sessions send requests at once."""
        return self.request.clients

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The pool."""
        arm, assumed = pool_arm(self.candidate, self.request)
        return (Variant(arm, "connects", assumed),)

    def experiment(self, copy_dsn: str, _names: Sequence[str], *, budget_s: float) -> str:
        """Return the experiment that compares new connections with kept ones."""
        (pool,) = self.variants
        return pooling_experiment(self.finding.headline, copy_dsn, self.request, pool.arm, budget_s=budget_s)

    def effect(self, _name: str, rate: StatementEffect) -> StatementEffect:
        """Return the effect on the time of a request."""
        return effect_of_times(rate)

    def net(self, effect: StatementEffect) -> Net | None:
        """Return the sessions' time that kept connections save per hour."""
        return net_of_requests(effect, self.request)

    def doubt(self, _effect: StatementEffect) -> str:
        """Return nothing: what connecting costs does not depend on values."""
        return ""


def pool_plan(finding: Finding, workload: CapturedWorkload) -> tuple[PoolPlan | None, str]:
    """Return the plan to prove a finding by a variant of the captured workload, or the reason why not. Pure.

    Both are empty if the finding is not about connections.
    """
    candidate = connecting_habit(finding)
    if candidate is None:
        return None, ""
    request = request_of(workload, finding, candidate)
    return (None, _NOTHING_TO_SEND) if request is None else (PoolPlan(finding, candidate, request), "")
