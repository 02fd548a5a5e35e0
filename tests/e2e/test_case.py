"""The worked cases in miniature, and the doctor."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def test_cluster_names_shows_the_published_figure_beside_the_measured_one(uncork):
    options = ["--set", "rows=10000", "--workload", "select", "--budget", "40s", "--precision", "10%"]
    done = uncork("case", "run", "cluster-names", *options)
    assert done.returncode == 0, done.stderr
    assert "published" in done.stdout
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    (without,) = [
        comparison
        for comparison in result["comparisons"]
        if comparison["variant"] == "uuid" and ["index", "none"] in comparison["cell"]
    ]
    assert without["published_ratio"] == pytest.approx(1080828 / 1269443)
    assert without["ratio"] < 1, "a smaller key makes the scan cheaper"
    sizes = {
        (entry["variant"], entry["relation"]): entry["bytes"]
        for entry in result["sizes"]
        if ["index", "none"] in entry["cell"]
    }
    assert sizes["uuid", "reported_pkey"] < sizes["char", "reported_pkey"]
    assert "rows=10000,index=cluster" not in done.stderr.partition("refused")[2]


def test_the_full_case_has_the_120_cells_of_the_talk():
    from uncork.workbench.source import Options, case_source

    spec = case_source("cluster-names", Options(), full=True).spec
    assert list(spec.workloads) == ["select", "insert", "delete"]
    cells = 1
    for factor in spec.factors:
        cells *= len(spec.levels(factor))
    assert cells * len(spec.workloads) * len(spec.variants) == 120
    assert spec.stop.budget <= 30 * 60 * 10**9


def test_the_doctor_says_what_can_be_told_apart_here(uncork):
    done = uncork("doctor", "--budget", "25s")
    assert done.returncode in (0, 3), done.stderr
    for heading in ("noise floor", "clock source", "generator, lookup"):
        assert heading in done.stdout
    assert "Traceback" not in done.stderr
