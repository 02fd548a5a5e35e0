"""The sentences of a report on stacks: the answer, the findings that support it, the kernel's share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork.model.results.stacks import LEAST_SAMPLES, FrameFacts, MeasureFacts, StackResult
from uncork.model.template_words import short_template
from uncork.model.units import (
    count_words,
    format_bytes,
    format_count,
    format_duration,
    series_words,
    share_text,
)
from uncork.report.headline import capital, headline_template, join_sentences

_GO_TYPES: Final = re.compile(r"\[go\.shape\..*\]")
_HALF: Final = 0.5
_TOLD: Final = 3
_LEAST: Final = 0.05
_IDLE: Final = 0.01
"""Processors used on average, below which processes are nearly idle."""
_FEW: Final = 50
"""Samples below which the frames of nearly idle processes say nothing, and shares are not percentages."""
_ALL: Final = 0.95
_LITTLE: Final = 0.01
"""Share of its own up to which a function with nearly all of the total only calls what works: a main loop."""
_BEGINNINGS: Final = re.compile(
    r"_?start|(__)?clone3?|start_thread|__libc_start\w*|main|real_main|PostmasterMain|ServerLoop|BackendStartup|"
    r"BackendMain|postmaster_child_launch|PostgresMain|(runtime\.)?(goexit|main|mstart\d?)(\.abi0)?|"
    r"(java\.lang\.)?Thread\.run|thread_start|_bootstrap(_inner)?|<module>|BaseThreadInitThunk"
)
"""Functions in which processes and threads begin: all of their time is below them."""


def shown_measure(result: StackResult) -> MeasureFacts | None:
    """Return the measure that the answer describes: processor time if there is any, else the first."""
    named = next((measure for measure in result.measures if measure.name == "cpu"), None)
    return named or (result.measures[0] if result.measures else None)


def measure_words(measure: MeasureFacts) -> str:
    """Return the name of a measure within a sentence."""
    known = {
        "cpu": "the CPU",
        "off-cpu": "the time asleep",
        "sessions": "the sessions' time",
        "samples": "the samples",
    }
    if measure.imported_from:
        name = measure.name.removeprefix(f"{measure.imported_from}: ")
        return f"{known.get(name, name)} in {measure.imported_from}"
    return known.get(measure.name, measure.name)


def amount_text(value: float, unit: str) -> str:
    """Format an amount of a measure with its unit."""
    if unit in ("nanoseconds", "ns"):
        return format_duration(value)
    if unit in ("bytes", "byte"):
        return format_bytes(value)
    return f"{format_count(round(value))} {unit}"


def sampled_share(share: float, samples: int | None) -> str:
    """Return a share, or how many samples it is if there are few: a percentage of them would mislead."""
    if samples is None or samples >= _FEW:
        return share_text(share)
    return f"{round(share * samples)} of {count_words(samples, 'sample')}"


def frame_text(frame: FrameFacts) -> str:
    """Return the name of a frame without Go's type arguments, marked if it is in the kernel."""
    name = _GO_TYPES.sub("[...]", frame.name)
    return f"{name} (kernel)" if frame.kernel else name


def _leading_frame(measure: MeasureFacts) -> FrameFacts | None:
    """Return the innermost frame with half of the total, else the one with the most self time."""
    named = [frame for frame in measure.frames if not frame.name.startswith("[") and not _only_calls(frame)]
    half = [frame for frame in named if frame.total >= _HALF]
    calling = [frame for frame in half if frame.own < frame.total]
    if half:
        return min(calling or half, key=lambda one: (one.total, -one.own, one.name))
    return max(named or measure.frames, key=lambda one: one.own, default=None)


def _only_calls(frame: FrameFacts) -> bool:
    if frame.own > _LITTLE:
        return False
    return frame.total >= _ALL or _BEGINNINGS.fullmatch(frame.name) is not None


def imported_measures(result: StackResult) -> Iterator[MeasureFacts]:
    """Yield the main measure of each profile that was imported beside recorded ones."""
    profiles: set[str] = set()
    for measure in result.measures:
        if measure.imported_from and measure.imported_from not in profiles:
            profiles.add(measure.imported_from)
            yield measure


def _compose_stack_answer(result: StackResult) -> str:
    recorded = replace(
        result, measures=tuple(measure for measure in result.measures if not measure.imported_from)
    )
    imported = [_measure_answer(measure, None) for measure in imported_measures(result)]
    if not recorded.measures and result.method.tool == "import":
        return join_sentences(imported)
    return " ".join((_recorded_answer(recorded), *imported))


def _recorded_answer(result: StackResult) -> str:
    """Return where processor time goes, or whatever was counted: the template first, then the function."""
    measure = shown_measure(result)
    if measure is None:
        watched = format_duration(result.method.watched_ns)
        if result.user_ns is not None:
            return f"Nothing ran in {watched}: the processes used no processor time."
        reason = capital(result.method.cannot_see[0]) if result.method.cannot_see else ""
        return join_sentences((f"Nothing was seen running in {watched}", reason))
    if is_idle(result):
        little, watched = format_duration(_used_ns(result)), format_duration(result.method.watched_ns)
        idle = f"The processes were nearly idle: they used {little} of CPU in {watched}"
        return join_sentences((idle, "Profile them while they work: send a load at the same time"))
    if result.method.tool == "/proc":
        used = _used_ns(result)
        system = result.system_share or 0.0
        return (
            f"The processes used {format_duration(used)} of CPU in "
            f"{format_duration(result.method.watched_ns)}, {share_text(system)} of it in the kernel. "
            "The rest ran in user code. The functions cannot be seen here."
        )
    top = next(
        (template for template in measure.templates if template.name and template.share >= _LEAST), None
    )
    if result.method.tool == "sessions":
        most = (
            ""
            if top is None
            else f"{headline_template(top.name)} takes {share_text(top.share)} of the sessions' time"
        )
        return join_sentences(
            (most, "The server's processes cannot be seen from here, only what its sessions do")
        )
    kernel = result.system_share if measure.name == "cpu" else None
    return _measure_answer(measure, kernel)


