"""The report on a stack profile, as a document and in a terminal: where processor time goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console

from uncork.model.results.stacks import MeasureFacts, StackResult
from uncork.model.units import format_count, format_duration
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
    filled_section,
)
from uncork.report.quantity_words import share_text
from uncork.report.stacks.answer import amount_text, imported_measures, is_idle, measure_words, shown_measure
from uncork.report.stacks.tables import (
    changes_table,
    entries_table,
    frames_table,
    joined_routes_table,
    labels_table,
    processes_table,
    routes_table,
    syscalls_table,
)
from uncork.report.words import capitalised, series_words
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
        heading="What to know",
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
        yield from symbol_warning(measure, measure_words(measure))
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
    for number, measure in enumerate(
        sorted(result.measures, key=lambda measure: measure is not shown_measure(result))
    ):
        title = {"cpu": "CPU", "off-cpu": "Asleep", "sessions": "Sessions"}.get(measure.name, measure.name)
        yield Section(f"measure-{number}", title, tuple(_measure(measure, result, drawn.get(measure.name))))
    yield from filled_section("routes", "Routes", joined_routes_table(result, _MOST))
    yield from filled_section("syscalls", "System calls", syscalls_table(result, _MOST))
    yield from filled_section("processes", "Processes", processes_table(result, _MOST))
    yield Section("how", "How it was recorded", tuple(_how(result)))


def _measure(measure: MeasureFacts, result: StackResult, flame: Flame | None) -> Iterator[Block]:
    sides = (
        labels_table(f"{measure.name} by application", "application", measure.applications, _MOST),
        labels_table(f"{measure.name} by process", "process", measure.processes, _MOST),
    )
    beside = tuple(side for side in sides if side is not None)
    blocks = (
        flame,
        changes_table(measure, result.against, _MOST),
        frames_table(measure, _MOST),
        frames_table(measure, _MOST, by="total"),
        entries_table(measure, _MOST),
        labels_table(f"{measure.name} by template", "template", measure.templates, _MOST),
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


def symbol_warning(measure: MeasureFacts, what: str) -> Iterator[str]:
    """Yield how much of a measure is in frames without names, and the packages or flags that bring them.

    `what` is the measure in words. Frames of the kernel always have names, and are left out.
    """
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


# ---- in the terminal ----


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
            yield entries_table(measure, few)
        if full:
            yield frames_table(measure, top, by="total")
        if full or measure.templates:
            yield labels_table(f"{measure.name} by template", "template", measure.templates, few)
        yield routes_table(measure, top)
    yield joined_routes_table(result, top)
    yield syscalls_table(result, top if full else 5)
    if full:
        yield processes_table(result, top)
