"""Sweeps as figures: compared, and in a history, like loads."""

from __future__ import annotations

from datetime import timedelta

import numpy as np

from fakes.answered import compare_runs, read_history
from fakes.load_results import CLOSED_SPEC, ENVIRONMENT, plan
from fakes.stored_loads import BEGUN
from fakes.sweeps import processors, spec, swept
from uncork.analysis.runs.figures import run_figures
from uncork.load.run import without_password
from uncork.model.sweep import parse_objectives
from uncork.store.layout import Manifest, write_manifest
from uncork.store.loads import append_load_step, write_environment, write_plan, write_sweep


def store_sweep(root, number, slower=1.0, **changes):
    """Store a sweep of a server with four processors, an hour after the one before."""
    begun = BEGUN + timedelta(hours=number)
    folder = root / f"sweep-tpcb-like-{begun:%Y%m%d-%H%M%S}"
    folder.mkdir(parents=True)
    wanted = spec(objectives=parse_objectives("p99<60s"), end=64.0, **changes)
    write_plan(folder, without_password(plan(CLOSED_SPEC)))
    write_environment(folder, ENVIRONMENT)
    write_sweep(folder, wanted)
    system = processors(4)
    generator = np.random.default_rng(number)
    for one in swept(lambda load: system(load) / slower, wanted, generator, noise=0.02):
        append_load_step(folder, one)
    manifest = Manifest(
        id=folder.name,
        name="sweep-tpcb-like",
        question="sweep of clients: tpcb-like",
        status="complete",
        started_at=begun.isoformat(timespec="seconds"),
        seed=1,
        unit="",
        server="existing: bench@db.example:5432/bench",
        uncork_version="0.1.0",
        kind="sweep",
        options={"command": "uncork load sql --sweep clients bench"},
    )
    write_manifest(folder, manifest)
    return folder


def test_a_sweep_tells_what_the_server_carries_and_where_it_bends(tmp_path):
    run = run_figures(store_sweep(tmp_path, 1))
    found = {one.name: one.value for one in run.figures}
    assert set(found) >= {"most throughput", "knee", "most that holds p99 < 60s"}
    assert 2 <= found["knee"] <= 8
    assert run.asked["raised"] == "clients"
    assert "clients" not in run.asked


def test_sweeps_that_were_asked_the_same_are_alike_wherever_they_began(tmp_path):
    first = store_sweep(tmp_path, 1)
    second = store_sweep(tmp_path, 2, start=4.0)
    (pair,) = compare_runs(tmp_path, first, [second]).pairs
    assert not [one for one in pair.differences if one.section == "asked"]


def test_what_a_server_carries_has_a_history(tmp_path):
    for number in range(10):
        store_sweep(tmp_path, number, 1.0 if number < 6 else 1.5)
    (change,) = read_history(tmp_path, "most throughput").changes
    assert (change.number, change.verdict.value) == (7, "slower")
