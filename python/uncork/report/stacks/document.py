"""The report on a stack profile, as a document and in a terminal: where processor time goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console

from uncork.model.results.stacks import (
    FrameFacts,
    LabelShare,
    MeasureFacts,
    ProcessFacts,
    RouteFrames,
    StackResult,
)
from uncork.model.template_words import short_template
from uncork.model.units import format_count, format_duration, series_words, share_text
from uncork.report.blocks import (
    Beside,
    Block,
    Bullets,
    Code,
    Document,
    Flame,
    Paragraph,
    Section,
    Step,
    Table,
    Value,
    filled_section,
)
from uncork.report.cells import column, count_cell, duration_cell, header, number, table_if_any, table_of
from uncork.report.stacks.answer import (
    amount_text,
    frame_text,
    imported_measures,
    is_idle,
    measure_words,
    sampled_share,
    shown_measure,
)
from uncork.report.words import capitalised
from uncork.report.write.terminal_text import write_report

_MOST: Final = 200
_SHALLOW: Final = 4
"""Mean number of frames per stack below which stacks are probably incomplete."""
_FEW: Final = 100
"""Number of samples below which shares are rough."""

_RECORD: Final = "uncork profile cpu "
_SERVER: Final = re.compile(r"""\s--postgres(?:=|\s)("[^"]*"|'[^']*'|\S+)""")


def build_stack_document(result: StackResult, flames: Sequence[Flame] = ()) -> Document:
    """Return the report on stacks, with their flame graphs."""
    missing = [f"Not seen: {text}." for text in result.method.cannot_see]
    return Document(
        title=result.run.id,
        question=_question(result),
        answer=result.answer,
        reasons=(*result.reasons, *result.warnings, *_warnings(result), *missing),
        steps=tuple(_steps(result)),
        facts=tuple(_facts(result)),
        sections=tuple(_sections(result, flames)),
        version=result.run.uncork_version,
    )


def _question(result: StackResult) -> str:
    measure = shown_measure(result)
    what = "the CPU" if measure is None else measure_words(measure)
    against = f", and what changed since {result.against}?" if result.against else "?"
    verb = "do" if what == "the samples" else "does"
    return f"Where {verb} {what} of {result.run.target} go{against}"


def _warnings(result: StackResult) -> Iterator[str]:
    method, measure = result.method, shown_measure(result)
    if measure is not None and method.tool in ("perf", "import"):
        yield from _symbol_warning(measure, measure_words(measure))
    if method.tool == "perf" and 0 < method.samples < _FEW:
        yield f"Only {method.samples} samples: shares are rough. Record for longer, or under load."
    if method.tool == "perf" and method.samples and method.frames < _SHALLOW:
        yield (
            f"Stacks are only {method.frames:.1f} frames deep on average, so callers are missing: install "
            "debug symbols, or build with frame pointers (-fno-omit-frame-pointer)."
        )


def _facts(result: StackResult) -> Iterator[tuple[str, str]]:
    method = result.method
    yield "run", result.run.id
    if method.watched_ns:
        yield "watched", format_duration(method.watched_ns)
    if method.tool == "perf":
        yield (
            "by",
            f"perf, {method.rate_hz} samples a second of running processes, stacks by {method.call_graph}",
        )
    elif method.tool == "/proc":
        yield "by", "/proc (no perf)"
    elif method.tool == "sessions":
        yield "by", "samples of the server's sessions"
    if method.samples:
        yield "samples", format_count(method.samples)
    if method.frames:
        yield "frames per stack", f"{method.frames:.1f}"
    if result.user_ns is not None and result.system_ns is not None:
        yield "user", format_duration(result.user_ns)
        yield "system", format_duration(result.system_ns)
    system = result.system_share
    if system is not None:
        yield "system share", share_text(system)
    for measure in result.measures:
        yield measure.name, amount_text(measure.total, measure.unit)


