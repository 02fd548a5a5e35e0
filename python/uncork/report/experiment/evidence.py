"""Why a variant differs: waits, processor time and system calls of its server per operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uncork.model.results.experiment import RunResult
from uncork.model.units import format_count, format_duration
from uncork.model.variant_evidence import EvidenceFacts
from uncork.report.blocks import Block, Bullets, Column, Flame, Paragraph, Section, Table, Value
from uncork.report.headline import uncapital
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
    calls = _calls(result)
    if calls is not None:
        blocks.append(calls)
    missing = dict.fromkeys(
        f"Not available: {text}." for evidence in result.evidence for text in evidence.missing
    )
    if missing:
        blocks.append(Bullets(tuple(missing)))
    yield Section("evidence", "What the server did", tuple(blocks))


def _table(result: RunResult) -> Table:
    columns = (
        *(Column(name, header=True) for name in ("workload", "variant")),
        *(Column(name, number=True) for name in ("user", "kernel", "kernel's share", "system calls")),
        Column("session time per operation"),
    )
    return Table("Server time per operation", columns, tuple(_row(evidence) for evidence in result.evidence))


def _row(evidence: EvidenceFacts) -> tuple[Value, ...]:
    times = (
        "" if value is None else format_duration(value) for value in (evidence.user_ns, evidence.system_ns)
    )
    share = evidence.system_share
    calls = sum(call.operation_calls for call in evidence.calls)
    waits = ", ".join(f"{wait.name} {format_duration(wait.operation_ns)}" for wait in evidence.waits[:3])
    return (
        Value(evidence.workload),
        Value(evidence.variant),
        *(Value(text) for text in times),
        Value(
            "" if share is None else f"{share * 100:.0f} %",
            tone="slower" if (share or 0) > _HIGH else "plain",
        ),
        Value(format_count(calls) if evidence.calls else ""),
        Value(waits),
    )


def _calls(result: RunResult) -> Table | None:
    rows = tuple(
        (
            Value(evidence.workload),
            Value(evidence.variant),
            Value(call.name, code=True),
            Value(format_count(call.operation_calls), sort=call.operation_calls),
            Value(format_duration(call.operation_ns), sort=call.operation_ns),
        )
        for evidence in result.evidence
        for call in evidence.calls
    )
    if not rows:
        return None
    names = ("workload", "variant", "system call")
    columns = (
        *(Column(name, header=name != "system call") for name in names),
        Column("calls per operation", number=True),
        Column("time per operation", number=True),
    )
    return Table("System calls per operation, counted in a separate load", columns, rows, sortable=True)
