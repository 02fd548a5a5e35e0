"""What is drawn of several runs: how loads and sweeps went, and what changed in stored stacks."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from fakes.http_results import store_http_load
from fakes.stored_loads import store_load
from uncork.analysis.runs.comparison import run_series
from uncork.model.tables.stacks import STACK_TABLES
from uncork.store.layout import Manifest, write_manifest
from uncork.store.tables import rows_table, write_evidence
from uncork.workbench.documents.flames import compared_flames
from uncork.workbench.documents.loads import read_load


def experiment(root, number, stacks, kind="experiment", tool="perf"):
    """Store the evidence of one variant, as an experiment keeps it; nothing else of the run is read here."""
    folder = root / f"orders-{number}"
    started = datetime(2026, 3, number, tzinfo=UTC).isoformat()
    manifest = Manifest(
        folder.name, "orders", "?", "complete", started, 1, "round", "embedded", "0", kind=kind
    )
    write_manifest(folder, manifest)
    rows = [
        {"measure": "cpu", "unit": "samples", "pid": 1, "process": "postgres", "stack": stack, "value": value}
        for stack, value in stacks.items()
    ]
    tables = {
        table.name: rows_table(table.name, rows if table.name == "stacks" else []) for table in STACK_TABLES
    }
    facts = {"place": {"workload": "list", "variant": "main", "cell": {}}, "method": {"tool": tool}}
    write_evidence(folder / "evidence" / "one", facts, tables)
    return folder


def test_a_load_is_had_second_by_second(tmp_path):
    folder = store_load(tmp_path, 1, failed=2)
    found, result = run_series(folder), read_load(folder)
    assert found.run == folder.name and found.axis == "time"
    assert [one.at for one in found.points] == [one.start_ns / 1e9 for one in result.series]
    assert sum(one.throughput for one in found.points) == pytest.approx(result.counts.succeeded, rel=0.01)


def test_a_load_by_http_brings_its_statuses(tmp_path):
    found = run_series(store_http_load(tmp_path))
    assert found.points[13].statuses == {"200": 667.0, "503": 10.0}
    assert found.statuses == {"200": 9_995, "503": 40}


def test_what_changed_in_the_stacks_of_a_variant_is_drawn(tmp_path):
    before = experiment(tmp_path, 1, {"main;scan": 90, "main;send": 10})
    after = experiment(tmp_path, 2, {"main;scan": 10, "main;index": 80})
    (flame,) = compared_flames(before, [after])
    assert flame.title == "main on list: orders-2 beside orders-1"
    assert "red has grown since orders-1" in flame.note
    for frame in ("scan", "index"):
        assert frame in flame.svg


@pytest.mark.parametrize("other", [{"kind": "load"}, {"tool": "/proc"}])
def test_without_stacks_on_both_sides_nothing_is_drawn(tmp_path, other):
    before = experiment(tmp_path, 1, {"main;scan": 90})
    assert compared_flames(before, [experiment(tmp_path, 2, {"main;scan": 90}, **other)]) == ()
    assert json.loads((before / "manifest.json").read_text())["kind"] == "experiment"
