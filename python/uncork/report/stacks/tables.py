"""The tables of a report on stacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from uncork.model.results.stacks import (
    FrameFacts,
    LabelShare,
    MeasureFacts,
    ProcessFacts,
    RouteFrames,
    StackResult,
)
from uncork.model.template_words import short_template
from uncork.model.units import format_duration
from uncork.report.blocks import Table, Value
from uncork.report.cells import column, count_cell, duration_cell, header, number, table_if_any, table_of
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
    words = "without what they call" if by == "own" else "including what they call"
    return table_if_any(
        f"Hottest frames of {measure_words(measure)}, {words}",
        frames,
        number("self", lambda frame: _share(frame.own, bar=True)),
        number("total", lambda frame: _share(frame.total)),
        column("frame", _frame),
        sortable=True,
    )


def changes_table(measure: MeasureFacts, against: str, most: int) -> Table | None:
    """Return the frames whose self share changed most since another run."""
    frames = [change for change in measure.changes if change.own != (change.own_before or 0.0)][:most]
    return table_if_any(
        f"Frames whose share of {measure_words(measure)} changed most since {against}",
        frames,
        number("change", lambda frame: _change(frame.own - (frame.own_before or 0.0))),
        number("before", lambda frame: _share(frame.own_before or 0.0)),
        number("now", lambda frame: _share(frame.own)),
        number("total before", lambda frame: _share(frame.total_before or 0.0)),
        number("total now", lambda frame: _share(frame.total)),
        column("frame", _frame),
        sortable=True,
    )


def entries_table(measure: MeasureFacts, most: int) -> Table | None:
    """Return which functions entered the kernel, and for what."""
    if not any(entry.user not in ("", "[kernel]") for entry in measure.entries):
        return None
    return table_of(
        "Who entered the kernel, and for what",
        measure.entries[:most],
        number("share", lambda entry: _share(entry.share, bar=True)),
        column("entered by", lambda entry: Value(entry.user or "(the kernel itself)", code=True)),
        column("called by", lambda entry: Value(entry.caller, code=True)),
        column("kernel", lambda entry: Value(entry.kernel, code=True)),
        sortable=True,
    )


def labels_table(caption: str, title: str, labels: Sequence[LabelShare], most: int) -> Table | None:
    """Return shares by process, application or template."""
    return table_if_any(
        caption,
        labels[:most],
        number("share", lambda label: _share(label.share, bar=True)),
        column(title, lambda label: short_template(label.name) if label.name else "(unknown)"),
        sortable=True,
    )


def routes_table(measure: MeasureFacts, most: int) -> Table | None:
    """Return what routes of the application spent, each with its hottest frame; None without routes."""
    return table_if_any(
        f"{measure.name} by route",
        measure.routes[:most],
        number("share", lambda route: _share(route.share, bar=True)),
        header("route", lambda route: route.name or "(no route)"),
        column("hottest frame", hottest_frame),
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
    if not spent or not any(route.name for route in busy):
        return None
    functions, sessions = ({route.name: route for route in routes} for routes in (spent, busy))
    nothing = RouteFrames("", 0.0, ())
    joined = [
        (name, functions.get(name, nothing), sessions.get(name, nothing))
        for name in dict.fromkeys((*functions, *sessions))
        if name
    ]
    joined.sort(key=lambda route: (-max(route[1].share, route[2].share), route[0]))
    return table_of(
        "Routes: functions and statements",
        joined[:most],
        header("route", lambda route: route[0]),
        number("application", lambda route: _share(route[1].share, bar=True)),
        column("hottest function", lambda route: hottest_frame(route[1])),
        number("sessions", lambda route: _share(route[2].share, bar=True)),
        column("statement with most time", lambda route: _costliest(route[2])),
        sortable=True,
    )


def _costliest(route: RouteFrames) -> Value:
    return Value(short_template(route.frames[0].name), code=True) if route.frames else Value("")


def hottest_frame(route: RouteFrames) -> Value:
    """Return a cell with the frame that a route spends most in, without what it calls."""
    if not route.frames:
        return Value("")
    first = route.frames[0]
    return Value(frame_text(first), note=sampled_share(first.own, route.samples), code=True)


def processes_table(result: StackResult, most: int) -> Table | None:
    """Return the processor time of processes, as the kernel counted it."""
    found = [process for process in result.processes if process.user_ns or process.system_ns][:most]
    return table_if_any(
        "Processor time by process, from the kernel's own count",
        found,
        number("user", lambda process: duration_cell(process.user_ns)),
        number("system", lambda process: duration_cell(process.system_ns)),
        number("pid", lambda process: Value(str(process.pid), sort=process.pid)),
        column("process", _process),
        sortable=True,
    )


def syscalls_table(result: StackResult, most: int) -> Table | None:
    """Return system calls by time."""
    span = format_duration(result.syscalls_ns)
    return table_if_any(
        f"System calls in {span}, counted by {result.syscalls_by}; time includes waiting",
        result.syscalls[:most],
        number("time", lambda syscall: duration_cell(syscall.time_ns)),
        number("calls", lambda syscall: count_cell(syscall.calls)),
        number("errors", lambda syscall: count_cell(syscall.errors)),
        column("call", lambda syscall: Value(syscall.syscall, code=True)),
        column("process", lambda syscall: short_template(syscall.process)),
        sortable=True,
    )


def _process(process: ProcessFacts) -> str:
    return f"{process.process} ({process.backend})" if process.backend else process.process


def _share(share: float, *, bar: bool = False) -> Value:
    return Value(share_text(share), sort=share, bar=share if bar else None)


def _change(change: float) -> Value:
    sign = "+" if change > 0 else "−"
    return Value(f"{sign}{abs(change) * 100:.1f}", sort=change)


def _frame(frame: FrameFacts) -> Value:
    return Value(frame_text(frame), code=True)
