"""The section on the machine and its processes during the trials of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from uncork.model.results.experiment import ArmSystem
from uncork.model.system import GENERATOR, SERVER, ProcessUse, SystemUse
from uncork.model.units import format_bytes, format_duration
from uncork.report.blocks import Block, Bullets, Fold, Paragraph, Section, Table, Value
from uncork.report.cells import folded_if_long, header, number, table_of
from uncork.report.experiment.view import View
from uncork.report.quantity_words import share_text
from uncork.report.system_blocks import lacks_words, system_blocks, system_doubts
from uncork.report.words import capitalised, count_words

_OPEN_ROWS: Final = 24
_MOST_FOLDS: Final = 24
"""Variants, by workload and cell, whose samples are shown in full; the tables of the run hold all."""

_Read = Callable[[ArmSystem], float | None]


def machine_sections(view: View) -> Iterable[Section]:
    """Yield the section; none if nothing was sampled."""
    systems = view.result.systems
    if not systems:
        return
    blocks: list[Block] = []
    warnings = {text: None for system in systems for text in system_doubts(system.use)}
    if warnings:
        blocks.append(Bullets(tuple(f"{capitalised(text)}." for text in list(warnings)[:6])))
    for workload in dict.fromkeys(system.workload for system in systems):
        blocks.append(folded_if_long(_table(view, workload), _OPEN_ROWS))
    blocks.append(Paragraph(" ".join(_how(systems))))
    for system in systems[:_MOST_FOLDS]:
        title = f"{system.variant} on {view.place((system.cell, system.workload))}"
        blocks.append(Fold(f"All of {title}", tuple(system_blocks(system.use, system.operations))))
    yield Section("machine", "The machine", tuple(blocks))


def _how(systems: tuple[ArmSystem, ...]) -> Iterator[str]:
    elapsed = sum(system.use.elapsed_ns for system in systems)
    own = sum(system.use.own * system.use.elapsed_ns for system in systems) / max(1, elapsed)
    samples = sum(system.use.samples for system in systems)
    yield (
        f"Sampled in every trial: {count_words(samples, 'reading')} over {format_duration(elapsed)}. "
        f"Sampling took {share_text(own)} of one processor."
    )
    if not any(system.use.cpu_ns(SERVER) for system in systems):
        yield "This is the machine of the load generator; the server's processes are not visible from here."
    yield from dict.fromkeys(text for system in systems for text in lacks_words(system.use))


def _table(view: View, workload: str) -> Table:
    own = [system for system in view.result.systems if system.workload == workload]
    known = {(system.cell, system.variant): system for system in own}
    systems = [
        known[cell, name]
        for cell in sorted({system.cell for system in own}, key=view.cell_order)
        for name in view.variants
        if (cell, name) in known
    ]
    return table_of(
        f"{workload}: the machine's processors by mode, and the cost per operation",
        systems,
        header("cell", lambda system: view.cell(system.cell)),
        header("variant", lambda system: system.variant),
        *(
            number(title, [_value(read(system), show) for system in systems], when=any(map(read, own)))
            for title, read, show in _COLUMNS
        ),
    )


def _value(amount: float | None, show: Callable[[float], str]) -> Value:
    return Value("", tone="muted") if amount is None else Value(show(amount), sort=amount)


def _mode(*names: str) -> _Read:
    def read(system: ArmSystem) -> float | None:
        modes = system.use.modes
        return None if modes is None else sum(modes[name] for name in names)

    return read


def _stall(name: str) -> _Read:
    return lambda system: system.use.stalls.get(name)


def _each(role: str, read: Callable[[ProcessUse], int | None]) -> _Read:
    """Return a function that reads a cost per operation of a role's processes."""

    def total(system: ArmSystem) -> float | None:
        known = [value for part in _of(system.use, role) if (value := read(part)) is not None]
        return sum(known) / system.operations if known and system.operations else None

    return total


def _of(use: SystemUse, role: str) -> Iterator[ProcessUse]:
    return (process for process in use.processes if process.role == role)


def _throttled(system: ArmSystem) -> float | None:
    return max((bounds.throttled for bounds in system.use.bounds), default=0.0) or None


def _plain(number: float) -> str:
    return f"{number:.3g}"


def _switches(part: ProcessUse) -> int | None:
    if part.voluntary_switches is None or part.involuntary_switches is None:
        return None
    return part.voluntary_switches + part.involuntary_switches


def _faults(part: ProcessUse) -> int | None:
    if part.minor_faults is None or part.major_faults is None:
        return None
    return part.minor_faults + part.major_faults


_COLUMNS: Final[tuple[tuple[str, _Read, Callable[[float], str]], ...]] = (
    ("programs", _mode("user", "nice"), share_text),
    ("kernel", _mode("system", "irq", "softirq"), share_text),
    ("idle", _mode("idle", "iowait"), share_text),
    ("stolen", _mode("steal"), share_text),
    ("waited for a processor", _stall("cpu_some"), share_text),
    ("for a disk", _stall("io_some"), share_text),
    ("for memory", _stall("memory_some"), share_text),
    ("throttled", _throttled, share_text),
    ("server user", _each(SERVER, lambda part: part.user_ns), format_duration),
    ("server system", _each(SERVER, lambda part: part.system_ns), format_duration),
    ("generator user", _each(GENERATOR, lambda part: part.user_ns), format_duration),
    ("generator system", _each(GENERATOR, lambda part: part.system_ns), format_duration),
    ("server switches", _each(SERVER, _switches), _plain),
    ("server faults", _each(SERVER, _faults), _plain),
    ("server reads", _each(SERVER, lambda part: part.read_bytes), format_bytes),
    ("server writes", _each(SERVER, lambda part: part.written_bytes), format_bytes),
)
