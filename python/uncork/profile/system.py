"""Summarise the samples of the system sampler from the stored tables. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from uncork.model.system import MODES, Bounds, DeviceUse, ModeHistory, ProcessUse, Slowdown, SystemUse

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
    lacks = [row for sampling in samplings for row in json.loads(sampling["lacks"])]
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
        missing=tuple(sorted({(row["what"], row["reason"]) for row in lacks})),
        history=history,
        slowdown=None if history is None or not cpus else find_slowdown(history, cpus),
    )


def _modes(samples: pa.Table) -> dict[str, float] | None:
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
    summed = [(name, "sum") for name in ("cpu_ns", *_SUMMED)]
    largest = [("rss_bytes", "max"), ("pss_bytes", "max")]
    sums = rows.group_by(["sampling", "process"]).aggregate([*summed, *largest])
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
    summed = [name for name in _SUMMED if name not in ("user_ns", "system_ns")]
    return ProcessUse(
        role=role,
        kind=kind,
        processes=sum(row["pid"] is not None for row in rows),
        cpu_ns=cpu,
        user_ns=user_ns,
        system_ns=cpu - user_ns,
        **{name: _known(rows, f"{name}_sum") for name in summed},
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


def _history(samples: pa.Table, sampling: Row) -> ModeHistory | None:
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


# ---- a machine that the hypervisor slowed down ----

_FULL: Final = 0.9
"""Use counts as full from this fraction of the processors on, including stolen time."""
_BEFORE_S: Final = 60
"""How long use must have been full, with hardly any steal, before the slowdown."""
_AFTER_S: Final = 60
"""How long steal must have lasted since, while use was full."""
_CALM: Final = 0.03
"""The highest mean steal in the period before that still counts as hardly any."""
_TAKEN: Final = 0.2
"""The least steal, and its least rise, of a throttled machine; credits give back 5 to 60 % of a processor."""
_STAYS: Final = 0.95
"""The fraction of steps, before and since, that must satisfy the rule; a sampler's steps are uneven."""


def find_slowdown(history: ModeHistory, cpus: int) -> Slowdown | None:
    """Find the start of lasting steal after a period of full use; None if there is none.

    If several moments qualify, return the one with the greatest rise. The error rates of the thresholds are
    measured in `tests/calibration/test_spent_credits.py`.
    """
    steal = [value / cpus for value in history.modes.get("steal", ())]
    if not steal:
        return None
    wanted = [sum(values) / cpus for values in zip(*history.modes.values(), strict=True)]
    full = [value >= _FULL for value in wanted]
    before = max(1, -(-_BEFORE_S // history.step_s))
    after = max(1, -(-_AFTER_S // history.step_s))
    calm = _counts(good and value <= _TAKEN / 2 for good, value in zip(full, steal, strict=True))
    sums, fulls = [0.0, *accumulate(steal)], _counts(full)
    held = _counts(good and value >= _TAKEN for good, value in zip(full, steal, strict=True))
    stolen = (value if good else 0.0 for good, value in zip(full, steal, strict=True))
    steals_while_full = [0.0, *accumulate(stolen)]
    best: tuple[float, int] | None = None
    for place in range(before, len(steal) - after + 1):
        wanted_since = fulls[-1] - fulls[place]
        if wanted_since < after or calm[place] - calm[place - before] < _STAYS * before:
            continue
        was = (sums[place] - sums[place - before]) / before
        now = (steals_while_full[-1] - steals_while_full[place]) / wanted_since
        stays = held[-1] - held[place] >= _STAYS * wanted_since
        if was <= _CALM and stays and now - was >= _TAKEN and (best is None or now - was > best[0]):
            best = (now - was, place)
    if best is None:
        return None
    place = best[1]
    since = place
    while since and calm[since] - calm[since - 1]:
        since -= 1
    wanted_since = fulls[-1] - fulls[place]
    return Slowdown(
        start_s=history.start_s + place * history.step_s,
        full_s=max(before, place - since) * history.step_s,
        before=(sums[place] - sums[min(since, place - before)]) / max(before, place - since),
        after=(steals_while_full[-1] - steals_while_full[place]) / wanted_since,
    )


def _counts(flags: Iterable[bool]) -> list[int]:
    """Return how many flags are set before each position, and before the end."""
    return [0, *accumulate(int(flag) for flag in flags)]
