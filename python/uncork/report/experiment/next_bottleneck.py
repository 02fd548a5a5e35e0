"""After a verdict: what limits the better variant now. Pure.

The evidence of each variant shows what the server's sessions did for one operation. The largest part of the
better variant's time is where the next change can gain most. The processor time of a loaded service counts as
one more part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.evidence import EvidenceFacts, WaitShare
from uncork.model.results.experiment import Comparison, RunResult
from uncork.model.units import format_duration
from uncork.model.verdict import Verdict
from uncork.report.blocks import Step
from uncork.report.words import cell_words

_CPU: Final = "CPU"
_IDLE: Final = "idle in transaction"
_REMEDIES: Final = {
    "Lock": "find who holds the locks (uncork profile db), and shorten those transactions",
    "IO": "read less (an index, fewer columns), or add memory",
    "LWLock": "run fewer sessions at once, or spread the data that they all touch",
    "Client": "fetch fewer rows, or send more statements before waiting for answers",
    _CPU: 'look at its plan in this report, and at its functions (evidence = ["stacks"] in the file)',
    _IDLE: "send fewer statements for each transaction",
}
"""What to do about the largest part, by the class of wait."""


def next_bottleneck_steps(result: RunResult) -> Iterator[Step]:
    """Yield a step for each workload with a faster variant: what takes most of that variant's time now."""
    for workload in dict.fromkeys(comparison.workload for comparison in result.comparisons):
        faster = [
            comparison
            for comparison in result.comparisons
            if comparison.workload == workload
            and comparison.verdict is Verdict.FASTER
            and comparison.ratio is not None
        ]
        better = next((one.better for one in result.workloads if one.name == workload), "lower")
        ranked = sorted(faster, key=lambda one: (one.ratio or 1.0) * (1 if better == "lower" else -1))
        for comparison in ranked:
            found = _evidence(result, comparison)
            if found is not None and found.waits:
                yield _step(result, comparison, found, found.waits[0])
                break


def _service_ns(result: RunResult, found: EvidenceFacts) -> float:
    """Return the processor time of the services for one operation of a variant; 0 if there are none."""
    place = (found.cell, found.workload, found.variant)
    costs = (cost for cost in result.costs if (cost.cell, cost.workload, cost.variant) == place)
    return sum((cost.service_user_ns or 0.0) + (cost.service_system_ns or 0.0) for cost in costs)


def _evidence(result: RunResult, comparison: Comparison) -> EvidenceFacts | None:
    """Return the evidence of a comparison's variant in its cell, else in any cell of the workload."""
    known = [
        one
        for one in result.evidence
        if one.workload == comparison.workload and one.variant == comparison.variant
    ]
    return next((one for one in known if one.cell == comparison.cell), known[0] if known else None)


def _step(result: RunResult, comparison: Comparison, found: EvidenceFacts, top: WaitShare) -> Step:
    where = f" at {cell_words(found.cell, result.factors)}" if found.cell else ""
    begin = f"With {comparison.variant} on {comparison.workload}{where}, the next bottleneck is"
    service_ns = _service_ns(result, found)
    if service_ns > top.operation_ns:
        return Step(
            f"{begin} computing in the service: {format_duration(service_ns)} of processor time for each "
            f"operation, more than any part of its sessions' time on the server. To go on, profile the "
            "functions of the service (uncork profile service)."
        )
    share = f"{top.share * 100:.0f} %"
    each = format_duration(top.operation_ns)
    what = "computing on the server" if top.name == _CPU else f"{top.name}"
    if top.name not in (_CPU, _IDLE):
        what = f"waiting ({top.name})"
    remedy = _REMEDIES.get(top.name.partition(":")[0], "look at the waits in this report")
    return Step(
        f"{begin} {what}: {each} of each operation, {share} of its sessions' time. To go on, {remedy}."
    )
