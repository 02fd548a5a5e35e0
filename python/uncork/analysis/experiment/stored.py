"""Read trials, the evidence of variants and own metrics back from a stored run."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from uncork.analysis.stacks.result import of_measure, stack_result
from uncork.diagnosis.stack_findings import entry_words
from uncork.experiment.plan.order import cells
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.spec.schema import Spec
from uncork.model.measurement import Outcome
from uncork.model.results.experiment import OwnMetricFacts, RunResult
from uncork.model.results.stacks import StackResult, StackRunFacts
from uncork.model.tables.stacks import STACK_TABLES, StackRow, SyscallRow
from uncork.model.trial import Arm, Cell, Trial
from uncork.model.variant_evidence import CallShare, EvidenceFacts, WaitShare
from uncork.store.query import RunReader
from uncork.store.run_documents import hosts_and_waves
from uncork.store.tables import read_evidence, typed_rows


def stored_ledger(reader: RunReader, spec: Spec) -> Ledger:
    """Return a ledger with every trial of a stored run; refusals are not included.

    Raises:
        StoreError: if the run's files are damaged.
    """
    hosts, waves = hosts_and_waves(reader.folder)
    ledger = Ledger(spec, "block" if reader.manifest.unit == "block" else "round", hosts, waves)
    known = {cell.name: cell for cell in cells(spec)}
    for row in reader.values():
        arm = Arm(row.variant, row.again)
        trial = Trial(row.round, row.block, row.position, known[row.cell], row.workload, arm)
        ledger.add_value(trial, row.value, row.succeeded, row.started, long_slices=row.long_slices)
    return ledger


def judged_ledger(reader: RunReader, spec: Spec) -> Ledger:
    """Return a ledger with every trial and refusal of a stored run.

    Raises:
        StoreError: if the run's files are damaged.
    """
    ledger = stored_ledger(reader, spec)
    known = {cell.name: cell for cell in cells(spec)}
    for row in reader.refusals():
        ledger.refused[known[row.cell], row.workload, row.variant] = row.reason
    return ledger


# ---- the evidence of variants ----


EVIDENCE_FOLDER: Final = "evidence"
"""The folder of evidence within a run."""


def stored_evidence(folder: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the facts and tables of each variant's evidence, the later ones of a place last.

    Raises:
        StoreError: if files are damaged.
    """
    for path in sorted((folder / EVIDENCE_FOLDER).glob("*/facts.json")):
        yield read_evidence(path.parent, STACK_TABLES)


def processor_stacks(folder: Path) -> Iterator[tuple[tuple[str, str], pa.Table]]:
    """Yield the sampled stacks of processor time of each workload and variant that has some.

    Raises:
        StoreError: if files are damaged.
    """
    for facts, tables in stored_evidence(folder):
        found = of_measure(tables["stacks"], "cpu")
        if facts["method"]["tool"] == "perf" and len(found):
            yield (facts["place"]["workload"], facts["place"]["variant"]), found


# ---- the metrics of an experiment file over the trials of each variant ----


Key = tuple[str, str, str, str]
_NOTHING: Final = "{}"


def own_metric_facts(reader: RunReader, spec: Spec, known: Mapping[str, Cell]) -> list[OwnMetricFacts]:
    """Return each metric of the file, by workload, cell and variant; an empty list if the file has none.

    Only complete trials count, those of the baseline's second arm too.

    Raises:
        StoreError: if the run's files are damaged.
    """
    if not spec.metrics:
        return []
    values: dict[Key, list[float]] = {}
    for row in reader.trials():
        if row["outcome"] != Outcome.COMPLETE:
            continue
        for name, value in json.loads(row["own"] or _NOTHING).items():
            if value is not None:
                values.setdefault((name, row["workload"], row["cell"], row["variant"]), []).append(value)
    order = list(spec.variants)
    ordered = sorted(values.items(), key=lambda item: (*item[0][:3], order.index(item[0][3])))
    return [
        OwnMetricFacts(
            name=name,
            workload=workload,
            cell=known[cell].levels,
            variant=variant,
            better=spec.metrics[name].better,
            mean=math.fsum(found) / len(found),
            least=min(found),
            most=max(found),
            trials=len(found),
        )
        for (name, workload, cell, variant), found in ordered
    ]


# ---- each variant's evidence, from what was stored under its load ----


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
        one = _evidence_facts(facts, tables)
        found[one.cell, one.workload, one.variant] = one
    return tuple(found.values())


def _evidence_facts(facts: Mapping[str, Any], tables: Mapping[str, pa.Table]) -> EvidenceFacts:
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
