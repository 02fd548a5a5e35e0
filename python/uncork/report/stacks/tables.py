"""The tables of a report on stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uncork.model.results.stacks import FrameFacts, LabelShare, MeasureFacts, RouteFrames, StackResult
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration
from uncork.report.blocks import Column, Table, Value
from uncork.report.quantity_words import share_text
from uncork.report.stacks.answer import frame_text, measure_words, sampled_share

_SESSIONS: Final = "sessions"
_OF_SERVER: Final = ("cpu", "off-cpu", _SESSIONS)
"""Measures of the server, beside those of an imported profile."""


def frames_table(measure: MeasureFacts, most: int, *, by: str = "own") -> Table | None:
    """Return the hottest frames, by self time or by total."""

    def key(frame: FrameFacts) -> float:
        return frame.own if by == "own" else frame.total

    frames = sorted(filter(key, measure.frames), key=lambda frame: (-key(frame), frame.name))[:most]
    if not frames:
        return None
    words = "without what they call" if by == "own" else "including what they call"
    return Table(
        caption=f"Hottest frames of {measure_words(measure)}, {words}",
        columns=(Column("self", number=True), Column("total", number=True), Column("frame")),
        rows=tuple((_share(frame.own, bar=True), _share(frame.total), _frame(frame)) for frame in frames),
        sortable=True,
    )


def changes_table(measure: MeasureFacts, against: str, most: int) -> Table | None:
    """Return the frames whose self share changed most since another run."""
    frames = [change for change in measure.changes if change.own != (change.own_before or 0.0)][:most]
    if not frames:
        return None
    return Table(
        caption=f"Frames whose share of {measure_words(measure)} changed most since {against}",
        columns=(
            Column("change", number=True),
            Column("before", number=True),
            Column("now", number=True),
            Column("total before", number=True),
            Column("total now", number=True),
            Column("frame"),
        ),
        rows=tuple(
            (
                _change(frame.own - (frame.own_before or 0.0)),
                _share(frame.own_before or 0.0),
                _share(frame.own),
                _share(frame.total_before or 0.0),
                _share(frame.total),
                _frame(frame),
            )
            for frame in frames
        ),
        sortable=True,
    )


def entries_table(measure: MeasureFacts, most: int) -> Table | None:
    """Return which functions entered the kernel, and for what."""
    if not any(entry.user not in ("", "[kernel]") for entry in measure.entries):
        return None
    return Table(
        caption="Who entered the kernel, and for what",
        columns=(Column("share", number=True), Column("entered by"), Column("called by"), Column("kernel")),
        rows=tuple(
            (
                _share(entry.share, bar=True),
                Value(entry.user or "(the kernel itself)", code=True),
                Value(entry.caller, code=True),
                Value(entry.kernel, code=True),
            )
            for entry in measure.entries[:most]
        ),
        sortable=True,
    )


def labels_table(caption: str, title: str, labels: Sequence[LabelShare], most: int) -> Table | None:
    """Return shares by process, application or template."""
    if not labels:
        return None
    return Table(
        caption=caption,
        columns=(Column("share", number=True), Column(title)),
        rows=tuple(
            (_share(label.share, bar=True), Value(short_template(label.name) if label.name else "(unknown)"))
            for label in labels[:most]
        ),
        sortable=True,
    )


def routes_table(measure: MeasureFacts, most: int) -> Table | None:
    """Return what routes of the application spent, each with its hottest frame; None without routes."""
    if not measure.routes:
        return None
    return Table(
        caption=f"{measure.name} by route",
        columns=(Column("share", number=True), Column("route", header=True), Column("hottest frame")),
        rows=tuple(
            (
                _share(route.share, bar=True),
                Value(route.name or "(no route)"),
                hottest_frame(route),
            )
            for route in measure.routes[:most]
        ),
        sortable=True,
    )


def joined_routes_table(result: StackResult, most: int) -> Table | None:
    """Return, by route, its share of the application and of the sessions, with a function and a statement.

    Labels of the application's profile name the route of a function, comments that of a statement. None
    unless both were recorded.
    """
    spent = next(
        (measure.routes for measure in result.measures if measure.routes and measure.name not in _OF_SERVER),
        (),
    )
    busy = next((measure.routes for measure in result.measures if measure.name == _SESSIONS), ())
    if not spent or not any(one.name for one in busy):
        return None
    functions, sessions = ({route.name: route for route in routes} for routes in (spent, busy))
    nothing = RouteFrames("", 0.0, ())
    largest = {
        name: max(of.get(name, nothing).share for of in (functions, sessions))
        for name in (*functions, *sessions)
        if name
    }
    rows = []
    for name in sorted(largest, key=lambda name: (-largest[name], name))[:most]:
        own, sent = functions.get(name, nothing), sessions.get(name, nothing)
        statement = sent.frames[0] if sent.frames else None
        rows.append(
            (
                Value(name),
                _share(own.share, bar=True),
                hottest_frame(own),
                _share(sent.share, bar=True),
                Value(
                    "" if statement is None else short_template(statement.name), code=statement is not None
                ),
            )
        )
    columns = (
        *(Column("route", header=True), Column("application", number=True), Column("hottest function")),
        *(Column("sessions", number=True), Column("statement with most time")),
    )
    return Table("Routes: functions and statements", columns, tuple(rows), sortable=True)


def hottest_frame(route: RouteFrames) -> Value:
    """Return a cell with the frame that a route spends most in, without what it calls."""
    if not route.frames:
        return Value("")
    first = route.frames[0]
    return Value(frame_text(first), note=sampled_share(first.own, route.samples), code=True)


def processes_table(result: StackResult, most: int) -> Table | None:
    """Return the processor time of processes, as the kernel counted it."""
    found = [process for process in result.processes if process.user_ns or process.system_ns][:most]
    if not found:
        return None
    return Table(
        caption="Processor time by process, from the kernel's own count",
        columns=(
            Column("user", number=True),
            Column("system", number=True),
            Column("pid", number=True),
            Column("process"),
        ),
        rows=tuple(
            (
                Value(format_duration(process.user_ns), sort=process.user_ns),
                Value(format_duration(process.system_ns), sort=process.system_ns),
                Value(str(process.pid), sort=process.pid),
                Value(f"{process.process} ({process.backend})" if process.backend else process.process),
            )
            for process in found
        ),
        sortable=True,
    )


def syscalls_table(result: StackResult, most: int) -> Table | None:
    """Return system calls by time."""
    if not result.syscalls:
        return None
    span = format_duration(result.syscalls_ns)
    return Table(
        caption=f"System calls in {span}, counted by {result.syscalls_by}; time includes waiting",
        columns=(
            Column("time", number=True),
            Column("calls", number=True),
            Column("errors", number=True),
            Column("call"),
            Column("process"),
        ),
        rows=tuple(
            (
                Value(format_duration(syscall.time_ns), sort=syscall.time_ns),
                Value(format_count(syscall.calls), sort=syscall.calls),
                Value(format_count(syscall.errors), sort=syscall.errors),
                Value(syscall.syscall, code=True),
                Value(short_template(syscall.process)),
            )
            for syscall in result.syscalls[:most]
        ),
        sortable=True,
    )


def _share(share: float, *, bar: bool = False) -> Value:
    return Value(share_text(share), sort=share, bar=share if bar else None)


def _change(change: float) -> Value:
    sign = "+" if change > 0 else "−"
    return Value(f"{sign}{abs(change) * 100:.1f}", sort=change)


def _frame(frame: FrameFacts) -> Value:
    return Value(frame_text(frame), code=True)
