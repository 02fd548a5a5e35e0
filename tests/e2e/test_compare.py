"""`uncork compare` and `uncork runs name`, as a person runs them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from fakes.experiments import QUICK
from fakes.load_results import ENVIRONMENT
from fakes.logs import line
from fakes.stored_loads import store_load
from uncork.report.write.schemas import result_schema


@pytest.fixture
def loads(uncork):
    """Eight like loads and a slow one."""
    root = uncork.folder / "runs"
    usual = (1.01, 0.99, 1.02, 0.98, 1.0, 1.015, 0.99, 1.0)
    return [store_load(root, n, slower) for n, slower in enumerate((*usual, 1.6))]


@pytest.mark.thorough
@pytest.mark.postgres
@pytest.mark.slow
def test_real_loads_and_experiments_are_compared(uncork):
    load = ("load", "sql", "--embedded", "-i", "-c", 2, "-T", 1, "-S", "--json")
    for _ in range(2):
        assert uncork(*load).returncode == 0
    first, second = (path.name for path in uncork.runs if path.name.startswith("load"))
    done = uncork("compare", first, second, "--json")
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    jsonschema.validate(data, result_schema("run-comparison"))
    found = {one["name"]: one for one in data["pairs"][0]["figures"]}
    assert {"throughput", "mean", "p50", "p99", "failed", "server processor time each"} <= set(found)
    assert found["throughput"]["verdict"] == "not enough evidence"
    assert data["pairs"][0]["differences"] == []
    file = uncork.write(QUICK)
    for _ in range(2):
        assert uncork("run", file, "--precision", "90%", "--budget", "60s").returncode == 0
    names = [path.name for path in uncork.runs if path.name.startswith("quick")]
    data = json.loads(uncork("compare", *names, "--json").stdout)
    effects = [one for one in data["pairs"][0]["figures"] if one["scale"] == "effect"]
    assert [(one["subject"], one["name"]) for one in effects] == [("key on get", "against scan")]
    assert data["pairs"][0]["plans_compared"] == 2
    assert data["pairs"][0]["plans"] == []
    gates = ("--gate", "p50 < +900%", "--gate", "plan unchanged", "--gate", "buffers < +900%")
    done = uncork(
        "guard", "last", "--stored", *gates, "--gate", "p99 < +5%", "--gate", "size <= baseline", "--json"
    )
    assert done.returncode == 4, done.stderr
    checks = json.loads(done.stdout)["checks"]
    found = {one["gate"]["metric"]: (one["outcome"], one["reason"]) for one in checks}
    assert found["latency_p50"][0] == "kept", found
    assert found["plan"] == ("kept", f"the same as in {names[0]}")
    assert found["size"][0] == "kept"
    assert "so no effect on p99" in found["latency_p99"][1]
    assert found["buffers"][0] == "kept"
    guard = next(path for path in uncork.runs if path.name.startswith("guard-quick"))
    assert uncork("report", guard.name).returncode == 0


def test_the_slow_one_is_found_beside_the_named_baseline(uncork, loads):
    named = uncork("runs", "name", loads[0].name, "baseline")
    assert (named.returncode, named.stdout) == (0, f"baseline: {loads[0].name}\n")
    assert re.search(rf"{loads[0].name}\s+baseline\s+load", uncork("runs").stdout)
    done = uncork("compare", "last")
    assert done.returncode == 0, done.stderr
    assert "✗ slower" in done.stdout
    assert "report: " in done.stdout
    page = (loads[-1] / "comparison.html").read_text()
    assert "✗ slower" in page
    assert uncork("compare", "last", "--markdown").stdout.startswith("# ")
    named = uncork("runs", "name", "last", "baseline")
    assert f"(before: {loads[0].name})" in named.stdout


def test_a_run_in_pieces_is_told(uncork, loads):
    (loads[-1] / "load_totals" / "000001.parquet").write_bytes(b"PAR1 nothing")
    done = uncork("compare", loads[0].name, "last")
    assert done.returncode == 2
    assert "damaged" in done.stderr
    assert "Traceback" not in done.stderr
    (loads[-1] / "manifest.json").write_text("{")
    done = uncork("compare", loads[0].name, "last")
    assert done.returncode == 2
    assert "damaged" in done.stderr


def test_unlike_machines_are_refused_and_shown_on_demand(uncork, loads):
    other = {**ENVIRONMENT, "machine": {**ENVIRONMENT["machine"], "processor": "Other 9"}}
    store_load(uncork.folder / "runs", 12, environment=other)
    done = uncork("compare", loads[0].name, "last")
    assert done.returncode == 1
    assert 'processor "Imaginary 3000" and "Other 9"' in done.stderr
    done = uncork("compare", loads[0].name, "last", "--any-machine")
    assert done.returncode == 0
    assert "No verdict" in done.stdout


def test_logs_are_compared_as_profile_logs_does(uncork):
    for name, ms in (("old.log", 5.0), ("new.log", 15.0)):
        lines = [line("SELECT 1 FROM t WHERE id = 7", at_ms=100 * n, ms=ms) for n in range(50)]
        (uncork.folder / name).write_text("".join(lines))
        assert uncork("profile", "logs", name).returncode == 0
    first, second = (path.name for path in uncork.runs)
    done = uncork("compare", first, second)
    assert done.returncode == 0, done.stderr
    assert "Statement time went from" in done.stdout
    assert uncork("compare", first, second, second).returncode == 1


def test_stacks_are_compared_as_report_does(uncork):
    profile = Path(__file__).parents[1] / "fixtures" / "stacks" / "cpu.pb.gz"
    for _ in range(2):
        assert uncork("profile", "cpu", "--import", profile).returncode == 0
    first, second = (path.name for path in uncork.runs)
    done = uncork("compare", first, second)
    assert done.returncode == 0, done.stderr
    assert f"what changed since {first}" in " ".join(done.stdout.split())
