"""Blocks on the machine and its processes, shared by experiments, loads and watched servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from uncork.model.system import SERVER, Bounds, ProcessUse, SystemUse
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.blocks import Block, Column, Layer, Paragraph, StackChart, Table, Value
from uncork.report.cells import count_cell
from uncork.report.quantity_words import instant_text, share_text, step_text
from uncork.report.words import count_words, series_words

MODE_WORDS: Final = {
    "user": "programs",
    "nice": "low-priority programs",
    "system": "kernel",
    "irq": "interrupts",
    "softirq": "soft interrupts",
    "steal": "taken by the hypervisor",
    "iowait": "idle, waiting for disks",
    "idle": "idle",
}
_STALL_WORDS: Final = {
    "cpu_some": "any task waited for a processor",
    "io_some": "any task waited for a disk",
    "io_full": "all tasks with work waited for a disk",
    "memory_some": "any task waited for memory",
    "memory_full": "all tasks with work waited for memory",
}
_LEAST_STEPS: Final = 3
_STOLEN: Final = 0.01
_WAITED: Final = 0.01
_OTHERS: Final = 0.05
"""Shares above which stolen time, waiting for memory and other programs cause a warning."""
_TINY: Final = 0.001
"""Kinds of processes under this share of one processor are only counted."""


def system_blocks(use: SystemUse, operations: int | None = None) -> Iterator[Block]:
    """Yield the blocks on sampled data; `operations` adds the processes' time per operation."""
    chart = modes_chart(use)
    if chart is not None:
        yield chart
    if use.modes is not None:
        yield _modes_table(use)
    if use.processes:
        yield _processes_table(use, operations)
    if use.devices:
        yield _devices_table(use)
    pressure = tuple(
        (Value(_STALL_WORDS[name]), Value(share_text(share), sort=share, bar=share))
        for name, share in use.stalls.items()
    )
    if pressure:
        columns = (Column("pressure", header=True), Column("share of the time", number=True))
        yield Table("Waiting for resources, as counted by the kernel", columns, pressure)
    bounds = [row for bound in use.bounds for row in _bounds_rows(bound, use)]
    if bounds:
        yield Table("Limits of the processes", (Column("", header=True), Column("")), tuple(bounds))
    yield Paragraph(" ".join(_how(use)))


def _how(use: SystemUse) -> Iterator[str]:
    every = use.elapsed_ns / max(1, use.samples)
    yield (
        f"{count_words(use.samples, 'reading')}, one every {format_duration(every)}, took "
        f"{share_text(use.own)} of one processor; the worst delay was {format_duration(use.late_ns)}"
        + (f", and {format_count(use.missed)} were skipped." if use.missed else ".")
    )
    yield from lacks_words(use)


def lacks_words(use: SystemUse) -> Iterator[str]:
    """Yield a sentence for each source that could not be read."""
    for what, reason in use.missing:
        yield f"Not available: {what} ({reason})."


def modes_chart(use: SystemUse) -> StackChart | None:
    """Return a chart of processors by mode over time; None for too few steps."""
    history = use.history
    if history is None or not history.modes:
        return None
    layers = tuple(Layer(MODE_WORDS[mode], values) for mode, values in history.modes.items())
    if len(layers[0].values) < _LEAST_STEPS:
        return None
    sums = [sum(values) for values in zip(*(layer.values for layer in layers), strict=True)]
    most = max(sums)
    at = instant_text((history.start_s + sums.index(most) * history.step_s) * 1_000_000)
    whole = "" if use.cpus is None else f" of {use.cpus}"
    return StackChart(
        title="Processors at work, by mode",
        description=f"At most {most:.2f}{whole}, at {at} UTC",
        y_title=f"processors on average, in steps of {step_text(history.step_s)}",
        start_s=history.start_s,
        step_s=history.step_s,
        layers=layers,
    )


def _modes_table(use: SystemUse) -> Table:
    modes = use.modes or {}
    cpus = use.cpus or 1
    rows = tuple(
        (
            Value(MODE_WORDS[mode]),
            Value(share_text(share), sort=share, bar=share),
            Value(f"{share * cpus:.2f}", sort=share),
        )
        for mode, share in modes.items()
        if share or mode in ("user", "system", "idle", "steal")
    )
    return Table(
        f"The machine's processor time by mode ({count_words(cpus, 'processor')})",
        (Column("mode", header=True), Column("share", number=True), Column("processors", number=True)),
        rows,
    )


_Read = Callable[[ProcessUse], Value]


def _processes_table(use: SystemUse, operations: int | None) -> Table:
    elapsed = max(1, use.elapsed_ns)
    columns: list[tuple[str, _Read]] = [
        ("processes", lambda one: count_cell(one.processes)),
        ("of a processor", lambda one: Value(share_text(one.cpu_ns / elapsed), sort=one.cpu_ns / elapsed)),
        ("CPU", lambda one: _time(one.cpu_ns)),
        ("user", lambda one: _time(one.user_ns)),
        ("system", lambda one: _time(one.system_ns)),
    ]
    if operations:
        columns += [
            ("user per operation", lambda one: _time(one.user_ns / operations)),
            ("system per operation", lambda one: _time(one.system_ns / operations)),
        ]
    columns += [
        ("voluntary switches", lambda one: count_cell(one.voluntary_switches)),
        ("forced switches", lambda one: count_cell(one.involuntary_switches)),
        ("page faults", lambda one: count_cell(one.minor_faults)),
        ("page faults from disk", lambda one: count_cell(one.major_faults)),
        ("read", lambda one: _bytes(one.read_bytes)),
        ("written", lambda one: _bytes(one.written_bytes)),
        ("peak memory", lambda one: _bytes(one.pss_bytes or one.rss_bytes)),
    ]
    shown = [process for process in use.processes if process.cpu_ns / elapsed >= _TINY] or list(
        use.processes[:1]
    )
    left = len(use.processes) - len(shown)
    more = f"; {count_words(left, 'kind')} under {share_text(_TINY)} not shown" if left > 0 else ""
    used = [
        (name, read)
        for name, read in columns
        if name in ("CPU", "user", "system") or any(read(process_use).text for process_use in shown)
    ]
    rows = tuple(
        (Value(f"{process_use.role}: {process_use.kind}"), *(read(process_use) for _, read in used))
        for process_use in shown
    )
    return Table(
        f"Resources used by processes{more}",
        (Column("processes of", header=True), *(Column(name, number=True) for name, _ in used)),
        rows,
        sortable=True,
    )


