"""Gather from the stored run what may explain the gates of a guard with two sides."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa

from uncork.analysis.experiment.stored import stored_evidence
from uncork.analysis.runs.comparable_runs import differing
from uncork.analysis.stacks.result import of_measure
from uncork.model.results.experiment import COSTS, Cost, PlanFacts, RunResult
from uncork.model.results.guard import GuardResult, PlanDifference, SideDifference
from uncork.model.results.run_comparison import EnvironmentDifference
from uncork.model.variant_evidence import EvidenceFacts
from uncork.profile.plans.difference import plan_difference
from uncork.profile.stacks import beside, sum_frames

_MOST_FRAMES: Final = 20
"""Frames of a place that are kept: those whose share changed most."""
_SURE: Final = 3.0
"""Standard errors of the difference of two shares of samples; a smaller difference may be chance."""

_SERVER_OF: Final = "server of "
"""Begins the environment's section on another server, and names its variants."""

Place = tuple[tuple[tuple[str, str], ...], str]
_Measured = TypeVar("_Measured", Cost, EvidenceFacts)


def explained(
    guard: GuardResult, folder: Path, result: RunResult, sides: tuple[str, str] = ("baseline", "candidate")
) -> GuardResult:
    """Return the guard with what may explain its gates, from the run of both sides; `sides` are its variants.

    Plans cover all cells. Costs, waits, system calls and frames are listed by cell and workload.

    Raises:
        StoreError: if stored evidence is damaged.
    """
    before, after = ([plan for plan in result.plans if plan.variant == side] for side in sides)
    differing = plan_differences(before, after)
    return replace(
        guard,
        plans=differing,
        differences=(*_costs(result, sides), *_evidence(result, sides), *frame_differences(folder, sides)),
        settings=tuple(_settings(result, sides)),
    )


def frame_differences(folder: Path, sides: tuple[str, str]) -> tuple[SideDifference, ...]:
    """Return the frames whose own share of the server's processor time clearly changed, largest change first.

    Places in which only one side was seen are left out.

    Raises:
        StoreError: if stored evidence is damaged.
    """
    stacks: dict[tuple[Place, str], pa.Table] = {}
    for facts, tables in stored_evidence(folder):
        found, where = of_measure(tables["stacks"], "cpu"), facts["place"]
        if facts["method"]["tool"] == "perf" and len(found):
            stacks[(tuple(where["cell"].items()), where["workload"]), where["variant"]] = found
    return tuple(
        frame
        for place in dict.fromkeys(place for place, _ in stacks)
        if (place, sides[0]) in stacks and (place, sides[1]) in stacks
        for frame in _frames(place, stacks[place, sides[0]], stacks[place, sides[1]])
    )


def _frames(place: Place, before: pa.Table, after: pa.Table) -> Iterator[SideDifference]:
    sums = sum_frames(beside(after, before))
    now, then = max(1, sums.total[0]), max(1, sums.total[1])
    shares = [
        (row["own_before"] / then, row["own"] / now, f"{row['name']}{' (kernel)' if row['kernel'] else ''}")
        for row in sums.frames
    ]
    clear = [(old, new, name) for old, new, name in shares if _differ(old, new, then, now)]
    for old, new, name in sorted(clear, key=lambda one: -abs(one[1] - one[0]))[:_MOST_FRAMES]:
        yield SideDifference(*place, "frame", name, "share", old, new)


def _differ(old: float, new: float, then: int, now: int) -> bool:
    """Say whether two shares of samples differ by more than chance; one is added to each count."""
    variance = sum(
        (share + 1 / many) * (1 - share + 1 / many) / many for share, many in ((old, then), (new, now))
    )
    return abs(new - old) > _SURE * math.sqrt(variance)


def _pairs(
    found: Iterable[_Measured], sides: tuple[str, str]
) -> Iterator[tuple[Place, _Measured, _Measured]]:
    """Yield what was measured of both sides, by cell and workload."""
    known = {((item.cell, item.workload), item.variant): item for item in found}
    for place in dict.fromkeys(place for place, _ in known):
        before, after = known.get((place, sides[0])), known.get((place, sides[1]))
        if before is not None and after is not None:
            yield place, before, after


def _costs(result: RunResult, sides: tuple[str, str]) -> Iterator[SideDifference]:
    for place, old, new in _pairs(result.costs, sides):
        for item in COSTS:
            before, after = item.read(old), item.read(new)
            if before or after:
                yield SideDifference(*place, "cost", item.name, item.unit, before, after)


def _evidence(result: RunResult, sides: tuple[str, str]) -> Iterator[SideDifference]:
    for place, *both in _pairs(result.evidence, sides):
        old, new = ({wait.name: wait.operation_ns for wait in side.waits} for side in both)
        for name in dict.fromkeys((*new, *old)):
            yield SideDifference(*place, "wait", name, "ns", old.get(name, 0.0), new.get(name, 0.0))
        old, new = ({call.name: call.operation_calls for call in side.calls} for side in both)
        for name in dict.fromkeys((*new, *old)):
            yield SideDifference(*place, "call", name, "", old.get(name, 0.0), new.get(name, 0.0))


def _settings(result: RunResult, sides: tuple[str, str]) -> Iterator[EnvironmentDifference]:
    yield from differing("server", *(_server(result, side) for side in sides))
    variants = {variant.name: variant for variant in result.variants}
    one, other = variants.get(sides[0]), variants.get(sides[1])
    if one is not None and other is not None:
        yield from differing("setting", one.settings, other.settings)
        yield from differing("value", one.values, other.values)
        yield from differing("services", {"": "; ".join(one.services)}, {"": "; ".join(other.services)})


def _server(result: RunResult, side: str) -> Mapping[str, str]:
    for section, facts in result.environment.items():
        if section.startswith(_SERVER_OF) and side in section.removeprefix(_SERVER_OF).split(", "):
            return facts
    return result.environment.get("server", {})


# ---- how the plans of two sides differ ----


def plan_differences(
    before: Sequence[PlanFacts],
    after: Sequence[PlanFacts],
    names: tuple[str, str] = ("baseline", "candidate"),
) -> tuple[PlanDifference, ...]:
    """Return the statements whose plans differ between the sides, in the order of `after`.

    Statements are matched by cell, workload and name. `names` are the sides' names in the text of a
    changed plan.
    """
    known = {(plan.cell, plan.workload, plan.statement): plan for plan in before}
    differences = []
    for plan in after:
        earlier = known.get((plan.cell, plan.workload, plan.statement))
        if earlier is not None:
            found = plan_difference((earlier.shape, earlier.text), (plan.shape, plan.text), names)
            if found is not None:
                differences.append(PlanDifference(plan.cell, plan.workload, plan.statement, *found))
    return tuple(differences)
