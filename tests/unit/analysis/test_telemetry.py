"""A run's series as metrics: answers by status, of each second where they are known so."""

from __future__ import annotations

from fakes.http_results import store_http_load
from uncork.analysis.runs.telemetry import measured_from, run_telemetry
from uncork.store.layout import read_manifest

SECOND = 10**9


def answers(folder):
    (metric,) = [one for one in run_telemetry(folder).metrics if one.name == "uncork.load.answers"]
    begun = measured_from(read_manifest(folder))
    return metric, [
        (one.attributes["http.response.status_code"], one.value, one.start_ns - begun, one.time_ns - begun)
        for one in metric.points
    ]


def test_answers_are_told_by_status_and_second(tmp_path):
    metric, found = answers(store_http_load(tmp_path))
    assert metric.kind == "delta" and metric.description == "Answers of each second, by status."
    assert [one for one in found if one[0] == 503] == [
        (503, 10, 13 * SECOND, 14 * SECOND),
        (503, 30, 14 * SECOND, 15 * SECOND),
    ]
    assert sum(number for status, number, *_ in found if status == 200) == 9_995
