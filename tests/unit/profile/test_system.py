"""Samplings put together: sums, shares, splits, and what is not known."""

import json

import pyarrow as pa
import pytest

from uncork.model.system import MODES, SystemSeries
from uncork.profile.system import system_use
from uncork.store.system import system_tables

MS = 1_000_000
S = 1000 * MS


def facts(**changes):
    return {
        "begun_unix_ns": 1_700_000_000 * S + 250 * MS,
        "elapsed_ns": 4 * S,
        "period_ns": S,
        "missed": 1,
        "own_ns": 8 * MS,
        "bounds": [],
        "lacks": [],
        **changes,
    }


def samples(count=4, **changes):
    modes = {f"{mode}_ns": [0] * count for mode in MODES}
    columns = {
        "tick": list(range(count)),
        "end_ns": [(place + 1) * S for place in range(count)],
        "length_ns": [S] * count,
        "late_ns": [0] * (count - 1) + [3 * MS],
        "cpus": [2] * count,
        **modes,
        "user_ns": [S] * count,
        "idle_ns": [S] * count,
        "guest_ns": [0] * count,
        **{name: [7] * count for name in ("running", "blocked", "switches", "forks")},
        **{
            f"{name}_ns": [S // 10] * count
            for name in ("cpu_some", "io_some", "io_full", "memory_some", "memory_full")
        },
        "own_ns": [2 * MS] * count,
        **changes,
    }
    return pa.table({name: pa.array(values, pa.uint64()) for name, values in columns.items()})


DETAILS = (
    *("user_ns", "system_ns", "minor_faults", "major_faults", "rss_bytes", "pss_bytes"),
    *("voluntary_switches", "involuntary_switches", "read_calls", "write_calls"),
    *("read_bytes", "written_bytes"),
)


def process_samples(*rows):
    """Return rows of (tick, process, cpu_ns, details)."""
    columns = {
        "tick": [row[0] for row in rows],
        "process": [row[1] for row in rows],
        "cpu_ns": [row[2] for row in rows],
        **{name: [row[3].get(name) for row in rows] for name in DETAILS},
    }
    return pa.table({name: pa.array(values, pa.uint64()) for name, values in columns.items()})


def processes(*rows):
    """Return rows of (pid, role, kind)."""
    return pa.table(
        {
            "process": pa.array(range(len(rows)), pa.uint64()),
            "pid": pa.array([row[0] for row in rows], pa.uint64()),
            "role": pa.array([row[1] for row in rows], pa.string()),
            "kind": pa.array([row[2] for row in rows], pa.string()),
            "seen_ns": pa.array([0] * len(rows), pa.uint64()),
            "ended_ns": pa.array([None] * len(rows), pa.uint64()),
        }
    )


def series(machine=None, own=(), used=(), groups=(), devices=(), **changes):
    group_columns = ("periods", "throttled_periods", "throttled_ns", "burst_periods", "burst_ns")
    counts = ("reads", "read_bytes", "read_ns", "writes", "written_bytes", "write_ns", "busy_ns", "flushes")
    return SystemSeries(
        facts(**changes),
        {
            "system_samples": samples() if machine is None else machine,
            "system_processes": processes(*own),
            "system_process_samples": process_samples(*used),
            "system_devices": pa.table(
                {
                    "tick": pa.array([0] * len(devices), pa.uint64()),
                    "network": pa.array([one["network"] for one in devices], pa.bool_()),
                    "device": pa.array([one["device"] for one in devices], pa.string()),
                    **{
                        name: pa.array([one.get(name) for one in devices], pa.uint64())
                        for name in (*counts, "lost")
                    },
                }
            ),
            "system_groups": pa.table(
                {
                    "tick": pa.array(range(len(groups)), pa.uint64()),
                    "role": pa.array([row[0] for row in groups], pa.string()),
                    **{
                        name: pa.array([row[place] for row in groups], pa.uint64())
                        for place, name in enumerate(group_columns, 1)
                    },
                }
            ),
        },
    )


def use(*seen):
    return system_use(system_tables([({}, one) for one in seen]))


def test_modes_are_shares_that_add_up_to_all():
    found = use(series())
    assert sum(found.modes.values()) == pytest.approx(1)
    assert found.modes["user"] == found.modes["idle"] == pytest.approx(0.5)
    assert (found.cpus, found.samples, found.missed, found.late_ns) == (2, 4, 1, 3 * MS)
    assert found.own == pytest.approx(0.002)
    assert found.stalls["memory_full"] == pytest.approx(0.1)
    assert found.switches == 28


def test_what_the_kernel_does_not_tell_stays_unknown():
    nothing = [None] * 4
    found = use(series(samples(user_ns=nothing, io_some_ns=nothing, switches=nothing)))
    assert found.modes is None
    assert found.others is None
    assert found.history is None
    assert found.switches is None
    assert "io_some" not in found.stalls
    assert use() is None


def test_processes_of_a_kind_are_summed_and_split_by_the_kernels_ticks():
    ran = {"user_ns": 30 * MS, "system_ns": 10 * MS, "voluntary_switches": 3, "rss_bytes": 5}
    found = use(
        series(
            own=[
                (1, "server", "postmaster"),
                (2, "server", "client backend"),
                (3, "server", "client backend"),
            ],
            used=[(0, 1, 25 * MS, ran), (1, 1, 5 * MS, {}), (1, 2, 10 * MS, {"rss_bytes": 9})],
        )
    )
    (backends,) = found.processes
    assert (backends.kind, backends.processes, backends.cpu_ns) == ("client backend", 2, 40 * MS)
    assert (backends.user_ns, backends.system_ns) == (30 * MS, 10 * MS)
    assert (backends.voluntary_switches, backends.involuntary_switches) == (3, None)
    assert (backends.rss_bytes, backends.pss_bytes) == (9, None)
    assert found.cpu_ns("server") == 40 * MS
    assert found.others == pytest.approx(0.5 - 0.04 / 8)


def test_several_samplings_are_summed_and_each_can_be_picked():
    seen = [series(own=[(1, "server", "x")], used=[(0, 0, n * MS, {})]) for n in (1, 2)]
    tables = system_tables([({}, one) for one in seen], first=5)
    whole, one = system_use(tables), system_use(tables, {6})
    assert (whole.elapsed_ns, whole.cpu_ns("server"), whole.history) == (8 * S, 3 * MS, None)
    assert (one.elapsed_ns, one.cpu_ns("server")) == (4 * S, 2 * MS)
    assert system_use(tables, {9}) is None


def test_the_history_has_steps_of_whole_seconds_by_the_clock():
    found = use(series(samples(steal_ns=[0, S, 0, 0]))).history
    assert (found.start_s, found.step_s) == (1_700_000_000, 1)
    assert list(found.modes) == ["user", "steal"]
    assert found.modes["user"] == (1.0, 1.0, 1.0, 1.0)
    assert found.modes["steal"] == (0.0, 1.0, 0.0, 0.0)


def test_bounds_tell_the_quota_and_how_it_was_kept():
    bound = {
        "role": "server",
        "cgroup": 2,
        "quota_cpus": 1.5,
        "burst_ns": None,
        "allowed_cpus": 2,
        "memory_bytes": 100,
        "memory_hits": 2,
        "oom_kills": None,
    }
    seen = series(bounds=[bound], groups=[("server", 10, 4, 8 * MS, 3, 5 * MS)])
    (found,) = use(seen, seen).bounds
    assert (found.quota_cpus, found.throttled, found.throttled_ns) == (1.5, pytest.approx(0.4), 16 * MS)
    assert (found.memory_hits, found.oom_kills) == (4, None)
    assert (found.burst_ns, found.burst_periods, found.burst_used_ns) == (None, 6, 10 * MS)
    older = series(bounds=[bound], groups=[("server", 10, 4, 8 * MS, None, None)])
    (found,) = use(older).bounds
    assert (found.burst_periods, found.burst_used_ns) == (None, None)


def test_devices_have_rates_and_means_and_lacks_are_told_once():
    disk = {"device": "sda", "network": False, "reads": 4, "read_bytes": 8, "read_ns": 8 * MS}
    disk |= {"writes": 0, "written_bytes": 0, "write_ns": 0, "busy_ns": 2 * S}
    lack = {"what": "pressure on disks", "reason": "no such file"}
    one = series(devices=[disk], lacks=[lack])
    found = use(one, one)
    (device,) = found.devices
    assert (device.reads, device.read_mean_ns, device.write_mean_ns) == (8, 2 * MS, None)
    assert device.busy == pytest.approx(0.5)
    assert found.missing == (("pressure on disks", "no such file"),)
    assert json.dumps(found.missing)
