"""The experiment that measures observers: what each variant has, and scripts as workloads."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uncork.errors import UsageError
from uncork.experiment.observe import (
    NOTHING,
    Observed,
    experiment_data,
    pgbench_setup,
    script_workload,
    toml_text,
)
from uncork.experiment.spec.schema import parse_spec
from uncork.load.builtin import SCRIPTS

SYSTEM = Observed("system", "a sampler", {}, observe="system")
TIMING = Observed("timing", "times of reads", {"track_io_timing": True})


def workload(text, **changes):
    return script_workload(text, **{"name": "x.sql", "scale": 3, "clients": 2, "duration": "250ms"} | changes)


def spec_of(base, observers=(SYSTEM, TIMING), **changes):
    data = experiment_data(
        base,
        observers,
        {"track_io_timing": False},
        **{"server": {}, "stop": {"practical": "1%"}, "seed": 4} | changes,
    )
    return parse_spec(toml_text(data), file="x", read=str, overrides={})


@pytest.mark.parametrize("name", list(SCRIPTS))
def test_every_built_in_script_can_be_measured(name):
    base = {"setup": {"sql": pgbench_setup(3)}, "workloads": {name: workload(SCRIPTS[name].text)}}
    spec = spec_of(base)
    found = spec.workloads[name]
    assert found.metric == "throughput"
    assert found.transaction is (name != "select-only")
    assert found.parameters["aid"].generator.max == 300_000
    assert not any("BEGIN" in one or one == "END" for one in found.statements)


def test_a_variant_is_the_baseline_and_its_observer():
    base = {"setup": {"sql": "SELECT 1"}, "workloads": {"one": workload("SELECT 1;")}}
    spec = spec_of(base)
    assert spec.baseline == NOTHING
    assert spec.setup.shared
    assert spec.observes
    assert spec.variants[NOTHING].settings == {"track_io_timing": False}
    assert spec.variants["timing"].settings == {"track_io_timing": True}
    assert spec.variants["timing"].observe is None
    assert spec.variants["system"].settings == {"track_io_timing": False}
    assert spec.variants["system"].observe == "system"
    assert (spec.experiment.seed, spec.stop.practical) == (4, 0.01)


def test_an_experiments_baseline_is_what_is_observed():
    base = tomllib.loads("""
[variants.old]
baseline = true
values.keyed = "id = 1"
settings.work_mem = "8MB"
[variants.new]
values.keyed = "id = 2"
[factors]
rows = [10, 20]
[setup]
sql = "CREATE TABLE item AS SELECT n AS id FROM generate_series(1, :rows) AS n"
[workloads.look]
sql = "SELECT count(*) FROM item WHERE :keyed"
duration = "100ms"
metric = "latency_p99"
[stop]
blocks = 8
""")
    spec = spec_of(base)
    assert list(spec.variants) == [NOTHING, "system", "timing"]
    assert spec.variants["system"].values == {"keyed": "id = 1"}
    assert spec.variants["timing"].settings == {"work_mem": "8MB", "track_io_timing": True}
    assert list(spec.levels("rows")) == ["10", "20"]
    assert spec.workloads["look"].metric == "throughput"
    assert spec.stop.blocks == 8


def test_bounds_of_a_script_are_numbers_the_scale_and_products():
    text = "\\set a random(1, 10 * :scale)\n\\set b random(-5, 2 * 3)\nSELECT :a, :b::int;"
    made = workload(text)
    bounds = {name: tuple(facts["generator"].values())[1:] for name, facts in made["parameters"].items()}
    assert bounds == {"a": (1, 30), "b": (-5, 6)}
    assert made["sql"] == ["SELECT :a, :b::int"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT 1;\n\\sleep 1 ms\n", r"x.sql:2: \\sleep 1 ms: only \\set NAME random"),
        ("\\set a random(1, abs(3))\nSELECT :a;", "x.sql:1"),
        ("\\set a 1\nSELECT :a;", "x.sql:1"),
        ("-- nothing", "contains no SQL statement"),
        (" ;\n", "contains no SQL statement"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_line(text, message):
    with pytest.raises(UsageError, match=message):
        workload(text)


KEYS = st.text(min_size=1, max_size=5)
PLAIN = st.text() | st.booleans() | st.integers(-(2**60), 2**60)


@given(st.dictionaries(KEYS, PLAIN | st.lists(st.text()) | st.dictionaries(KEYS, PLAIN), max_size=5))
def test_what_is_written_as_toml_is_read_back(data):
    assert tomllib.loads(toml_text(data)) == data