def _devices_table(use: SystemUse) -> Table:
    seconds = max(1e-9, use.elapsed_ns / 1e9)

    def rate(number: float) -> Value:
        return Value(f"{format_bytes(number / seconds)}/s" if number else "", sort=number)

    rows = tuple(
        (
            Value(device.name, note="network" if device.network else ""),
            rate(device.read_bytes),
            rate(device.written_bytes),
            Value(format_count(round(device.reads / seconds)), sort=device.reads),
            Value(format_count(round(device.writes / seconds)), sort=device.writes),
            _time(device.read_mean_ns),
            _time(device.write_mean_ns),
            Value("")
            if device.busy is None
            else Value(share_text(device.busy), sort=device.busy, bar=device.busy),
        )
        for device in use.devices
    )
    titles = (
        "read",
        "written",
        "reads a second",
        "writes a second",
        "time per read",
        "time per write",
        "busy",
    )
    return Table(
        "Disks and networks (network reads are received data)",
        (Column("device", header=True), *(Column(title, number=True) for title in titles)),
        rows,
    )


def _bounds_rows(one: Bounds, use: SystemUse) -> Iterator[tuple[Value, ...]]:
    if one.quota_cpus is not None:
        burst = f", bursts of {format_duration(one.burst_ns)}" if one.burst_ns else ""
        yield Value(f"{one.role}: quota"), Value(f"{one.quota_cpus:g} processors{burst}")
    if one.periods:
        yield (
            Value(f"{one.role}: throttled"),
            Value(
                f"in {share_text(one.throttled)} of {count_words(one.periods, 'period')}, "
                f"{format_duration(one.throttled_ns)} in total"
            ),
        )
    if one.burst_periods:
        share = share_text(one.burst_periods / max(1, one.periods))
        beyond = f"{format_duration(one.burst_used_ns or 0)} beyond the quota"
        yield Value(f"{one.role}: bursts"), Value(f"in {share} of the periods, {beyond}")
    if one.allowed_cpus is not None and use.cpus is not None and one.allowed_cpus < use.cpus:
        yield Value(f"{one.role}: allowed processors"), Value(f"{one.allowed_cpus} of {use.cpus} processors")
    if one.memory_bytes is not None:
        hits = f", reached {count_words(one.memory_hits, 'time')}" if one.memory_hits else ""
        kills = f", {count_words(one.oom_kills, 'process')} killed" if one.oom_kills else ""
        yield Value(f"{one.role}: memory"), Value(f"{format_bytes(one.memory_bytes)}{hits}{kills}")


def system_doubts(use: SystemUse) -> Iterator[str]:
    """Yield warnings about the machine that may have affected the results, without full stops."""
    slow = use.slowdown
    if slow is not None:
        at, full = instant_text(slow.start_s * 1_000_000), format_duration(slow.full_s * 1e9)
        yield (
            f"after {full} of full use, at {at} UTC, the hypervisor began to take {share_text(slow.after)} "
            f"of the processors away (before: {share_text(slow.before)}) and kept doing so, as happens when "
            "CPU credits run out or a busy neighbour stays; measurements before and after are not comparable"
        )
    elif use.modes is not None and use.modes["steal"] > _STOLEN:
        yield f"the hypervisor took {share_text(use.modes['steal'])} of the processors for other machines"
    for bound in use.bounds:
        if bound.throttled_periods:
            quota = "" if bound.quota_cpus is None else f" of {bound.quota_cpus:g} processors"
            yield (
                f"the control group of the {bound.role} used up its quota{quota} in "
                f"{share_text(bound.throttled)} of its periods, so the quota affected the results"
            )
        if bound.burst_periods:
            yield (
                f"the control group of the {bound.role} took {format_duration(bound.burst_used_ns or 0)} of "
                "processor time beyond its quota from saved credit, which a longer load would exhaust"
            )
        if bound.oom_kills:
            killed = count_words(bound.oom_kills, "process")
            yield f"the kernel killed {killed} of the {bound.role} because memory ran out"
    memory = use.stalls.get("memory_some", 0.0)
    if memory > _WAITED:
        yield f"tasks waited for memory {share_text(memory)} of the time: the machine is short of memory"
    others = use.others
    roles = dict.fromkeys(process.role for process in use.processes)
    if others is not None and others > _OTHERS and SERVER in roles:
        names = series_words([f"the {role}" for role in roles])
        yield f"programs other than {names} took {share_text(others)} of the machine's processors"


def _time(nanoseconds: float | None) -> Value:
    return Value("" if not nanoseconds else format_duration(nanoseconds), sort=nanoseconds)


def _bytes(size: int | None) -> Value:
    return Value("" if not size else format_bytes(size), sort=size)
