"""A whole run through fakes, stored and read back: what the report will say of it."""

import math
import os
from dataclasses import replace

import pytest

from fakes.histograms import histogram
from fakes.ports import MILLISECOND, FakeClock, FakeLoad, FakeServer
from uncork.experiment.run.ledger import Ledger
from uncork.experiment.run.runner import Runner
from uncork.model.verdict import Verdict
from uncork.requests.source import Options, case_source
from uncork.store.layout import Attempt, Manifest, stored_file, write_atomically, write_manifest
from uncork.store.write import RunWriter
from uncork.workbench.documents.experiments import read_experiment
from uncork.workbench.experiment.doctor import diagnose

NONE, INDEXED = (("rows", "50000"), ("index", "none")), (("rows", "50000"), ("index", "cluster"))
CLUSTERS = "SELECT cluster::text FROM reported ORDER BY notified_at"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    chosen = Options(levels={"rows": ["50000"]}, workloads=("select",))
    source = case_source("cluster-names", chosen, full=False)
    folder = tmp_path_factory.mktemp("runs") / "cluster-names-20260301-101500"
    folder.mkdir()
    write_atomically(folder / "experiment.toml", source.text)
    for name, text in source.files.items():
        write_atomically(stored_file(folder, name), text)
    manifest = Manifest(
        id=folder.name,
        name="cluster-names",
        question="Which type?",
        status="complete",
        started_at="2026-03-01T10:15:00+00:00",
        seed=1,
        unit="round",
        server="embedded",
        uncork_version="0.1.0",
        case="cluster-names",
        options=source.options.stored(),
    )
    clock = FakeClock()
    server = FakeServer(clock, columns={CLUSTERS: ["one", "two"]})
    load = FakeLoad(
        server,
        clock,
        {"uuid": 0.8 * MILLISECOND},
        answers={"bytea": (19, "the same")},
        errors_at={5},
        histogram=histogram(),
    )
    writer = RunWriter(folder, {name: item.metric for name, item in source.spec.workloads.items()})
    runner = Runner(source.spec, server, load, writer, clock, Ledger(source.spec, "round"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        *_, finished = runner.events()
    first = Attempt("2026-03-01T10:15:00+00:00", 7 * 10**9, 2, "interrupted", "interrupted")
    second = Attempt("2026-03-01T10:16:00+00:00", 5 * 10**9, 3, "complete", finished.reason)
    write_manifest(folder, replace(manifest, attempts=(first, second)))
    return read_experiment(folder)


def comparison(result, variant, cell=NONE):
    return next(item for item in result.comparisons if (item.variant, item.cell) == (variant, cell))


def test_every_comparison_has_its_verdict_in_the_order_of_the_file(result):
    assert [(item.cell, item.variant, item.verdict) for item in result.comparisons] == [
        (cell, variant, verdict)
        for cell in (NONE, INDEXED)
        for variant, verdict in (
            ("varchar", Verdict.NO_PRACTICAL_DIFFERENCE),
            ("bytea", Verdict.REFUSED),
            ("uuid", Verdict.FASTER),
        )
    ]


def test_a_comparison_tells_ratio_interval_and_values(result):
    found = comparison(result, "uuid")
    assert found.low < 0.8 < found.high
    assert found.ratio == pytest.approx(0.8, rel=0.01)
    assert found.value == pytest.approx(0.8 * MILLISECOND, rel=0.01)
    assert found.baseline_value == pytest.approx(MILLISECOND, rel=0.01)
    assert found.rounds == result.run.rounds >= 5


def test_published_figures_stand_beside_those_measured(result):
    assert comparison(result, "uuid").published_value == 4437253
    assert comparison(result, "uuid").published_ratio == pytest.approx(4437253 / 5375757)
    assert comparison(result, "bytea").published_ratio == pytest.approx(5480033 / 5375757)
    assert comparison(result, "uuid", INDEXED).published_ratio == pytest.approx(145055 / 145972)
    assert result.source.startswith("A talk")


def test_what_was_refused_has_a_reason_and_no_numbers(result):
    found = comparison(result, "bytea")
    assert found.reason == "wrong answer: 19 rows, but the baseline returns 20 for the same operations"
    assert (found.ratio, found.low, found.high, found.value, found.rounds) == (None, None, None, None, 0)
    assert all(item.variant != "bytea" for item in (*result.metrics, *result.costs, *result.latencies))


def test_failed_trials_are_counted_and_raise_a_doubt(result):
    assert result.run.failed_trials == 1
    assert sum(metric.failed for metric in result.metrics) == 1
    (warning,) = [warning for warning in result.warnings if "failed" in warning]
    assert warning.startswith("1 trial(s) of select with ")
    assert warning.endswith("failed (errors): no such row")


def test_the_baseline_has_its_two_arms_in_the_metrics_and_one_line_in_the_costs(result):
    here = [metric for metric in result.metrics if metric.cell == NONE]
    assert [(metric.variant, metric.again) for metric in here] == [
        ("char", False),
        ("char", True),
        ("uuid", False),
        ("varchar", False),
    ]
    assert [cost.variant for cost in result.costs if cost.cell == NONE] == ["char", "uuid", "varchar"]
    assert all(len(metric.by_round) == result.run.rounds for metric in here)


def test_the_noise_is_that_of_the_baseline_against_itself(result):
    assert [item.cell for item in result.noise.comparisons] == [INDEXED, NONE]
    assert all(item.variant == "char" for item in result.noise.comparisons)
    assert 0 < result.noise.floor < 0.02


def test_latencies_are_merged_without_loss(result):
    curve = next(item for item in result.latencies if (item.variant, item.cell) == ("uuid", NONE))
    metric = next(item for item in result.metrics if (item.variant, item.cell) == ("uuid", NONE))
    assert curve.executions > 100 * (metric.trials - metric.failed)
    assert [quantile for quantile, _ in curve.points] == sorted(quantile for quantile, _ in curve.points)
    assert all(value == pytest.approx(1e6, rel=0.001) for _, value in curve.points)


def test_the_run_adds_up_its_sittings(result):
    assert result.run.elapsed_ns == 12 * 10**9
    assert result.run.stopped_because == "every comparison is decided, or as precise as asked (±2.0%)"
    assert result.run.reproduce == "uncork rerun cluster-names-20260301-101500"
    assert result.environment == {"server": {"version": "PostgreSQL, a fake"}}


def test_the_correction_counts_what_was_compared(result):
    assert result.correction.startswith("4 comparisons share one error rate")
    assert "at most 5 %" in result.correction


def test_every_number_is_one_that_json_can_hold(result):
    numbers = [
        value
        for item in (*result.comparisons, *result.noise.comparisons)
        for value in (item.ratio, item.low, item.high, item.std_dev, item.e_value)
        if value is not None
    ]
    assert all(math.isfinite(value) for value in numbers)


def test_the_doctor_counts_every_difference_as_a_false_alarm(result):
    diagnosis = diagnose(result, {"version": "0.1.0", "profile": "release"})
    assert (diagnosis.false_alarms, diagnosis.comparisons) == (4, 6)
    assert diagnosis.lines[0] == ("noise floor", result.noise.sentence)
    assert ("core", "0.1.0, release build") in diagnosis.lines
    assert all(heading != "warning" for heading, _ in diagnosis.lines)


def test_the_doctor_warns_of_a_build_that_is_slow(result):
    headings = [heading for heading, _ in diagnose(result, {"profile": "debug"}).lines]
    assert "warning" in headings


def known_change(result, verdict, std_dev=0.02, rounds=8):
    first = result.comparisons[0]
    known = replace(first, workload="known", verdict=verdict, std_dev=std_dev, rounds=rounds)
    return replace(result, comparisons=(known,))


def test_the_doctor_reports_whether_the_known_change_was_found_and_the_power(result):
    found = diagnose(known_change(result, Verdict.SLOWER), {})
    assert (found.found, found.false_alarms, found.comparisons) == (True, 0, 0)
    lines = dict(found.lines)
    assert lines["+20%, known"].endswith("slower")
    assert lines["power, known"] == (
        "8 rounds like these find a change of 20% in 100% of runs, and one of 3.8% in 80%"
    )


def test_a_known_change_that_is_missed_is_no_false_alarm_but_one_that_seems_faster_is(result):
    missed = diagnose(known_change(result, Verdict.NOT_ENOUGH_EVIDENCE, rounds=4), {})
    assert (missed.found, missed.false_alarms) == (False, 0)
    assert dict(missed.lines)["power, known"] == "unknown after 4 rounds: a verdict needs 5"
    assert diagnose(known_change(result, Verdict.FASTER), {}).false_alarms == 1
    assert diagnose(result, {}).found is None
