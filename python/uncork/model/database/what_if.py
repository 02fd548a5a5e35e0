"""What the planner would do with candidate indexes, asked on a copy without rows."""

from __future__ import annotations

from uncork.model.records import Record


class WhatIfPlan(Record):
    """The plan of a statement with a candidate: costs in the planner's units, and EXPLAIN's text.

    `before` is the cost without any candidate. `used` are the candidate's indexes in the plan.
    """

    template: int
    before: float
    after: float
    used: tuple[str, ...]
    plan: str


class CandidateUse(Record):
    """A candidate, and the statements that can be planned with it.

    `pages` is the estimated size of its indexes. `reason` says why it was not planned, if it was not.
    """

    sql: str
    pages: int
    plans: tuple[WhatIfPlan, ...]
    reason: str = ""

    @property
    def used(self) -> bool:
        """Whether any plan uses the candidate."""
        return any(plan.used for plan in self.plans)


class WhatIf(Record):
    """What the planner chose, by candidate.

    Without `candidates`, `reason` says why nothing was planned. `unplanned` maps statements that the copy
    does not plan to the server's reason. `missing` describes what the copy lacks, for the report.
    """

    candidates: tuple[CandidateUse, ...]
    reason: str = ""
    unplanned: tuple[tuple[int, str], ...] = ()
    missing: tuple[str, ...] = ()
