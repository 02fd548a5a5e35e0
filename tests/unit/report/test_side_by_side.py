"""Runs drawn side by side: over time from their beginnings, by level, by status, by cost."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.answered import compare_runs
from fakes.stored_loads import store_load
from uncork.model.results.run_comparison import RunSeries, SeriesPoint
from uncork.report.blocks import DotChart, Gallery, LineChart
from uncork.report.runs.comparison import build_runs_document
from uncork.report.write.html import html_page


def series(run, axis="time", shift=0.0, failed=0.0, **statuses):
    points = tuple(SeriesPoint(n + shift, 100.0 + n, failed, 1e6, 2e6 if n else None) for n in range(4))
    return RunSeries(run, axis, points, statuses)


@pytest.fixture
def compared(tmp_path):
    before, *others = (store_load(tmp_path / "runs", number) for number in range(3))
    return compare_runs(tmp_path / "runs", before, others)


def section(result, id):
    return next((one for one in build_runs_document(result).sections if one.id == id), None)


def lines(result, id="over-time"):
    return {one.title: one for one in section(result, id).blocks if isinstance(one, LineChart)}


def names(result):
    return (result.before.id, *(pair.after.id for pair in result.pairs))


def test_loads_lie_over_each_other_from_their_beginnings(compared):
    result = replace(compared, series=tuple(series(name) for name in names(compared)))
    charts = lines(result)
    assert list(charts) == ["Throughput over time", "Median latency over time", "99th percentile over time"]
    for chart in charts.values():
        assert [line.variant for line in chart.lines] == list(names(result))
        assert chart.axis == "time" and chart.x_title == "seconds since the start of each run"
    p99 = charts["99th percentile over time"]
    assert [x for x, _ in p99.lines[0].points] == [1.0, 2.0, 3.0]  # nothing succeeded in the first second
    assert p99.unit == "ns" and all(name in p99.description for name in names(result))


def test_stored_loads_bring_their_series(compared):
    assert [one.run for one in compared.series] == list(names(compared))
    assert all(one.axis == "time" and one.points for one in compared.series)


def test_failures_and_statuses_are_drawn_where_there_are_any(compared):
    first, second, third = names(compared)
    result = replace(
        compared,
        series=(
            series(first, **{"200": 90, "503": 10}),
            series(second, failed=3.0, **{"200": 10}),
            series(third),
        ),
    )
    assert "Failures over time" in lines(result)
    (dots,) = [one for one in section(result, "over-time").blocks if isinstance(one, DotChart)]
    told = {(one.label, one.variant): one.value for one in dots.marks}
    assert told == {("200", first): 0.9, ("200", second): 1.0, ("503", first): 0.1, ("503", second): 0.0}


def answered(run, *by_second):
    """A run whose answers of each second had these statuses."""
    points = tuple(
        SeriesPoint(float(n), 9.0, 0.0, 1e6, 2e6, statuses) for n, statuses in enumerate(by_second)
    )
    sums = {}
    for statuses in by_second:
        for status, number in statuses.items():
            sums[status] = sums.get(status, 0) + number
    return RunSeries(run, "time", points, sums)


def test_statuses_lie_over_each_other_as_shares_of_each_second_on_one_scale(compared):
    first, second, third = names(compared)
    result = replace(
        compared,
        series=(
            answered(first, {"200": 90, "404": 10}, {"200": 100}, {"503": 50, "200": 150}),
            answered(second, {"200": 100}, {}, {"201": 100}),
            series(third, **{"200": 10}),
        ),
    )
    (gallery,) = [one for one in section(result, "over-time").blocks if isinstance(one, Gallery)]
    missing, unavailable = gallery.charts
    assert (missing.title, unavailable.title) == ("Status 404 over time", "Status 503 over time")
    assert [(line.variant, line.points) for line in unavailable.lines] == [
        (first, ((0.0, 0.0), (1.0, 0.0), (2.0, 0.25))),
        (second, ((0.0, 0.0), (2.0, 0.0))),
    ], "there is no share of a second without an answer"
    assert missing.most == unavailable.most == 0.25 and unavailable.unit == "share"
    assert unavailable.description == f"{first}: from 0.0 % to 25.0 %, first at 2 s. {second}: none."
    page = html_page(build_runs_document(result))
    assert "Status 503 over time" in page and "25 %</text>" in page


def test_one_status_takes_the_width_of_the_page_and_2xx_alone_is_not_drawn(compared):
    pair = replace(compared, pairs=compared.pairs[:1])
    first, second = names(pair)
    good = answered(second, {"200": 5}, {"206": 5})
    drawn = lines(replace(pair, series=(answered(first, {"200": 1}, {"503": 1}), good)))
    assert drawn["Status 503 over time"].wide
    drawn = lines(replace(pair, series=(answered(first, {"200": 1}, {"200": 1}), good)))
    assert not any(title.startswith("Status") for title in drawn)


def test_sweeps_are_drawn_by_level_and_unlike_ones_not_at_all(compared):
    swept = replace(compared, series=tuple(series(name, "clients", 1.0) for name in names(compared)))
    assert "Throughput by level" in lines(swept)
    mixed = replace(compared, series=(series("a"), series("b", "rate")))
    assert section(mixed, "over-time") is None
    assert section(replace(compared, series=()), "over-time") is None


def test_costs_stand_side_by_side(compared):
    (gallery,) = [one for one in section(compared, "costs").blocks if isinstance(one, Gallery)]
    charts = {one.title: one for one in gallery.charts}
    marks = charts["Processor time per operation"].marks
    assert {one.variant for one in marks} == set(names(compared))
    assert "server CPU" in {one.label for one in marks}
    assert charts["Processor time per operation"].unit == "ns"


def test_many_runs_are_at_a_glance_beside_the_first(compared):
    (table,) = section(compared, "glance").blocks
    assert [column.title for column in table.columns] == ["metric", *names(compared)]
    row = next(row for row in table.rows if row[0].text == "throughput")
    assert row[1].text.endswith("/s") and row[2].more
    assert section(replace(compared, pairs=compared.pairs[:1]), "glance") is None
