"""How the plans of two sides differ: another plan, or only other statistics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uncork.model.results.experiment import PlanFacts
from uncork.model.results.guard import PlanDifference
from uncork.profile.plans.difference import plan_difference


def plan_differences(
    before: Sequence[PlanFacts],
    after: Sequence[PlanFacts],
    names: tuple[str, str] = ("baseline", "candidate"),
) -> tuple[PlanDifference, ...]:
    """Return the statements whose plans differ between the sides, in the order of `after`.

    Statements are matched by cell, workload and name. `names` are the sides' names in the text of a changed
    plan.
    """
    return tuple(_differences(before, after, names))


def _differences(
    before: Sequence[PlanFacts], after: Sequence[PlanFacts], names: tuple[str, str]
) -> Iterator[PlanDifference]:
    known = {(plan.cell, plan.workload, plan.statement): plan for plan in before}
    for plan in after:
        earlier = known.get((plan.cell, plan.workload, plan.statement))
        if earlier is None:
            continue
        found = plan_difference((earlier.shape, earlier.text), (plan.shape, plan.text), names)
        if found is not None:
            yield PlanDifference(plan.cell, plan.workload, plan.statement, *found)
