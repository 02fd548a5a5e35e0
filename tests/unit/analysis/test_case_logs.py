"""The log half of a case: what its data says, which periods are compared, what stands beside the figures."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest

from fakes.case_logs import case_logs, sent
from uncork import cases
from uncork.analysis.log.case import MEASURES, compared_periods
from uncork.analysis.log.half import log_half
from uncork.errors import UsageError
from uncork.experiment.plan.order import cells
from uncork.experiment.run.request import batch_request
from uncork.model.server import Target
from uncork.report.log.case_logs import render_case_logs_json
from uncork.requests.source import Options, case_source

SCHEMA = Path(__file__).parents[3] / "schemas" / "case-logs.schema.json"
MILLISECOND = 1000


# ---- data ----


def halves():
    found = []
    for name in cases.names():
        try:
            found.append(log_half(name))
        except UsageError:
            continue
    return found


@pytest.mark.parametrize("half", halves(), ids=lambda half: half.case)
def test_a_log_half_names_what_there_is(half):
    spec = case_source(half.case, Options(), full=True).spec
    assert set(half.ways) <= set(spec.variants)
    assert spec.workloads[half.workload].batch is not None
    assert set(half.levels) == set(spec.factors)
    for factor, (level,) in half.levels.items():
        assert level in spec.levels(factor)
    assert {figure["measure"] for figure in half.figures} <= set(MEASURES)
    assert half.setup and half.script


def test_clair_names_its_applications():
    half = log_half("clair")
    assert (half.updater, half.background, half.ways) == ("libvuln", "quay", ("pipeline", "unnest"))


def test_a_case_without_a_log_half_names_those_that_have_one():
    with pytest.raises(UsageError, match=r'"cluster-names" has no log half; clair has one: uncork case logs'):
        log_half("cluster-names")


def test_an_unknown_case_is_refused_with_the_nearest():
    with pytest.raises(UsageError, match=r'no case "clari"; did you mean "clair"\?'):
        log_half("clari")


# ---- periods ----


def test_the_same_length_is_compared_that_of_the_longer_batch():
    before, after = compared_periods(sent(1_000, 2_500), sent(7_000, 7_400, until_ms=20_000))
    assert before == (1_000 * MILLISECOND, 2_500 * MILLISECOND + 1)
    assert after == (7_000 * MILLISECOND, 8_500 * MILLISECOND + 1)
    before, after = compared_periods(sent(1_000, 1_400, until_ms=9_000), sent(7_000, 8_500))
    assert before == (1_000 * MILLISECOND, 2_500 * MILLISECOND + 1)
    assert after == (7_000 * MILLISECOND, 8_500 * MILLISECOND + 1)


def test_no_period_reaches_beyond_the_end_of_its_background():
    before, _ = compared_periods(sent(1_000, 1_400, until_ms=2_000), sent(7_000, 9_000))
    assert before == (1_000 * MILLISECOND, 2_000 * MILLISECOND + 1)


def test_beginnings_are_cut_to_the_millisecond_as_a_log_cuts_its_times():
    one = sent(0, 100)
    late = type(one)("pipeline", "", 1_000_999, 1_100_999, 2_000_000, 1)
    (begin, end), _ = compared_periods(late, late)
    assert (begin, end) == (1_000_000, 1_101_000)


# ---- results ----


def test_the_first_sentence_says_whose_the_spike_was_and_what_became_of_it(tmp_path):
    result = case_logs(tmp_path)
    assert result.answer == (
        "libvuln sent 98 % of the queries in the spike, which took 99.6 % of the time. These were 1 000 of "
        "1 020. Sent differently (an array a column), the same 1 000 rows are 1 query, and the batch took "
        "600 ms instead of 2.50 s (−76 %)."
    )


def test_every_measure_is_read_from_the_logs(tmp_path):
    figures = {one.name: one for one in case_logs(tmp_path).figures}
    assert set(figures) == set(MEASURES)
    assert figures["executions"].measured == (1020, 21)
    assert figures["executions of the updater"].measured == (1000, 1)
    assert figures["share of executions"].measured == pytest.approx((1000 / 1020, 1 / 21))
    assert figures["mean"].measured == pytest.approx((2.008e9 / 1020, 0.506e9 / 21))
    assert figures["mean of the background, idle and in the spike"].measured == pytest.approx((3e5, 4e5))


def test_its_json_keeps_to_the_schema(tmp_path):
    found = json.loads(render_case_logs_json(case_logs(tmp_path)))
    jsonschema.validate(found, json.loads(SCHEMA.read_text()))
    assert sum(found["comparison"]["before"]["histogram"]) == found["comparison"]["before"]["executions"]


def test_without_the_updater_there_is_nothing_to_compare(tmp_path):
    logs = case_logs(tmp_path, updater="nobody")
    assert logs.answer == "Neither log has a query of nobody, so there is nothing to compare."
    assert [one.measured for one in logs.figures if "updater" in one.name] == [(None, None)]


def test_a_background_that_sent_nothing_has_no_mean(tmp_path):
    empty = pa.table({"application": [], "executions": [], "sum_us": []})
    assert case_logs(tmp_path, idle=empty).idle_mean_ns is None


# ---- what is sent ----


@pytest.mark.parametrize(("way", "executions"), [("pipeline", 100), ("unnest", 1)])
def test_a_batch_is_sent_once_and_whole_however_small(way, executions):
    spec = case_source("clair", Options(levels={"rows": ["100"]}), full=False).spec
    (cell,) = cells(spec)
    pools = {name: [f"{name} {row}" for row in range(250)] for name in spec.workloads["update"].sources}
    request = batch_request(spec, cell, "update", way, Target("somewhere", {}), pools)
    assert (request.operations, request.warmup_operations, request.clients) == (1, 0, 1)
    (statement,) = request.statements
    assert statement.batch.times == executions
    assert [column[-1] for column in request.parameters] == [f"{name} 99" for name in pools]
