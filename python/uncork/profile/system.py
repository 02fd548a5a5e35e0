"""Summarise the samples of the system sampler from the stored tables. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.model.system import MODES, Bounds, DeviceUse, ModeHistory, ProcessUse, SystemUse
from uncork.profile.slowdown import find_slowdown

Row = Mapping[str, Any]

_STALLS: Final = ("cpu_some", "io_some", "io_full", "memory_some", "memory_full")
_MOST_STEPS: Final = 300
"""The most steps of a history; each step is a whole number of seconds."""
_SUMMED: Final = (
    *("user_ns", "system_ns", "minor_faults", "major_faults", "voluntary_switches"),
    *("involuntary_switches", "read_bytes", "written_bytes"),
)


def system_use(tables: Mapping[str, pa.Table], wanted: Collection[int] | None = None) -> SystemUse | None:
    """Summarise all samplings, or those whose numbers are in `wanted`; None if there are none.

    `tables` are the tables of `uncork.model.tables.system`.
    """
    if wanted is not None:
        numbers = pa.array(sorted(wanted), pa.int64())
        tables = {name: table.filter(pc.is_in(table["sampling"], numbers)) for name, table in tables.items()}
    samplings: list[Row] = tables["system_samplings"].to_pylist()
    samples = tables["system_samples"]
    if not samplings or not samples.num_rows:
        return None
    elapsed = sum(row["elapsed_ns"] for row in samplings)
    history = _history(samples, samplings[0]) if len(samplings) == 1 else None
    cpus = pc.max(samples["cpus"]).as_py()
    return SystemUse(
        elapsed_ns=elapsed,
        cpus=cpus,
        samples=samples.num_rows,
        missed=sum(row["missed"] for row in samplings),
        late_ns=pc.max(samples["late_ns"]).as_py(),
        own=sum(row["own_ns"] for row in samplings) / max(1, elapsed),
        modes=_modes(samples),
        switches=pc.sum(samples["switches"]).as_py(),
        stalls=_stalls(samples),
        processes=tuple(_processes(tables["system_processes"], tables["system_process_samples"])),
        devices=tuple(_devices(tables["system_devices"], elapsed)),
        bounds=tuple(_bounds(samplings, tables["system_groups"])),
        missing=_missing(samplings),
        history=history,
        slowdown=None if history is None or not cpus else find_slowdown(history, cpus),
    )


def _modes(samples: pa.Table) -> dict[str, float] | None:
    """Return each mode's share of the time of all modes; the shares add up to 1."""
    sums = {mode: pc.sum(samples[f"{mode}_ns"]).as_py() for mode in MODES}
    if any(value is None for value in sums.values()):
        return None
    whole = sum(sums.values())
    return {mode: value / whole for mode, value in sums.items()} if whole else None


def _stalls(samples: pa.Table) -> dict[str, float]:
    found = {}
    for name in _STALLS:
        known = samples.filter(pc.is_valid(samples[f"{name}_ns"]))
        length = pc.sum(known["length_ns"]).as_py()
        if length:
            found[name] = min(1.0, pc.sum(known[f"{name}_ns"]).as_py() / length)
    return found


def _processes(processes: pa.Table, rows: pa.Table) -> Iterable[ProcessUse]:
    """Yield the resource use of each role's kinds of processes, the largest first within a role."""
    sums = rows.group_by(["sampling", "process"]).aggregate(
        [
            ("cpu_ns", "sum"),
            *((name, "sum") for name in _SUMMED),
            ("rss_bytes", "max"),
            ("pss_bytes", "max"),
        ]
    )
    used = {(row["sampling"], row["process"]): row for row in sums.to_pylist()}
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in processes.to_pylist():
        figures = used.get((row["sampling"], row["process"]))
        if figures is not None:
            groups[(row["role"], row["kind"] or "(unknown)")].append({**figures, "pid": row["pid"]})
    order = sorted(groups, key=lambda key: (key[0] != "server", key[0], -_sum(groups[key], "cpu_ns_sum")))
    for role, kind in order:
        yield _process(role, kind, groups[(role, kind)])


