"""Functions of a service by request, from stacks recorded while only that request was sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.analysis.stacks.result import samples_of
from uncork.model.results.service import RequestFunctions
from uncork.model.results.stacks import FrameFacts
from uncork.profile.stacks import beside, sum_frames

WHOLE_PROCESS: Final = "process "
"""How the frame of a whole process begins, with py-spy."""
_ASLEEP: Final = "off-cpu"
_WHOLE: Final = (WHOLE_PROCESS, "<module>")
"""How frames begin that every stack of a process or of a thread has."""
_MOSTLY: Final = 0.5
_FEWEST: Final = 5
"""Samples from which on functions are reported."""
_LINE: Final = r":\d+\)"
"""The line of a frame of py-spy: functions are added up over their lines."""


def functions_by_request(stacks: pa.Table) -> dict[str, RequestFunctions]:
    """Return the functions of each request; the column `route` of the stacks has its name.

    Requests with too few samples are left out: they hardly use the processor of the service.
    """
    units = dict(zip(stacks["measure"].to_pylist(), stacks["unit"].to_pylist(), strict=True))
    # A profile of Go has its samples both ways: as a count and as time.
    measures = sorted(units, key=lambda name: (name == _ASLEEP, units[name] != "nanoseconds"))
    if not measures or measures[0] == _ASLEEP:
        return {}
    stacks = stacks.filter(pc.equal(stacks["measure"], measures[0]))
    merged = pc.replace_substring_regex(stacks["stack"], _LINE, ")")
    stacks = stacks.set_column(stacks.schema.get_field_index("stack"), "stack", merged)
    found = {
        name: _functions(stacks.filter(pc.equal(stacks["route"], name)), units[measures[0]])
        for name in pc.unique(stacks["route"]).to_pylist()
        if name
    }
    return {name: one for name, one in found.items() if one is not None}


def _functions(stacks: pa.Table, unit: str) -> RequestFunctions | None:
    sums = sum_frames(beside(stacks, None))
    total = sums.total[0]
    samples = samples_of(total, unit)
    frames = [_frame(row, total) for row in sums.frames if not row["name"].startswith(_WHOLE)]
    if samples is None or samples < _FEWEST or not frames:
        return None
    mostly = [frame for frame in frames if frame.total >= _MOSTLY]
    depth = _depths(stacks["stack"].to_pylist())
    return RequestFunctions(
        hottest=max(frames, key=lambda frame: (frame.own, frame.name)),
        mostly=min(mostly, key=lambda one: (one.total, -depth.get(one.name, 0), one.name), default=None),
        samples=samples,
    )


def _depths(stacks: Sequence[str]) -> dict[str, int]:
    """Return how deep each frame is at most: callers often have the same time as what they call."""
    found: dict[str, int] = {}
    for stack in stacks:
        for place, name in enumerate(stack.split(";")):
            found[name] = max(place, found.get(name, 0))
    return found


def _frame(row: dict[str, Any], total: int) -> FrameFacts:
    return FrameFacts(row["name"], row["kernel"], row["own"] / total, row["total"] / total, None, None)
