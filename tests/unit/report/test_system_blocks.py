"""What machine and processes did, as reports say it: charts, tables, doubts, and what is lacking."""

from dataclasses import replace

import pytest

from uncork.model.results.experiment import ArmSystem
from uncork.model.system import Bounds, DeviceUse, ModeHistory, ProcessUse, Slowdown, SystemUse
from uncork.report.blocks import Bullets, Fold, Paragraph, StackChart, Table
from uncork.report.experiment.conduct import machine_sections
from uncork.report.system_blocks import modes_chart, system_blocks, system_doubts

S = 1_000_000_000
BUSY = {"user": 0.4, "nice": 0.0, "system": 0.1, "irq": 0.0, "softirq": 0.0}
MODES = {**BUSY, "steal": 0.0, "iowait": 0.1, "idle": 0.4}


def process(role="server", kind="client backend", cpu_ns=8 * S, **changes):
    one = ProcessUse(
        role, kind, 2, cpu_ns, cpu_ns // 4 * 3, cpu_ns // 4, 10, 2, 100, 0, None, 4096, 9_000_000, None
    )
    return replace(one, **changes)


BOUNDS = Bounds("server", 2, 1.5, 20_000_000, 2, 1_000_000_000, 3, 1, 100, 40, 5 * S)
USE = SystemUse(
    elapsed_ns=10 * S,
    cpus=2,
    samples=100,
    missed=0,
    late_ns=2_000_000,
    own=0.004,
    modes=MODES,
    switches=100,
    stalls={"cpu_some": 0.2, "memory_some": 0.0},
    processes=(process(), process("generator", "python", 2 * S), process(kind="walwriter", cpu_ns=1000)),
    devices=(DeviceUse("vda", False, 0, 0, 50, 5_000_000, 0.3, None, 40_000.0, None),),
    bounds=(),
    missing=(),
    history=ModeHistory(1_700_000_000, 1, {"user": (0.5, 1.0, 0.9), "system": (0.1, 0.2, 0.3)}),
)


def cells(table):
    return [[value.text for value in row] for row in table.rows]


def found(use, operations=None):
    return list(system_blocks(use, operations))


def table(use, caption, operations=None):
    return next(one for one in found(use, operations) if isinstance(one, Table) and caption in one.caption)


def test_the_chart_stacks_modes_that_are_not_idle():
    chart = modes_chart(USE)
    assert isinstance(chart, StackChart)
    assert [layer.name for layer in chart.layers] == ["programs", "kernel"]
    assert chart.description.startswith("At most 1.20 of 2, at 2023-11-14 22:13:2")
    assert modes_chart(replace(USE, history=None)) is None
    short = ModeHistory(0, 1, {"user": (0.5, 1.0)})
    assert modes_chart(replace(USE, history=short)) is None


def test_modes_add_up_and_processes_are_told_an_operation():
    assert ["programs", "40 %", "0.80"] in cells(table(USE, "by mode"))
    used = table(USE, "Resources used by processes", 1000)
    titles = [column.title for column in used.columns]
    assert titles[1:6] == ["processes", "of a processor", "CPU", "user", "system"]
    assert "user per operation" in titles
    assert "page faults from disk" in titles
    assert "read" not in titles
    rows = cells(used)
    assert [row[0] for row in rows] == ["server: client backend", "generator: python"]
    assert rows[0][titles.index("user per operation")] == "6.00 ms"
    assert "1 kind under 0.1 % not shown" in used.caption


def test_devices_and_pressure_have_a_table_each_and_bounds_if_there_are_any():
    (disk,) = cells(table(USE, "Disks and network"))
    assert disk == ["vda", "", "500 kB/s", "0", "5", "", "40.0 µs", "30 %"]
    assert ["any task waited for a processor", "20 %"] in cells(table(USE, "Waiting for resources"))
    assert not any(isinstance(one, Table) and "Limits" in one.caption for one in found(USE))
    rows = dict(cells(table(replace(USE, cpus=4, bounds=(BOUNDS,)), "Limits")))
    assert rows["server: quota"] == "1.5 processors, bursts of 20.0 ms"
    assert rows["server: throttled"] == "in 40 % of 100 periods, 5.00 s in total"
    assert rows["server: allowed processors"] == "2 of 4 processors"
    assert "reached 3 times" in rows["server: memory"]
    burst = replace(BOUNDS, burst_periods=25, burst_used_ns=50_000_000)
    rows = dict(cells(table(replace(USE, cpus=4, bounds=(burst,)), "Limits")))
    assert rows["server: bursts"] == "in 25 % of the periods, 50.0 ms beyond the quota"


