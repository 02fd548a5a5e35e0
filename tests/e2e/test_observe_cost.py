"""`uncork observe-cost`, small: real servers, real observers, what is skipped and what is refused."""

import json
import signal

import pytest

pytestmark = pytest.mark.postgres
SMALL = ("--budget", "8s", "-s", 1, "--precision", "99%")
LONGER = ("--budget", "22s")  # half of it is for switching


def test_observers_are_measured_under_load_and_idle(uncork):
    done = uncork("observe-cost", "--only", "system", "--only", "sessions", *SMALL, *LONGER, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {one["name"] for one in found["costs"]} == {"system", "sessions"}
    for one in found["costs"]:
        assert one["throughput"]["ratio"] > 0
        assert one["server_cpu"]["ratio"] > 0
        assert 0 < one["observer_share"] < 0.5
        # Both were switched, all of the time, in whole quadruples.
        assert one["switched"]["quadruples"] > 10
        assert 0.09e9 < one["switched"]["slice_ns"] < 0.2e9
        assert one["verdict"] in ("costs less", "costs more", "costs something", "not enough evidence")
    for idle in found["idle"].values():
        assert idle["windows"] == 8
        assert 0 < idle["observer_ns"] < 5e8
        assert idle["server_ns"] is not None
    stored = json.loads((uncork.folder / "runs" / found["run"] / "observer_cost.json").read_text())
    assert stored == found
    slices = json.loads((uncork.folder / "runs" / found["run"] / "observer_slices.json").read_text())
    assert {name for on in slices["on"] for name in on} == {"system", "sessions"}
    assert len(slices["on"]) == len(slices["operations"]) == 4 * found["costs"][0]["switched"]["quadruples"]


@pytest.mark.thorough
def test_reading_the_catalogue_is_measured_with_the_sampler_of_sessions(uncork):
    done = uncork("observe-cost", "--only", "catalogue", *SMALL, "--no-idle")
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "Reading the catalogue once takes" in told
    assert "of a processor over a watch of 60 s" in told
    run = next(word for word in done.stderr.split() if word.startswith("observe-cost-"))
    found = json.loads((uncork.folder / "runs" / run / "observer_cost.json").read_text())
    assert {one["name"] for one in found["costs"]} == {"sessions", "catalogue"}
    (switched,) = (one for one in found["costs"] if one["name"] == "catalogue")
    assert switched["throughput"] is None and switched["switched"]["quadruples"] > 0
    reading = found["catalogue"]
    assert reading["readings"] == 5 and reading["tables"] >= 1
    assert reading["server_ns"] > 1e6 and reading["observer_ns"] > 1e6


@pytest.mark.thorough
def test_settings_are_variants_and_the_run_is_an_experiment(uncork, tmp_path):
    script = tmp_path / "look.sql"
    script.write_text(
        "\\set aid random(1, 100000 * :scale)\nSELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n"
    )
    only = [word for name in ("track_io_timing", "log_statements") for word in ("--only", name)]
    done = uncork("observe-cost", "-f", script, *only, *SMALL, "--no-idle")
    assert done.returncode == 0, done.stderr
    assert "Under load: look; change compared with no observer" in done.stdout
    assert "Idle" not in done.stdout
    shown = uncork("report", "last", "--json")
    result = json.loads(shown.stdout)
    assert [one["name"] for one in result["variants"]] == ["nothing", "log_statements", "track_io_timing"]
    assert {one["variant"] for one in result["systems"]} == {one["name"] for one in result["variants"]}


@pytest.mark.thorough
@pytest.mark.slow
def test_an_agent_is_measured_in_a_service(uncork):
    pytest.importorskip("pyroscope")
    done = uncork("observe-cost", "--only", "agent", "--budget", "60s", "--precision", "50%", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    (cost,) = found["costs"]
    assert cost["name"] == "agent" and cost["throughput"]["ratio"] > 0
    assert 0.5 < cost["service_cpu"]["ratio"] < 2
    # It samples: it pushed what it saw, and an idle service with it does not rest.
    assert found["pushes"]["count"] > 0 and found["pushes"]["size_bytes"] > 200
    idle = found["idle"]["agent"]
    assert idle["server_ns"] > 1e5
    assert "pushes" not in done.stderr
    assert uncork("report", "last", "--json").returncode == 0


@pytest.mark.thorough
def test_ctrl_c_tells_what_was_measured_until_then(uncork):
    words = ("--only", "track_io_timing", "--budget", "60s", "-s", 1, "--no-idle")
    process = uncork.start("observe-cost", *words)
    uncork.wait_for(process, "round 1 done")
    process.send_signal(signal.SIGINT)
    told, talk = process.communicate(timeout=60)
    assert process.returncode == 130, talk
    assert "track_io_timing has an unknown cost, which may be above or below 1 %" in " ".join(told.split())