def _steps(result: StackResult) -> Iterator[Step]:
    if not result.measures or is_idle(result):
        yield Step("Record under load, or for longer:", result.run.reproduce)
        return
    for finding in result.findings:
        if any("fault" in name for name in finding.frames):
            yield Step(
                "Touch less new memory, which causes the page faults: huge_pages, or a smaller work_mem, may "
                "help."
            )
        else:
            who = finding.frames[0] if finding.frames else "it"
            yield Step(f"Find out why {who} enters the kernel so often: fewer, larger calls cost less.")
    if result.method.tool in ("/proc", "sessions") and result.method.cannot_see:
        yield Step(f"To see frames: {result.method.cannot_see[0]}.")
    if result.method.tool == "sessions":
        server = _SERVER.search(result.run.reproduce)
        yield Step(
            "See what sessions wait for, and who blocks them:",
            f"uncork profile db {server[1]}" if server else "uncork profile db",
        )
    again = result.run.reproduce.partition(_RECORD)[2]
    if again and not result.against and result.method.tool != "import":
        # A command to profile comes last, so the option comes first.
        yield Step("After a change, record again and compare:", f"{_RECORD}--against {result.run.id} {again}")


def _sections(result: StackResult, flames: Sequence[Flame]) -> Iterator[Section]:
    drawn = {flame.name: flame for flame in flames}
    measures = sorted(result.measures, key=lambda measure: measure is not shown_measure(result))
    for place, measure in enumerate(measures):
        title = {"cpu": "CPU", "off-cpu": "Asleep", "sessions": "Sessions"}.get(measure.name, measure.name)
        yield Section(f"measure-{place}", title, tuple(_measure(measure, result, drawn.get(measure.name))))
    yield from filled_section("routes", "Routes", joined_routes_table(result, _MOST))
    yield from filled_section("syscalls", "System calls", _syscalls_table(result, _MOST))
    yield from filled_section("processes", "Processes", _processes_table(result, _MOST))
    yield Section("how", "How it was recorded", tuple(_how(result)))


def _measure(measure: MeasureFacts, result: StackResult, flame: Flame | None) -> Iterator[Block]:
    sides = (
        _labels_table(f"{measure.name} by application", "application", measure.applications, _MOST),
        _labels_table(f"{measure.name} by process", "process", measure.processes, _MOST),
    )
    beside = tuple(side for side in sides if side is not None)
    blocks = (
        flame,
        changes_table(measure, result.against, _MOST),
        frames_table(measure, _MOST),
        frames_table(measure, _MOST, by="total"),
        _entries_table(measure, _MOST),
        _labels_table(f"{measure.name} by template", "template", measure.templates, _MOST),
        routes_table(measure, _MOST),
        Beside(beside) if beside else None,
    )
    yield from (block for block in blocks if block is not None)
    if measure.frames_more > 0:
        yield Paragraph(f"{format_count(measure.frames_more)} more frames are in the run's table stacks.")


def _how(result: StackResult) -> Iterator[Block]:
    method = result.method
    if method.tool == "perf":
        yield Paragraph(
            f"perf sampled running processes {method.rate_hz} times a second (cpu-clock), with stacks by "
            f"{method.call_graph}: {method.reason}. Off-CPU stacks are kernel stacks, sampled 20 times a "
            "second. Processes are matched to sessions by the server's own samples of the same moment."
        )
    elif method.reason:
        yield Paragraph(f"{capitalised(method.reason)}.")
    if method.cannot_see:
        yield Bullets(tuple(f"Not seen: {text}." for text in method.cannot_see))
    yield Code(result.run.reproduce, "sh")
    if result.method.watched_ns:
        yield Paragraph(f"Watched for {format_duration(result.method.watched_ns)}.")


# ---- frames without a function's name: how much they take, and what brings the names ----