def test_what_could_not_be_read_is_told_with_its_reason_and_the_rest_stays():
    use = replace(USE, modes=None, stalls={}, missing=(("pressure on disks", "no such file"),), history=None)
    blocks = found(use)
    (how,) = [one.text for one in blocks if isinstance(one, Paragraph)]
    assert how.startswith("100 readings, one every 100 ms, took 0.4 % of one processor")
    assert how.endswith("Not available: pressure on disks (no such file).")
    captions = [one.caption for one in blocks if isinstance(one, Table)]
    assert not any("by mode" in caption or "Waiting" in caption for caption in captions)
    assert any("processes" in caption for caption in captions)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"modes": {**MODES, "steal": 0.05, "user": 0.35}},
            "took 5.0 % of the processors for other machines",
        ),
        ({"bounds": (BOUNDS,)}, "used up its quota of 1.5 processors in 40 % of its periods"),
        (
            {"bounds": (replace(BOUNDS, burst_periods=3, burst_used_ns=50_000_000),)},
            "the server took 50.0 ms of processor time beyond its quota from saved credit",
        ),
        (
            {"slowdown": Slowdown(1_700_000_180, 180, 0.0, 0.4)},
            "of full use, at 2023-11-14 22:16:20 UTC, the hypervisor began to take 40 % of the processors",
        ),
        ({"bounds": (BOUNDS,)}, "the kernel killed 1 process of the server because memory ran out"),
        ({"stalls": {"memory_some": 0.03}}, "tasks waited for memory 3.0 % of the time"),
        (
            {"modes": {**MODES, "user": 0.8, "idle": 0.0}},
            "programs other than the server and the generator took 40 %",
        ),
    ],
)
def test_what_shaped_the_figures_is_a_doubt(changes, words):
    assert any(words in warning for warning in system_doubts(replace(USE, **changes)))


def test_a_quiet_machine_raises_no_doubt():
    assert list(system_doubts(USE)) == []


class View:
    """As much of a report's view as the section asks for."""

    variants = ("old", "new")

    def __init__(self, systems):
        self.result = type("Result", (), {"systems": tuple(systems)})
        self.cell = lambda cell: "all"
        self.order = lambda cell, variant: self.variants.index(variant)
        self.place = lambda place: place[1]


def test_an_experiment_has_a_row_a_variant_and_all_of_it_folded():
    systems = [ArmSystem((), "find", name, 1000, USE) for name in ("old", "new")]
    (section,) = machine_sections(View(systems))
    tables = [one for one in section.blocks if isinstance(one, Table)]
    assert [row[1] for row in cells(tables[0])] == ["old", "new"]
    titles = [column.title for column in tables[0].columns]
    first = dict(zip(titles, cells(tables[0])[0], strict=True))
    assert (first["programs"], first["server user"], first["server system"]) == ("40 %", "6.00 ms", "2.00 ms")
    assert first["server switches"] == "0.024"
    assert sum(isinstance(one, Fold) for one in section.blocks) == 2
    assert not any(isinstance(one, Bullets) for one in section.blocks)
    assert list(machine_sections(View([]))) == []


def test_of_a_server_elsewhere_the_section_says_whose_machine_it_is():
    use = replace(USE, processes=(process("generator", "python", S),))
    (section,) = machine_sections(View([ArmSystem((), "find", "old", 10, use)]))
    (how,) = [one.text for one in section.blocks if isinstance(one, Paragraph)]
    assert "This is the machine of the load generator" in how
