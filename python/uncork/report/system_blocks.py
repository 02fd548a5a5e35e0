"""Blocks on the machine and its processes, shared by experiments, loads and watched servers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from uncork.model.system import SERVER, Bounds, SystemUse
from uncork.model.units import (
    count_words,
    format_bytes,
    format_count,
    format_duration,
    series_words,
    share_text,
)
from uncork.report.blocks import Block, Layer, Paragraph, StackChart, Table, Value
from uncork.report.cells import count_cell, facts_table, header, number, table_of, without_empty_columns
from uncork.report.words import instant_text, step_text

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
    if use.stalls:
        yield table_of(
            "Waiting for resources, as counted by the kernel",
            use.stalls.items(),
            header("pressure", lambda stall: _STALL_WORDS[stall[0]]),
            number("share of the time", lambda stall: _share(stall[1])),
        )
    bounds = [fact for bound in use.bounds for fact in _bounds_facts(bound, use)]
    if bounds:
        yield facts_table("Limits of the processes", bounds)
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
    cpus = use.cpus or 1
    modes = (use.modes or {}).items()
    return table_of(
        f"The machine's processor time by mode ({count_words(cpus, 'processor')})",
        [(mode, share) for mode, share in modes if share or mode in ("user", "system", "idle", "steal")],
        header("mode", lambda mode: MODE_WORDS[mode[0]]),
        number("share", lambda mode: _share(mode[1])),
        number("processors", lambda mode: Value(f"{mode[1] * cpus:.2f}", sort=mode[1])),
    )


def _share(share: float) -> Value:
    return Value(share_text(share), sort=share, bar=share)


def _part(share: float) -> Value:
    return Value(share_text(share), sort=share)


def _processes_table(use: SystemUse, operations: int | None) -> Table:
    elapsed, each = max(1, use.elapsed_ns), operations or 1
    shown = [process for process in use.processes if process.cpu_ns / elapsed >= _TINY]
    shown = shown or list(use.processes[:1])
    left = len(use.processes) - len(shown)
    more = f"; {count_words(left, 'kind')} under {share_text(_TINY)} not shown" if left > 0 else ""
    table = table_of(
        f"Resources used by processes{more}",
        shown,
        header("processes of", lambda process: f"{process.role}: {process.kind}"),
        number("processes", lambda process: count_cell(process.processes)),
        number("of a processor", lambda process: _part(process.cpu_ns / elapsed)),
        number("CPU", lambda process: _time(process.cpu_ns)),
        number("user", lambda process: _time(process.user_ns)),
        number("system", lambda process: _time(process.system_ns)),
        number("user per operation", lambda process: _time(process.user_ns / each), when=operations),
        number(
            "system per operation",
            lambda process: _time(process.system_ns / each),
            when=operations,
        ),
        number("voluntary switches", lambda process: count_cell(process.voluntary_switches)),
        number("forced switches", lambda process: count_cell(process.involuntary_switches)),
        number("page faults", lambda process: count_cell(process.minor_faults)),
        number("page faults from disk", lambda process: count_cell(process.major_faults)),
        number("read", lambda process: _bytes(process.read_bytes)),
        number("written", lambda process: _bytes(process.written_bytes)),
        number("peak memory", lambda process: _bytes(process.pss_bytes or process.rss_bytes)),
        sortable=True,
    )
    return without_empty_columns(table, "CPU", "user", "system")


def _devices_table(use: SystemUse) -> Table:
    seconds = max(1e-9, use.elapsed_ns / 1e9)

    def rate(size: float) -> Value:
        return Value(f"{format_bytes(size / seconds)}/s" if size else "", sort=size)

    def times(count: float) -> Value:
        return Value(format_count(round(count / seconds)), sort=count)

    return table_of(
        "Disks and networks (network reads are received data)",
        use.devices,
        header("device", lambda device: Value(device.name, note="network" if device.network else "")),
        number("read", lambda device: rate(device.read_bytes)),
        number("written", lambda device: rate(device.written_bytes)),
        number("reads a second", lambda device: times(device.reads)),
        number("writes a second", lambda device: times(device.writes)),
        number("time per read", lambda device: _time(device.read_mean_ns)),
        number("time per write", lambda device: _time(device.write_mean_ns)),
        number("busy", lambda device: "" if device.busy is None else _share(device.busy)),
    )


def _bounds_facts(bounds: Bounds, use: SystemUse) -> Iterator[tuple[str, str]]:
    if bounds.quota_cpus is not None:
        burst = f", bursts of {format_duration(bounds.burst_ns)}" if bounds.burst_ns else ""
        yield f"{bounds.role}: quota", f"{bounds.quota_cpus:g} processors{burst}"
    if bounds.periods:
        yield (
            f"{bounds.role}: throttled",
            f"in {share_text(bounds.throttled)} of {count_words(bounds.periods, 'period')}, "
            f"{format_duration(bounds.throttled_ns)} in total",
        )
    if bounds.burst_periods:
        share = share_text(bounds.burst_periods / max(1, bounds.periods))
        beyond = f"{format_duration(bounds.burst_used_ns or 0)} beyond the quota"
        yield f"{bounds.role}: bursts", f"in {share} of the periods, {beyond}"
    if bounds.allowed_cpus is not None and use.cpus is not None and bounds.allowed_cpus < use.cpus:
        yield f"{bounds.role}: allowed processors", f"{bounds.allowed_cpus} of {use.cpus} processors"
    if bounds.memory_bytes is not None:
        hits = f", reached {count_words(bounds.memory_hits, 'time')}" if bounds.memory_hits else ""
        kills = f", {count_words(bounds.oom_kills, 'process')} killed" if bounds.oom_kills else ""
        yield f"{bounds.role}: memory", f"{format_bytes(bounds.memory_bytes)}{hits}{kills}"


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