_LEAST: Final = 0.05
"""Smallest share without names that is worth a sentence."""
_NAMED: Final = 0.01
"""Smallest share of a program or library that is named, besides the first."""
_SHOWN: Final = 3
_UNKNOWN: Final = "[unknown]"
_OBJECT: Final = re.compile(r"\[([^\[\] ]+)\]")
"""The frame of a program or library whose function is not known, such as ``[libc.so.6]``."""
_PACKAGES: Final = (
    (r"postgres$", "postgresql-VERSION-dbgsym on Debian, debuginfo-install postgresql-server on Fedora"),
    (r"(libc|libm|libpthread|ld-linux.*)[.-].*so", "libc6-dbg on Debian, debuginfo-install glibc on Fedora"),
    (r"lib(ssl|crypto)\.so", "libssl3-dbgsym on Debian, debuginfo-install openssl-libs on Fedora"),
    (r"(lib)?python3?", "python3-dbg on Debian, debuginfo-install python3 on Fedora"),
)
"""Packages with the debug symbols of a program or library, by its name."""
_OTHER: Final = "the -dbgsym package (Debian) or -debuginfo package (Fedora) of {}"
_OWN: Final = "Build your own programs with -g, and do not strip them."
_GENERATED: Final = (
    "Code generated at run time needs a map for perf: node --perf-basic-prof, python -X perf; in PostgreSQL "
    "set jit = off."
)


def _symbol_warning(measure: MeasureFacts, what: str) -> Iterator[str]:
    """Yield how much of a measure is in frames without names, and the packages that bring them."""
    found = [
        frame for frame in measure.frames if not frame.kernel and _OBJECT.fullmatch(frame.name) and frame.own
    ]
    found.sort(key=lambda one: (-one.own, one.name))
    total = sum(frame.own for frame in found)
    if total < _LEAST:
        return
    leading = [frame for frame in found[:_SHOWN] if frame is found[0] or frame.own >= _NAMED]
    shown = series_words(f"{frame.name} {share_text(frame.own)}" for frame in leading)
    text = f"{share_text(total)} of {what} is in functions without names ({shown})."
    remedies = dict.fromkeys(_package(frame.name) for frame in leading if frame.name != _UNKNOWN)
    if remedies:
        text += f" Install debug symbols: {'; '.join(remedies)}. {_OWN}"
    if any(frame.name == _UNKNOWN for frame in leading):
        text += f" {_GENERATED}"
    yield text


def _package(name: str) -> str:
    file = name.strip("[]")
    known = (package for pattern, package in _PACKAGES if re.match(pattern, file))
    return next(known, _OTHER.format(file))


def render_stack_terminal(
    result: StackResult, console: Console, *, top: int = 10, full: bool = False
) -> None:
    """Print the report on stacks: the `top` frames; `full` prints all measures and tables."""
    write_report(console, build_stack_document(result), _tables(result, top, full=full), facts=True)


def _tables(result: StackResult, top: int, *, full: bool) -> Iterator[Table | None]:
    few = top if full else 3
    shown = (shown_measure(result), *imported_measures(result))
    for measure in result.measures:
        if not full and not any(measure is each for each in shown):
            continue
        yield from (changes_table(measure, result.against, top), frames_table(measure, top))
        if full or measure.kernel:
            yield _entries_table(measure, few)
        if full:
            yield frames_table(measure, top, by="total")
        if full or measure.templates:
            yield _labels_table(f"{measure.name} by template", "template", measure.templates, few)
        yield routes_table(measure, top)
    yield joined_routes_table(result, top)
    yield _syscalls_table(result, top if full else 5)
    if full:
        yield _processes_table(result, top)


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


def _entries_table(measure: MeasureFacts, most: int) -> Table | None:
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


def _labels_table(caption: str, title: str, labels: Sequence[LabelShare], most: int) -> Table | None:
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
    """Return each route's function, statement and shares; None unless both were recorded."""
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


def _processes_table(result: StackResult, most: int) -> Table | None:
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


def _syscalls_table(result: StackResult, most: int) -> Table | None:
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
