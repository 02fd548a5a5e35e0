"""The system sampler of the core, on this very process, and what a trial says may have disturbed it."""

import gc
import json
import os
import time
from pathlib import Path

import pyarrow as pa
import pytest

from uncork.errors import LoadError
from uncork.load.sampler import Sampler, sampler_plan, strain, system_series, trial_watch
from uncork.model.system import GENERATOR, MODES, SERVER, SystemSeries, Watch
from uncork.model.tables.register import TABLES

MS = 1_000_000


def threads():
    return len(list(Path("/proc/self/task").iterdir()))


def test_our_own_work_is_seen_to_the_nanosecond():
    sampler = Sampler([Watch(GENERATOR, os.getpid())], period_ns=10 * MS)
    before = time.process_time_ns()
    while time.process_time_ns() < before + 50 * MS:
        pass
    used = time.process_time_ns() - before
    seen = sampler.stop()
    assert sum(seen.tables["system_process_samples"]["cpu_ns"].to_pylist()) >= used
    assert seen.tables["system_processes"]["role"].to_pylist() == [GENERATOR]
    samples = seen.tables["system_samples"]
    assert sum(samples["length_ns"].to_pylist()) == seen.facts["elapsed_ns"]
    assert sum(samples["own_ns"].to_pylist()) <= seen.facts["own_ns"]
    assert sampler.stop() is None


def test_its_tables_are_those_that_are_stored():
    sampler = Sampler([Watch(GENERATOR, os.getpid())], period_ns=10 * MS)
    seen = sampler.stop()
    for name, table in seen.tables.items():
        assert table.column_names == [one.name for one in TABLES[name].columns if one.name != "sampling"]


def test_a_sampler_that_is_forgotten_ends():
    before = threads()
    sampler = Sampler([], period_ns=10 * MS)
    assert threads() == before + 1
    del sampler
    gc.collect()
    assert threads() == before


def test_a_process_that_is_not_there_is_lacking_and_the_rest_is_told():
    seen = Sampler([Watch(SERVER, 2**22 + 1, children=True)], period_ns=10 * MS).stop()
    assert seen.facts["lacks"][0] == {
        "what": "the process of the server",
        "reason": f"there is no process {2**22 + 1}",
    }
    assert seen.tables["system_samples"].num_rows


def test_readings_too_close_together_are_refused():
    with pytest.raises(LoadError, match="readings every 10 ns"):
        Sampler([], period_ns=10)


def test_a_trial_watches_the_server_only_where_it_is():
    assert [one.role for one in trial_watch(None)] == [GENERATOR]
    assert trial_watch(7)[0] == Watch(SERVER, 7, children=True)
    plan = sampler_plan(trial_watch(7))
    assert json.loads(json.dumps(plan)) == plan
    assert not plan["memory"]


def series(*, server=True, waited=0, watched=60 * MS):
    modes = {f"{mode}_ns": [0] for mode in MODES} | {"user_ns": [100 * MS], "idle_ns": [100 * MS]}
    samples = {**modes, "length_ns": [100 * MS], "cpus": [2], "memory_some_ns": [waited]}
    return SystemSeries(
        {},
        {
            "system_samples": pa.table(samples),
            "system_processes": pa.table({"role": [SERVER if server else GENERATOR]}),
            "system_process_samples": pa.table({"cpu_ns": [watched]}),
        },
    )


def test_strain_is_what_neither_server_nor_generator_explains():
    found = strain(series(waited=5 * MS))
    assert found.memory == pytest.approx(0.05)
    assert found.others == pytest.approx(40 / 200)
    assert found.processors_ns == 200 * MS
    assert strain(series(watched=150 * MS)).others == 0


def test_what_could_not_be_told_is_none():
    assert strain(None) is None
    assert strain(series(server=False)).others is None
    assert strain(series(waited=None)).memory is None
    assert system_series(None) is None
