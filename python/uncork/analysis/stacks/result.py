"""Build the result of stored stacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.diagnosis.stack_findings import find_system_time
from uncork.errors import StoreError, UncorkError
from uncork.model.records import build_from
from uncork.model.results.stacks import (
    LEAST_SAMPLES,
    EntryFacts,
    FrameFacts,
    LabelShare,
    MeasureFacts,
    MethodFacts,
    ProcessFacts,
    RouteFrames,
    StackResult,
    StackRunFacts,
    SyscallFacts,
)
from uncork.model.tables.stacks import STACK_TABLES, StackProcessRow, SyscallRow
from uncork.profile.stacks import FrameSums, beside, sum_frames
from uncork.store.layout import Manifest, find_run, read_manifest
from uncork.store.tables import read_evidence, typed_rows

MOST_FRAMES: Final = 200
"""The most frames that a report lists, by own share and by total share each."""
_MOST_ENTRIES: Final = 20
_MOST_LABELS: Final = 50
_MOST_ROUTE_FRAMES: Final = 10
_MOST_CALLS: Final = 200
_SAMPLE_NS: Final = 10_000_000
_ASLEEP: Final = "off-cpu"
_SAMPLED: Final = frozenset({"cpu", "samples", "sessions", "wall"})
"""Names of measures that are samples of time; others count objects, bytes or waits."""
_KERNEL_MEASURE: Final = "cpu"


def stack_result(
    run: StackRunFacts, facts: Mapping[str, Any], tables: Mapping[str, pa.Table], before: pa.Table | None
) -> StackResult:
    """Build the result of stacks from the facts and tables stored of them, and from the stacks before."""
    method = facts["method"]
    cpu = facts["cpu_ns"] or (None, None)
    measures = []
    for name, unit in facts["measures"]:
        stacks = of_measure(tables["stacks"], name)
        earlier = None if before is None else of_measure(before, name)
        if len(stacks):
            measures.append(
                _measure(
                    name,
                    unit,
                    stacks,
                    earlier if earlier is not None and len(earlier) else None,
                    is_measured=method["tool"] == "/proc" and name == _KERNEL_MEASURE,
                )
            )
    warnings = []
    if before is not None and not any(measure.changes for measure in measures):
        warnings.append(
            f"{facts['against']} has no measure in common with this run, so nothing can be compared."
        )
    if run.status == "interrupted":
        warnings.append("Recording was interrupted: the profile covers only the time until then.")
    if facts["trouble"]:
        warnings.append(f"{facts['trouble'][0].upper()}{facts['trouble'][1:]}.")
    result = StackResult(
        run=run,
        answer="",
        reasons=(),
        warnings=tuple(warnings),
        findings=(),
        method=MethodFacts(**{**method, "cannot_see": tuple(method["cannot_see"])}),
        user_ns=cpu[0],
        system_ns=cpu[1],
        measures=tuple(measures),
        processes=tuple(
            build_from(ProcessFacts, row)
            for row in sorted(
                typed_rows(tables["stack_processes"], StackProcessRow),
                key=lambda row: -(row.user_ns + row.system_ns),
            )
        ),
        syscalls=_syscalls(typed_rows(tables["stack_syscalls"], SyscallRow)),
        syscalls_by=facts["syscalls"]["by"],
        syscalls_ns=facts["syscalls"]["watched_ns"],
        against=facts["against"],
    )
    few = any(
        measure.samples is not None and measure.samples < LEAST_SAMPLES for measure in result.measures[:1]
    )
    return result if few else replace(result, findings=find_system_time(result))


def of_measure(stacks: pa.Table, name: str) -> pa.Table:
    """Return the stacks of one measure."""
    return stacks.filter(pc.equal(stacks["measure"], name))


def _measure(
    name: str, unit: str, stacks: pa.Table, before: pa.Table | None, *, is_measured: bool = False
) -> MeasureFacts:
    """Return a measure; with `is_measured`, the kernel counted its time, and nothing was sampled."""
    profile, _, kind = name.rpartition(": ")
    is_sampled = kind.lower() in _SAMPLED and not is_measured
    sums = sum_frames(beside(stacks, before))
    total = max(1, sums.total[0])
    frames = [_frame(row, sums, compared=before is not None) for row in sums.frames]
    seen = [frame for frame in frames if frame.total]
    by_own = sorted(seen, key=lambda one: (-one.own, -one.total, one.name))[:MOST_FRAMES]
    by_total = sorted(seen, key=lambda one: (-one.total, -one.own, one.name))[:MOST_FRAMES]
    told = list(dict.fromkeys([*by_own, *by_total]))
    changes = sorted(frames, key=lambda frame: (-abs(frame.own - (frame.own_before or 0.0)), frame.name))
    kernel = sums.kernel[0] / total if sums.kernel[0] or name == _KERNEL_MEASURE else None
    return MeasureFacts(
        name=name,
        unit=unit,
        total=sums.total[0],
        stacks=len(stacks),
        kernel=kernel,
        frames=tuple(told),
        frames_more=len(seen) - len(told),
        entries=tuple(
            EntryFacts(row["user"], row["caller"], row["kernel"], row["value"] / total)
            for row in sums.entries[:_MOST_ENTRIES]
        ),
        changes=tuple(changes[:MOST_FRAMES]) if before is not None else (),
        processes=_labels(stacks, "process", total),
        applications=_labels(stacks, "application", total),
        templates=_labels(stacks, "template", total),
        routes=_routes(stacks, total, unit if name != _ASLEEP else ""),
        samples=samples_of(sums.total[0], unit) if is_sampled else None,
        imported_from=profile,
    )


def _frame(row: Mapping[str, Any], sums: FrameSums, *, compared: bool) -> FrameFacts:
    total, before = max(1, sums.total[0]), max(1, sums.total[1])
    return FrameFacts(
        name=row["name"],
        kernel=row["kernel"],
        own=row["own"] / total,
        total=row["total"] / total,
        own_before=row["own_before"] / before if compared else None,
        total_before=row["total_before"] / before if compared else None,
    )


def _labels(stacks: pa.Table, column: str, total: int) -> tuple[LabelShare, ...]:
    """Return shares by the values of a column; empty if it has none."""
    sums = stacks.group_by([column]).aggregate([("value", "sum")]).to_pylist()
    found = [LabelShare(row[column] or "", row["value_sum"] / total) for row in sums]
    if not any(share.name for share in found):
        return ()
    return tuple(sorted(found, key=lambda one: (-one.share, one.name))[:_MOST_LABELS])


def _routes(stacks: pa.Table, total: int, unit: str) -> tuple[RouteFrames, ...]:
    """Return the hottest frames of each route; empty if stacks have no labels of routes."""
    names = pc.fill_null(stacks["route"], "")
    found = []
    for name in dict.fromkeys(label.name for label in _labels(stacks, "route", total)):
        sums = sum_frames(beside(stacks.filter(pc.equal(names, name)), None))
        frames = sorted(sums.frames, key=lambda row: (-row["own"], -row["total"], row["name"]))
        hottest = tuple(_frame(row, sums, compared=False) for row in frames[:_MOST_ROUTE_FRAMES])
        samples = samples_of(sums.total[0], unit)
        found.append(RouteFrames(name, sums.total[0] / total, hottest, samples))
    return tuple(found)


def samples_of(total: int, unit: str) -> int | None:
    """Return how many samples an amount stands for, with 10 ms each for times; None if it is no time."""
    if unit in ("samples", "count"):
        return total
    return round(total / _SAMPLE_NS) if unit in ("nanoseconds", "ns") else None


def _syscalls(rows: Sequence[SyscallRow]) -> tuple[SyscallFacts, ...]:
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in rows:
        found = sums[row.syscall, row.template or row.process]
        for place, amount in enumerate((row.calls, row.errors, row.time_ns)):
            found[place] += amount
    calls = [SyscallFacts(call, process, *figures) for (call, process), figures in sums.items()]
    return tuple(sorted(calls, key=lambda call: (-call.time_ns, -call.calls, call.syscall))[:_MOST_CALLS])


@dataclass(frozen=True, slots=True)
class StackRun:
    """A profile of stacks: its run, its result, its stacks and those compared with.

    `trouble` says why recording broke off, if it did.
    """

    folder: Path
    result: StackResult
    stacks: pa.Table
    before: pa.Table | None
    trouble: str


def stored_stacks(folder: Path, *, against: str = "") -> StackRun:
    """Build the result of a stored profile of stacks, compared as stored or with the run `against`.

    Raises:
        StoreError: if its files are damaged.
    """
    facts, tables = read_evidence(folder, STACK_TABLES)
    wanted = against or facts["against"]
    before = None
    try:
        if wanted:
            name, before = stacks_of(folder.parent, wanted)
            facts = {**facts, "against": name}
    except UncorkError:
        if against:
            raise
    result = stack_result(stack_run_facts(read_manifest(folder)), facts, tables, before)
    return StackRun(folder, result, tables["stacks"], before, "")


def stacks_of(root: Path, name: str) -> tuple[str, pa.Table]:
    """Return the id and the stacks of a stored profile. Raises StoreError if the run is of another kind."""
    folder = find_run(root, name)
    kind = read_manifest(folder).kind
    if kind != "cpu":
        raise StoreError(
            f"run {folder.name} is of kind {kind}, and stacks can only be compared with a run of kind cpu"
        )
    _, tables = read_evidence(folder, STACK_TABLES)
    return folder.name, tables["stacks"]


def stack_run_facts(manifest: Manifest) -> StackRunFacts:
    """Return which run it is, and how it went."""
    options: Mapping[str, Any] = manifest.options
    return build_from(
        StackRunFacts,
        manifest,
        elapsed_ns=sum(attempt.elapsed_ns for attempt in manifest.attempts),
        target=manifest.server,
        reproduce=str(options.get("command", "uncork profile cpu")),
    )
