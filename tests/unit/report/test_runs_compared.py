"""Runs that are compared: drawn side by side, and by statement."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from fakes.answered import compare_runs
from fakes.cures import proven_cure
from fakes.stored_loads import store_load
from fakes.terminals import shown
from uncork.model.results.run_comparison import (
    FigureComparison,
    RunComparison,
    RunPair,
    RunSeries,
    RunSide,
    RunVerdict,
    SeriesPoint,
)
from uncork.report.blocks import DotChart, Gallery, LineChart, Table
from uncork.report.cure.answer import answer_cure, cure_steps
from uncork.report.findings import server_conninfo
from uncork.report.headline import fits, split_answer
from uncork.report.runs.comparison import build_runs_document, render_runs_terminal
from uncork.report.runs.comparison_answer import answer_runs, interval_words, speed_words, statements_table
from uncork.report.words import effect_with_interval, interval_ends, interval_text
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


ORDERS = "select count(*) from orders where customer = ?"
OTHER = "update orders set state = ? where id = ?"


def figure(subject, name, before, after, **changes):
    unit = {"mean": "ns", "calls": "/s"}.get(name, "")
    found = FigureComparison(
        *(subject, name, unit, "lower" if unit == "ns" else "", "ratio", before, after, after / before),
        *(None, None, RunVerdict.NOT_ENOUGH_EVIDENCE, "too few comparable runs", (), 0, None, 0, 0, 0, 0),
    )
    return replace(found, **changes)


def side(name, command="uncork profile db host=db --for 5min --since cure-1"):
    return RunSide(
        name, (), "database", "complete", "2026-05-31T10:00:00+00:00", "", "ada@db:1/x", None, command
    )


def statements_compared(**changes):
    mean = figure(
        *(ORDERS, "mean", 82e6, 33e3),
        verdict=RunVerdict.FASTER, low=0.00015, high=0.0011, assumed=True,
        before_count=12_000, after_count=15_400, reason="the interval excludes no difference",
    )  # fmt: skip
    figures = (
        *(mean, figure(ORDERS, "calls", 40.0, 51.3), figure(ORDERS, "rows each", 1.0, 1.0)),
        *(
            figure(OTHER, "mean", 1e6, 1.1e6, low=0.4, high=2.9, assumed=True),
            figure(OTHER, "calls", 9.0, 9.0),
        ),
        figure("", "busy sessions", 3.3, 0.02, low=1e-6, high=3.0),
    )
    pair = RunPair(side("after-1"), (), figures, (), 0, (), (), (), changed=(ORDERS,))
    result = RunComparison(
        side("before-1", "uncork cure host=db"), "", (), (replace(pair, **changes),), (), 0.95, 0.03, "1",
        cure="cure-1",
    )  # fmt: skip
    return answer_runs(result)


def test_the_answer_after_a_cure_is_the_time_of_a_call_before_and_after():
    result = statements_compared()
    headline, lead = split_answer(result.answer)
    assert headline == f'"{ORDERS}" is 2 500 times faster: 33.0 µs a call instead of 82.0 ms.' and fits(
        headline
    )
    assert lead == "It was called 12 000 times before and 15 400 times after."
    assert any(one.startswith("One watch on each side cannot show") for one in result.reasons)
    text = shown(render_runs_terminal, result, width=100, force_terminal=False)
    assert (
        "82.0 ms → 33.0 µs a call, 2 500 times faster (95 % interval: 910 to 6 700 times), ✓ faster" in text
    )
    assert "40 → 51.3 calls a second, 1 rows a call" in text
    assert max(map(len, text.splitlines())) <= 100


def test_the_steps_never_copy_production_again():
    (step,) = statements_compared().steps
    assert step.command == "uncork profile db host=db --for 5min --since cure-1"
    advised = statements_compared(after=side("after-1", "uncork advise host=db")).steps[0]
    assert advised.command == "uncork profile db 'host=db port=1 user=ada dbname=x' --since cure-1"


def test_a_changed_statement_that_did_not_run_is_named():
    result = statements_compared(changed=(ORDERS, "delete from gone where id = ?"))
    assert any("delete from gone where id = ?" in one and "did not run" in one for one in result.reasons)
    assert "its effect on the server is unknown" in statements_compared(changed=("delete from gone",)).answer


def test_changed_statements_come_first_in_the_table():
    result = statements_compared(changed=(OTHER,))
    table = statements_table(result.before, result.pairs[0])
    assert [row[-1].text for row in table.rows] == [OTHER, ORDERS]
    assert [row[2].text for row in table.rows] == ["10 % more time", "2 500 times faster"]


def test_no_interval_wider_than_a_factor_of_100_is_printed_as_figures():
    for low, high in ((1e-3, 2.6e14), (1.0, 101.0), (0.001, 0.2)):
        for text in (interval_text(low, high), interval_ends(low, high), interval_words(low, high)):
            assert "unknown" in text and not re.search(r"\d", text)
        assert effect_with_interval(math.sqrt(low * high), low, high).endswith(" [unknown]")
    assert interval_text(1.0, 100.0) == "[×1, ×100]"
    document = build_runs_document(statements_compared())
    tables = [block for section in document.sections for block in section.blocks if isinstance(block, Table)]
    cells = [value.text for table in tables for row in table.rows for value in row]
    assert "[unknown]" in cells and not any("×3" in cell for cell in cells)


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        *((33e-6 / 82e-3, "2 500 times faster"), (0.5, "2 times faster"), (0.7, "30 % less time")),
        *((1.0, "0 % more time"), (1.25, "25 % more time"), (4.1, "4.1 times slower")),
    ],
)
def test_a_change_is_in_per_cent_up_to_a_factor_of_two(ratio, words):
    assert speed_words(ratio) == words


def test_the_hand_over_names_one_command_that_compares_on_the_server():
    steps = {step.text: step.command for step in cure_steps(proven_cure())}
    (command,) = [one for text, one in steps.items() if text.startswith("Afterwards")]
    assert command == (
        "uncork profile db 'host=db.example port=5432 user=ada dbname=shop' --for 5min "
        "--since cure-shop-20260531-101000"
    )
    elsewhere = replace(proven_cure(), reproduce="uncork cure host=db --runs '/my runs' --budget 10min")
    assert any(
        (one.command or "").endswith("--since cure-shop-20260531-101000 --runs '/my runs'")
        for one in cure_steps(answer_cure(elsewhere))
    )


def test_names_with_spaces_and_quotes_work_in_a_connection_string():
    assert server_conninfo("watch er@/run/pg:5432/it's") == (
        "host=/run/pg port=5432 user='watch er' dbname='it\\'s'"
    )
