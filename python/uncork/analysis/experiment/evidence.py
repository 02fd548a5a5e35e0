"""Build each variant's evidence from what was stored under its load."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncork.analysis.experiment.stored import stored_evidence
from uncork.analysis.stacks.result import of_measure, stack_result
from uncork.diagnosis.stack_findings import entry_words
from uncork.model.results.experiment import RunResult
from uncork.model.results.stacks import StackResult, StackRunFacts
from uncork.model.tables.stacks import StackRow, SyscallRow
from uncork.model.variant_evidence import CallShare, EvidenceFacts, WaitShare
from uncork.store.rows import typed_rows

_MOST_WAITS: Final = 6
_MOST_CALLS: Final = 8
_MOST_ENTRIES: Final = 2
_RECEIVES: Final = frozenset({"recvfrom", "recvmsg"})
_SENDS: Final = ("sendto", "sendmsg")
_CLIENT: Final = "client backend"
_NOT_ASKED: Final = "stacks of code: not asked for"
_PART: Final = StackRunFacts("", "complete", "", 0, "", "", "")
"""Evidence is part of its experiment's run and has no run of its own."""


def evidence_facts(folder: Path) -> tuple[EvidenceFacts, ...]:
    """Return each variant's evidence; the newest if it was gathered more than once.

    Raises:
        StoreError: if files are damaged.
    """
    found = {}
    for facts, tables in stored_evidence(folder):
        one = _facts(facts, tables)
        found[one.cell, one.workload, one.variant] = one
    return tuple(found.values())


def _facts(facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> EvidenceFacts:
    told = stack_result(_PART, {**facts, "against": "", "trouble": ""}, tables, None)
    watched = facts["method"]["watched_ns"]
    rate = facts["load"]["operations"] / max(1, facts["load"]["elapsed_ns"])
    operations = rate * watched
    user, system = told.user_ns, told.system_ns
    known = user is not None and system is not None and operations > 0
    both = (user or 0) + (system or 0)
    return EvidenceFacts(
        cell=tuple(facts["place"]["cell"].items()),
        workload=facts["place"]["workload"],
        variant=facts["place"]["variant"],
        operations=facts["load"]["operations"],
        elapsed_ns=facts["load"]["elapsed_ns"],
        user_ns=(user or 0) / operations if known else None,
        system_ns=(system or 0) / operations if known else None,
        system_share=(system or 0) / both if known and both else None,
        waits=tuple(_waits(tables["stacks"], operations, watched)),
        calls=tuple(_calls(facts, tables["stack_syscalls"])),
        stacks=facts["method"]["samples"],
        entered=_entered(told),
        findings=tuple(finding.text for finding in told.findings),
        missing=tuple(one for one in facts["method"]["cannot_see"] if one != _NOT_ASKED),
    )


def _entered(told: StackResult) -> tuple[str, ...]:
    cpu = next((measure for measure in told.measures if measure.name == "cpu"), None)
    if cpu is None:
        return ()
    return tuple(entry_words(cpu, [entry for entry in cpu.entries[:_MOST_ENTRIES] if entry.user]))


def _waits(stacks: pa.Table, operations: float, watched_ns: int) -> Iterator[WaitShare]:
    """Yield what sessions did: each sample stands for an equal part of the time."""
    seen: Counter[str] = Counter()
    for row in typed_rows(of_measure(stacks, "sessions"), StackRow):
        if row.backend == _CLIENT:
            parts = row.stack.split(";")
            place = 1 + bool(row.application)
            seen[parts[place] if len(parts) > place else "CPU"] += row.value
    samples = sum(seen.values())
    looks = max(1.0, watched_ns / 50e6)
    for name, many in seen.most_common(_MOST_WAITS):
        if operations:
            yield WaitShare(name, many / looks * watched_ns / operations, many / samples)


def _calls(facts: Mapping[str, Any], table: pa.Table) -> Iterator[CallShare]:
    """Yield the system calls of an operation, in processes that talk to a client."""
    rows = typed_rows(table, SyscallRow)
    answering = {row.pid for row in rows if row.syscall in _RECEIVES}
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        if row.pid in answering:
            sums[row.syscall][0] += row.calls
            sums[row.syscall][1] += row.time_ns
    # Traced processes are slow, so operations are counted in the trace itself: by answers sent.
    operations = sum(sums[name][0] for name in _SENDS if name in sums) / max(1, facts.get("answers", 1))
    if not facts.get("answers", 1):  # only the load counts requests, and it ran a little longer
        traced = facts["syscalls"]
        operations = traced["operations"] * min(1.0, traced["watched_ns"] / max(1, traced["elapsed_ns"]))
    ranked = sorted(sums.items(), key=lambda item: -item[1][0])
    for name, (calls, time_ns) in ranked[:_MOST_CALLS]:
        if operations:
            yield CallShare(name, calls / operations, time_ns / operations)


def best_variant(result: RunResult, workload: str, seen: Container[str]) -> str | None:
    """Return the variant of `seen` with the best effect, in the workload's last cell if it has one there."""
    known = [
        comparison
        for comparison in result.comparisons
        if comparison.workload == workload and comparison.variant in seen and comparison.ratio is not None
    ]
    last = [comparison.cell for comparison in result.comparisons if comparison.workload == workload][-1:]
    ranked = [
        (comparison.ratio, comparison.variant)
        for comparison in [comparison for comparison in known if comparison.cell in last] or known
    ]
    better = next((one.better for one in result.workloads if one.name == workload), "lower")
    return (min if better == "lower" else max)(ranked)[1] if ranked else None
