"""Read profiles of any tool as folded stacks, sum up their frames, and write them for other tools."""

from __future__ import annotations

import json
from typing import Any, Literal

import pyarrow as pa

from uncork import _native
from uncork.errors import UsageError
from uncork.model.records import Record
from uncork.model.results.stacks import ProfileFormat


class Imported(Record):
    """An imported profile: `stacks` has measure, pid, process, route, time_ns, stack and value.

    `measures` are pairs of name and unit; `default` is the index of the profile's main measure.
    """

    format: ProfileFormat
    measures: tuple[tuple[str, str], ...]
    default: int
    stacks: pa.Table


class FrameSums(Record):
    """The sums of stacks: the total, the time in the kernel, frames, and entries into the kernel.

    `frames` have name, kernel, own, total, own_before and total_before. `entries` have user, caller, kernel
    and value, the largest first. Pairs are (now, before).
    """

    total: tuple[int, int]
    kernel: tuple[int, int]
    frames: tuple[dict[str, Any], ...]
    entries: tuple[dict[str, Any], ...]


def read_profile(
    data: bytes, name: str, *, format: ProfileFormat | None = None, times: bool = False
) -> Imported:
    """Read a profile; `name` is its name in errors. `times` keeps the samples of perf script separate.

    Raises:
        UsageError: if it is not a profile, or damaged; the message has the line or the byte.
    """
    try:
        facts, stacks = _native.read_stacks(data, format, times)
    except ValueError as error:
        line, _, problem = str(error).removeprefix("line ").partition(": ")
        place = f"{name}:{line}: {problem}" if str(error).startswith("line ") else f"{name}: {error}"
        raise UsageError(place) from error
    read = json.loads(facts)
    measures = tuple((measure["name"], measure["unit"]) for measure in read["measures"])
    return Imported(read["format"], measures, read["default"], pa.table(stacks))


def beside(now: pa.Table, before: pa.Table | None) -> pa.Table:
    """Return stacks with their values now and before; without `before`, only now."""
    now = now.select(["stack", "value"])
    if before is None:
        return now
    zeros = pa.array([0] * len(before), pa.int64())
    later = now.append_column("before", pa.array([0] * len(now), pa.int64()))
    earlier = pa.table({"stack": before["stack"], "value": zeros, "before": before["value"]})
    return pa.concat_tables([later, earlier.cast(later.schema)])


def sum_frames(stacks: pa.Table) -> FrameSums:
    """Add up the frames of stacks, as `beside` returns them."""
    totals, frames, entries = _native.sum_stacks(stacks)
    sums = json.loads(totals)
    return FrameSums(
        tuple(sums["total"]),
        tuple(sums["kernel"]),
        tuple(pa.table(frames).to_pylist()),
        tuple(pa.table(entries).to_pylist()),
    )


def write_profile(
    stacks: pa.Table, format: Literal["folded", "speedscope", "pprof"], *, name: str, measure: str, unit: str
) -> bytes:
    """Return stacks in another tool's format."""
    return _native.write_stacks(stacks.select(["stack", "value"]), format, name, measure, unit)