def _process(role: str, kind: str, rows: list[Row]) -> ProcessUse:
    cpu = _sum(rows, "cpu_ns_sum")
    user, system = _sum(rows, "user_ns_sum"), _sum(rows, "system_ns_sum")
    # The kernel reports the sum to the nanosecond, but the split only in steps of 10 ms.
    user_ns = round(cpu * user / (user + system)) if user + system else cpu
    known = {name: _known(rows, f"{name}_sum") for name in _SUMMED}
    return ProcessUse(
        role=role,
        kind=kind,
        processes=sum(row["pid"] is not None for row in rows),
        cpu_ns=cpu,
        user_ns=user_ns,
        system_ns=cpu - user_ns,
        voluntary_switches=known["voluntary_switches"],
        involuntary_switches=known["involuntary_switches"],
        minor_faults=known["minor_faults"],
        major_faults=known["major_faults"],
        read_bytes=known["read_bytes"],
        written_bytes=known["written_bytes"],
        rss_bytes=max((row["rss_bytes_max"] for row in rows if row["rss_bytes_max"]), default=None),
        pss_bytes=max((row["pss_bytes_max"] for row in rows if row["pss_bytes_max"]), default=None),
    )


def _sum(rows: Iterable[Row], name: str) -> int:
    return sum(row[name] or 0 for row in rows)


def _known(rows: list[Row], name: str) -> int | None:
    known = [row[name] for row in rows if row[name] is not None]
    return sum(known) if known else None


def _devices(devices: pa.Table, elapsed_ns: int) -> Iterable[DeviceUse]:
    counts = ("reads", "read_bytes", "read_ns", "writes", "written_bytes", "write_ns", "busy_ns", "lost")
    sums = devices.group_by(["device", "network"]).aggregate([(name, "sum") for name in counts])
    found = sums.to_pylist()
    for row in sorted(found, key=lambda row: (row["network"], row["device"])):
        value = {name: row[f"{name}_sum"] for name in counts}

        def mean(time: str, number: str, value: Row = value) -> float | None:
            known = value[time] is not None and value[number]
            return value[time] / value[number] if known else None

        yield DeviceUse(
            name=row["device"],
            network=row["network"],
            reads=value["reads"],
            read_bytes=value["read_bytes"],
            writes=value["writes"],
            written_bytes=value["written_bytes"],
            busy=None if value["busy_ns"] is None else min(1.0, value["busy_ns"] / max(1, elapsed_ns)),
            read_mean_ns=mean("read_ns", "reads"),
            write_mean_ns=mean("write_ns", "writes"),
            lost=value["lost"],
        )


def _bounds(samplings: list[Row], groups: pa.Table) -> Iterable[Bounds]:
    """Yield the limits of each role from the last sampling, with the counts of all samplings."""
    counts = ("periods", "throttled_periods", "throttled_ns", "burst_periods", "burst_ns")
    sums = groups.group_by("role").aggregate([(name, "sum") for name in counts]).to_pylist()
    counted = {row["role"]: {name: row[f"{name}_sum"] for name in counts} for row in sums}
    found: dict[str, list[Row]] = defaultdict(list)
    for sampling in samplings:
        for row in json.loads(sampling["bounds"]):
            found[row["role"]].append(row)
    for role, rows in found.items():
        hits = {name: _known(rows, name) for name in ("memory_hits", "oom_kills")}
        counts_of_role = dict(counted.get(role, {}))
        counts_of_role["burst_used_ns"] = counts_of_role.pop("burst_ns", None)
        yield Bounds(**{**rows[-1], **hits, **counts_of_role})


def _missing(samplings: list[Row]) -> tuple[tuple[str, str], ...]:
    found = {(row["what"], row["reason"]) for sampling in samplings for row in json.loads(sampling["lacks"])}
    return tuple(sorted(found))


def _history(samples: pa.Table, sampling: Row) -> ModeHistory | None:
    """Return how many processors were in each busy mode, in steps of whole seconds."""
    known = samples.filter(pc.is_valid(samples["user_ns"]))
    if not known.num_rows:
        return None
    begun_s = sampling["begun_us"] / 1e6
    start = int(begun_s)
    length = begun_s - start + sampling["elapsed_ns"] / 1e9
    step = max(1, -int(-length // _MOST_STEPS))
    busy = [mode for mode in MODES if mode not in ("idle", "iowait")]
    steps = int(length // step) + 1
    sums: dict[str, list[float]] = {mode: [0.0] * steps for mode in busy}
    lengths = [0.0] * steps
    for row in known.select(["end_ns", "length_ns", *(f"{mode}_ns" for mode in busy)]).to_pylist():
        middle = begun_s - start + (row["end_ns"] - row["length_ns"] / 2) / 1e9
        place = min(steps - 1, int(middle // step))
        lengths[place] += row["length_ns"]
        for mode in busy:
            sums[mode][place] += row[f"{mode}_ns"]
    while lengths and not lengths[-1]:
        lengths.pop()
    values = {
        mode: tuple(value / whole if whole else 0.0 for value, whole in zip(of, lengths, strict=False))
        for mode, of in sums.items()
    }
    return ModeHistory(start, step, {mode: of for mode, of in values.items() if any(of)})
