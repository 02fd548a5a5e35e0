"""Why a variant differs: what its server waited for, computed, and asked the kernel for, an operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from uncork.model.evidence import EvidenceFacts
from uncork.model.results.experiment import RunResult
from uncork.model.trial import Cell
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Block, Bullets, Column, Flame, Paragraph, Section, Table, Value

__all__ = ["evidence_sections", "evidence_words"]

_HIGH = 1 / 3
"""The kernel's share of processor time from which on it is marked, and told whoever asks for it."""
_NAMED = 0.2
"""From which on it is told where stacks name who asks for it: see `uncork.report.experiment.kernel`."""


def evidence_words(result: RunResult) -> tuple[str, ...]:
    """Name the variant whose server spends most of its processor time in the kernel, if much, and on what."""
    known = [one for one in result.evidence if one.system_share is not None]
    high = [one for one in known if one.findings or (one.entered and (one.system_share or 0.0) > _NAMED)]
    if not high:
        return ()
    worst = max(high, key=lambda one: one.system_share or 0.0)
    share = f"{(worst.system_share or 0.0) * 100:.0f} %"
    named = f"the kernel takes {share} of the CPU: {'; '.join(worst.entered)}"
    told = worst.findings[0] if worst.findings else named
    place = f"{worst.variant} on {worst.workload}{Cell(worst.cell).at}"
    return (f"{place}: {told[:1].lower()}{told[1:].rstrip('.')}",)


def evidence_sections(result: RunResult, flames: Sequence[Flame] = ()) -> Iterator[Section]:
    """Yield the section on evidence; none where nothing was gathered."""
    if not result.evidence:
        return
    blocks: list[Block] = [
        Paragraph(
            "Each variant once more, after all that was timed, while its sessions, processes and stacks were "
            "looked at: figures here explain the effects, and are none themselves."
        ),
        _table(result),
    ]
    findings = [
        f"{one.variant} on {one.workload}: {text}" for one in result.evidence for text in one.findings
    ]
    if findings:
        blocks.append(Bullets(tuple(findings)))
    blocks += flames
    calls = _calls(result)
    if calls is not None:
        blocks.append(calls)
    lacks = dict.fromkeys(f"Not seen: {text}." for one in result.evidence for text in one.lacks)
    if lacks:
        blocks.append(Bullets(tuple(lacks)))
    yield Section("evidence", "What the server did meanwhile", tuple(blocks))


def _table(result: RunResult) -> Table:
    columns = (
        *(Column(name, header=True) for name in ("workload", "variant")),
        *(Column(name, number=True) for name in ("user", "kernel", "kernel's share", "system calls")),
        Column("sessions' time an operation"),
    )
    return Table(
        "What an operation takes of the server", columns, tuple(_row(one) for one in result.evidence)
    )


def _row(one: EvidenceFacts) -> tuple[Value, ...]:
    times = ("" if value is None else format_duration(value) for value in (one.user_ns, one.system_ns))
    share = one.system_share
    calls = sum(call.operation_calls for call in one.calls)
    waits = ", ".join(f"{wait.name} {format_duration(wait.operation_ns)}" for wait in one.waits[:3])
    return (
        Value(one.workload),
        Value(one.variant),
        *(Value(text) for text in times),
        Value(
            "" if share is None else f"{share * 100:.0f} %",
            tone="slower" if (share or 0) > _HIGH else "plain",
        ),
        Value(format_count(calls) if one.calls else ""),
        Value(waits),
    )


def _calls(result: RunResult) -> Table | None:
    rows = tuple(
        (
            Value(one.workload),
            Value(one.variant),
            Value(call.name, code=True),
            Value(format_count(call.operation_calls), sort=call.operation_calls),
            Value(format_duration(call.operation_ns), sort=call.operation_ns),
        )
        for one in result.evidence
        for call in one.calls
    )
    if not rows:
        return None
    names = ("workload", "variant", "system call")
    columns = (
        *(Column(name, header=name != "system call") for name in names),
        Column("calls an operation", number=True),
        Column("time in them", number=True),
    )
    return Table("System calls an operation, counted in a load of its own", columns, rows, sortable=True)
