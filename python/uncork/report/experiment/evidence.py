"""Why a variant differs: waits, processor time and system calls of its server per operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uncork.model.results.experiment import RunResult
from uncork.model.units import format_count, format_duration
from uncork.model.variant_evidence import EvidenceFacts
from uncork.report.blocks import Block, Bullets, Flame, Paragraph, Section, Table, Value
from uncork.report.cells import column, count_cell, duration_cell, header, number, table_if_any, table_of
from uncork.report.headline import uncapital
from uncork.report.quantity_words import duration_text
from uncork.report.words import cell_words

_HIGH = 1 / 3
"""Kernel share of processor time above which it is marked and reported."""
_NAMED = 0.2
"""Kernel share above which it is reported if stacks show its callers: see `report.experiment.kernel`."""


def evidence_words(result: RunResult) -> tuple[str, ...]:
    """Return the variant whose server spends the most processor time in the kernel, if notable, and why."""
    known = [evidence for evidence in result.evidence if evidence.system_share is not None]
    high = [
        evidence
        for evidence in known
        if evidence.findings or (evidence.entered and (evidence.system_share or 0.0) > _NAMED)
    ]
    if not high:
        return ()
    worst = max(high, key=lambda one: one.system_share or 0.0)
    share = f"{(worst.system_share or 0.0) * 100:.0f} %"
    named = f"the kernel takes {share} of the CPU: {'; '.join(worst.entered)}"
    finding = worst.findings[0] if worst.findings else named
    place = f"{worst.variant} on {worst.workload}"
    place += f" at {cell_words(worst.cell, result.factors)}" if worst.cell else ""
    return (f"{place}: {uncapital(finding.rstrip('.'))}.",)


def evidence_sections(result: RunResult, flames: Sequence[Flame] = ()) -> Iterator[Section]:
    """Yield the section on evidence; none if no evidence was gathered."""
    if not result.evidence:
        return
    blocks: list[Block] = [
        Paragraph(
            "After all timed trials, uncork ran each variant once more and sampled its sessions, processes "
            "and stacks. These numbers explain the effects; they are not part of them."
        ),
        _table(result),
    ]
    findings = [
        f"{evidence.variant} on {evidence.workload}: {text}"
        for evidence in result.evidence
        for text in evidence.findings
    ]
    if findings:
        blocks.append(Bullets(tuple(findings)))
    blocks += flames
    calls = _calls_table(result)
    if calls is not None:
        blocks.append(calls)
    missing = dict.fromkeys(
        f"Not available: {text}." for evidence in result.evidence for text in evidence.missing
    )
    if missing:
        blocks.append(Bullets(tuple(missing)))
    yield Section("evidence", "What the server did", tuple(blocks))


def _table(result: RunResult) -> Table:
    return table_of(
        "Server time per operation",
        result.evidence,
        header("workload", lambda evidence: evidence.workload),
        header("variant", lambda evidence: evidence.variant),
        number("user", lambda evidence: duration_text(evidence.user_ns)),
        number("kernel", lambda evidence: duration_text(evidence.system_ns)),
        number("kernel's share", lambda evidence: _kernel_share(evidence.system_share)),
        number("system calls", _calls),
        column("session time per operation", _waits),
    )


def _kernel_share(share: float | None) -> Value:
    if share is None:
        return Value("")
    return Value(f"{share * 100:.0f} %", tone="slower" if share > _HIGH else "plain")


def _calls(evidence: EvidenceFacts) -> str:
    return format_count(sum(call.operation_calls for call in evidence.calls)) if evidence.calls else ""


def _waits(evidence: EvidenceFacts) -> str:
    return ", ".join(f"{wait.name} {format_duration(wait.operation_ns)}" for wait in evidence.waits[:3])


def _calls_table(result: RunResult) -> Table | None:
    return table_if_any(
        "System calls per operation, counted in a separate load",
        [(evidence, call) for evidence in result.evidence for call in evidence.calls],
        header("workload", lambda counted: counted[0].workload),
        header("variant", lambda counted: counted[0].variant),
        column("system call", lambda counted: Value(counted[1].name, code=True)),
        number("calls per operation", lambda counted: count_cell(counted[1].operation_calls)),
        number("time per operation", lambda counted: duration_cell(counted[1].operation_ns)),
        sortable=True,
    )