def _measure_answer(measure: MeasureFacts, kernel: float | None) -> str:
    top = next(
        (template for template in measure.templates if template.name and template.share >= _LEAST), None
    )
    leading, what = _leading_frame(measure), measure_words(measure)
    parts = []
    if measure.samples is not None and measure.samples < LEAST_SAMPLES:
        of = "" if measure.name == "samples" else f" of {what}"
        parts.append(
            f"{count_words(measure.samples, 'sample')}{of} are too few to name hot functions: "
            "record for longer, or under load"
        )
        if top is not None:
            parts.append(f"{headline_template(top.name)} has {sampled_share(top.share, measure.samples)}")
        if kernel is not None:
            parts.append(f"the kernel has {sampled_share(kernel, measure.samples)}")
        return join_sentences(capital(text) for text in parts)
    calls = leading is not None and leading.own < leading.total
    if top is not None and leading is not None:
        function = frame_text(leading)
        parts.append(
            f"{headline_template(top.name)} takes {share_text(top.share)} of {what}, and {function} "
            f"{share_text(leading.total)}"
        )
        parts.append(f"the share of {function} includes the functions it calls" if calls else "")
    elif leading is not None and calls:
        parts.append(
            f"{share_text(leading.total)} of {what} is in {frame_text(leading)} and the functions it calls"
        )
    own = [frame for frame in sorted(measure.frames, key=lambda frame: -frame.own) if frame.own >= _LEAST][
        :_TOLD
    ]
    if own:
        most = series_words([f"{frame_text(one)} {share_text(one.own)}" for one in own])
        parts.append(f"{'hottest frames' if parts else f'the hottest frames of {what}'}: {most}")
    if kernel is not None:
        parts.append(f"the kernel takes {share_text(kernel)}")
    many = f"{amount_text(measure.total, measure.unit)} of {measure.name}, in many frames"
    return join_sentences(capital(text) for text in parts or [many])


def is_idle(result: StackResult) -> bool:
    """Return whether processes were watched that used hardly any processor time, seen in few samples."""
    method = result.method
    if method.tool not in ("perf", "/proc") or result.user_ns is None or method.samples >= _FEW:
        return False
    return _used_ns(result) < _IDLE * method.watched_ns


def _used_ns(result: StackResult) -> int:
    return (result.user_ns or 0) + (result.system_ns or 0)


def _changes(result: StackResult) -> Iterator[str]:
    measure = shown_measure(result)
    if measure is None or not measure.changes:
        return
    grown = sorted(measure.changes, key=lambda change: (change.own_before or 0.0) - change.own)
    for word, frames in (("grew", grown), ("shrank", grown[::-1])):
        changed = [
            f"{frame_text(frame)} {share_text(frame.own_before or 0.0)} → {share_text(frame.own)}"
            for frame in frames[:_TOLD]
            if abs(frame.own - (frame.own_before or 0.0)) >= 0.01
            and (frame.own > (frame.own_before or 0.0)) == (word == "grew")
        ]
        if changed:
            yield f"Since {result.against}, the share of these frames {word} most: {series_words(changed)}."


def _others(result: StackResult) -> Iterator[str]:
    measure = shown_measure(result)
    if measure is not None:
        top = next(
            (template for template in measure.templates if template.name and template.share >= _LEAST), None
        )
        if top is not None:
            share, what = share_text(top.share), measure_words(measure)
            yield f"One template takes {share} of {what}: {short_template(top.name)}"
    asleep = next((measure for measure in result.measures if measure.name == "off-cpu"), None)
    if asleep is not None and asleep.frames:
        where = next((frame for frame in sorted(asleep.frames, key=lambda frame: -frame.own)), None)
        if where is not None:
            yield (
                f"Processes with work slept {format_duration(asleep.total)} in total, "
                f"{share_text(where.own)} of it in {frame_text(where)}."
            )
    if result.syscalls:
        calls = sum(syscall.calls for syscall in result.syscalls)
        top_call = max(result.syscalls, key=lambda syscall: syscall.calls)
        span = format_duration(result.syscalls_ns)
        yield (
            f"{format_count(calls)} system calls in {span} ({result.syscalls_by}), most of them "
            f"{top_call.syscall} by {short_template(top_call.process)} ({format_count(top_call.calls)})."
        )


def answer_stacks(result: StackResult) -> StackResult:
    """Return the result with its answer and reasons."""
    reasons = (*(finding.text for finding in result.findings), *_changes(result), *_others(result))
    answer = _compose_stack_answer(result)
    return replace(result, answer=answer, reasons=() if is_idle(result) else reasons)
