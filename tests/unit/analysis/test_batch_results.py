"""The case clair through fakes, stored and read back: what the report will say of its batches."""

import os
from dataclasses import replace

import pytest

from fakes.histograms import histogram
from fakes.ports import MILLISECOND, FakeClock, FakeLoad, FakeServer, measured
from uncork.experiment.plan.order import cells
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.request import queries_for
from uncork.experiment.run.runner import Runner
from uncork.model.verdict import Verdict
from uncork.report.experiment.document import build_document
from uncork.requests.source import Options, case_source
from uncork.store.layout import Attempt, Manifest, stored_file, write_atomically, write_manifest
from uncork.store.write import RunWriter
from uncork.workbench.documents.experiments import read_experiment

LEVELS = {"stored": ["1000000"], "rows": ["1000"]}
TIMES = {"scalar": 100, "pipelined": 40, "values": 35, "arrays": 30, "copy": 20, "single": 20_000, "lazy": 90}


class BatchLoad(FakeLoad):
    """Takes its time by how the rows are sent: the arms share a database."""

    def run(self, request):
        batch = next(one.batch for one in request.statements if one.batch is not None)
        way = "pipelined" if batch.pipelined else batch.form
        if way == "scalar" and not request.transaction:
            way = "lazy" if request.settings else "single"
        latency = TIMES[way] * MILLISECOND
        self._clock.advance(latency * request.operations)
        return measured(latency, request.operations, histogram=self._histogram)


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    source = case_source("clair", Options(levels=LEVELS), full=False)
    folder = tmp_path_factory.mktemp("runs") / "clair-20260301-101500"
    folder.mkdir()
    write_atomically(folder / "experiment.toml", source.text)
    for name, text in source.files.items():
        write_atomically(stored_file(folder, name), text)
    manifest = Manifest(
        id=folder.name,
        name="clair",
        question="On which way?",
        status="complete",
        started_at="2026-03-01T10:15:00+00:00",
        seed=1,
        unit="round",
        server="embedded",
        uncork_version="0.1.0",
        case="clair",
        options=source.options.stored(),
    )
    (cell,) = cells(source.spec)
    rows = [str(number) for number in range(1_000)]
    queries = queries_for(source.spec, cell, "update", "transaction").values()
    clock = FakeClock()
    server = FakeServer(clock, columns=dict.fromkeys(queries, rows))
    load = BatchLoad(server, clock, histogram=histogram())
    writer = RunWriter(folder, {name: item.metric for name, item in source.spec.workloads.items()})
    runner = Runner(source.spec, server, load, writer, clock, Ledger(source.spec, "round"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        *_, finished = runner.events()
    attempt = Attempt("2026-03-01T10:15:00+00:00", 7 * 10**9, 5, "complete", finished.reason)
    write_manifest(folder, replace(manifest, attempts=(attempt,)))
    return read_experiment(folder)


def test_a_variant_that_is_too_slow_is_skipped_not_refused(result):
    verdicts = {item.variant: item.verdict for item in result.comparisons}
    assert verdicts.pop("rows") is Verdict.SKIPPED
    assert verdicts.pop("rows-unsynced") is Verdict.FASTER
    assert set(verdicts.values()) == {Verdict.FASTER}
    (skipped,) = [item for item in result.comparisons if item.variant == "rows"]
    assert skipped.reason.startswith("too slow for this budget: one batch took 20.0 s, 200 times as long")


def test_every_variant_says_how_its_batches_travel(result):
    found = {batch.variant: batch for batch in result.batches}
    assert found["pipeline"].implicit
    assert found["pipeline"].round_trips == 1
    assert not found["copy"].implicit
    assert (found["values"].chunk, found["values"].executions) == (1000, 1)
    assert {batch.variant for batch in result.batches if batch.commits == 1_000} == {"rows", "rows-unsynced"}
    assert {batch.rows for batch in result.batches} == {1_000}


def test_the_change_of_atomicity_is_among_the_reasons(result):
    (said,) = [reason for reason in result.reasons if reason.startswith("Not only speed differs")]
    assert said.startswith("Not only speed differs: rows and rows-unsynced commit each row separately")
    assert said.endswith("pipeline does so without an explicit BEGIN.")


def test_published_figures_stand_beside_our_costs_a_row(result):
    figures = {figure.name: figure for figure in result.figures}
    assert figures["database disk IOPS"].measured is None
    before, after = figures["mean query time"].measured
    assert before == pytest.approx(40 * MILLISECOND / 1_000)
    assert after == pytest.approx(30 * MILLISECOND / 1_000)
    assert figures["number of queries"].measured == (1.0, 0.001)
    assert figures["database peak CPU"].measured[0] == pytest.approx(40 * MILLISECOND * 0.6 / 1_000)


def test_the_report_has_the_section(result):
    assert [section.title for section in build_document(result).sections][2] == "Costs per row"
