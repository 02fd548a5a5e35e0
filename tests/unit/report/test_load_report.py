"""What is said of a load, and its writers: nothing is invented, nothing breaks at the edges.

The texts are in golden/load.
"""

from __future__ import annotations

import io
import json
from dataclasses import replace

import jsonschema
import pytest
from rich.console import Console

from fakes.cures import missing_index
from fakes.goldens import compare_cases, spoken
from fakes.http_results import http_result
from fakes.load_results import (
    CLOSED_SPEC,
    OPEN_SPEC,
    closed_load,
    closed_result,
    open_load,
    open_result,
    refused_result,
    result_of,
)
from uncork.model.bottleneck import Bottleneck
from uncork.model.load import FailureTotals, LoadMeasurement, LoadOutcome
from uncork.model.results.load import Distribution, SteadyFacts
from uncork.report.blocks import Fold, Legend
from uncork.report.draw.marks import Palette
from uncork.report.load.answer import answer_load, slowest_words
from uncork.report.load.charts import (
    SERIES,
    distribution_chart,
    failures_chart,
    percentiles_chart,
    statuses_chart,
    throughput_chart,
)
from uncork.report.load.document import build_load_document, render_load_terminal
from uncork.report.load.gobench import render_go_bench
from uncork.report.load.tables import errors_table
from uncork.report.load.words import code_words, short_sql
from uncork.report.words import part_text, rate_text
from uncork.report.write.exports import export, exports
from uncork.report.write.html import html_page
from uncork.report.write.json_document import json_text
from uncork.report.write.schemas import result_schema

RESULTS = {"closed": closed_result, "open": open_result, "refused": refused_result, "http": http_result}
SECOND = 10**9


def changed(measured: LoadMeasurement, spec=CLOSED_SPEC, **totals: object):
    summed = replace(measured.totals, **totals)
    return result_of(spec, LoadMeasurement(summed, measured.times, measured.series))


def failed(**totals: object):
    """Return a load of which nothing succeeded."""
    error = {"first_error": "no table", "errors": {"42P01": 9}}
    return changed(closed_load(), succeeded=0, started=9, failed=9, **error, **totals)


def steady(outcome: str, start_ns: int | None, *figures: float):
    return answer_load(
        replace(closed_result(), steady=SteadyFacts(outcome, "throughput", 30, start_ns, *figures))
    )


def limited(resource: str, words: str, remedy: str):
    known = replace(closed_result(), bottlenecks=(Bottleneck(resource, words, remedy, 1.0),))
    return answer_load(known)


def http(**facts: int):
    result = http_result()
    return answer_load(replace(result, http=replace(result.http, **facts)))


# ---- the answer ----


def test_answers_and_warnings():
    short = open_result()
    results = {
        **{name: make() for name, make in RESULTS.items()},
        **{f"ended: {outcome}": changed(closed_load(), outcome=outcome) for outcome in LoadOutcome},
        "nothing succeeded": failed(),
        "ended because nothing succeeded": failed(outcome=LoadOutcome.NOTHING_SUCCEEDED, message="no table"),
        "nothing started": changed(closed_load(), succeeded=0, started=0),
        "few transactions": changed(closed_load(), succeeded=200, started=200),
        "a short replay": answer_load(replace(short, settings=replace(short.settings, recorded="replay"))),
        "cut short at the end": changed(open_load(), OPEN_SPEC, failed=22, succeeded=1_398),
        "limited by locks": limited("locks", "most requests wait", "find who holds"),
        "a service that closes after each request": http(closed=1, closed_least=1, closed_most=1),
        "datagrams dropped by this machine": http(udp_dropped=35),
        "a warm-up": steady("warm-up", 3 * SECOND, 412.0, 2_000_000, 9_000_000),
        "not steady at first": steady("not steady", 4 * SECOND),
        "never steady": steady("not steady", None),
    }
    compare_cases(
        "load/answers", [(name, one.answer, "\n".join(one.warnings)) for name, one in results.items()]
    )


def test_reasons_and_steps():
    watched = replace(closed_result(), findings=(missing_index(),), database="app@10.0.0.7:5432/shop")
    results = {
        "a load whose bottleneck is not known": closed_result(),
        "an open loop": open_result(),
        "a bottleneck": limited("machine cpu", "it is full", "stop it"),
        "a finding about the database": watched,
        "a finding about a database that is gone": replace(
            watched, run=replace(watched.run, server="embedded")
        ),
        "a healthy database": replace(watched, findings=()),
        "not steady": steady("not steady", 4 * SECOND),
    }
    cases = []
    for name, result in results.items():
        document = build_load_document(result)
        sections = ", ".join(section.id for section in document.sections)
        cases.append((name, *spoken(document), f"Sections: {sections}"))
    compare_cases("load/steps", cases)


@pytest.mark.parametrize(
    ("p95", "counts", "words"),
    [
        ((9_000_000, 1_000_000), (500, 500), "the slowest script is a.sql (95 % under 9.00 ms, 90 % of the"),
        # The same p95: only the total time tells them apart.
        ((1_000_000, 1_010_000), (900, 100), "a.sql took 90 % of the time of all scripts"),
        # A p95 of ten executions is their maximum.
        ((1_000_000, 9_000_000), (990, 10), "a.sql took 92 % of the time of all scripts"),
        ((0, 1_000_000), (0, 100), "b.sql took 100 % of the time of all scripts"),
    ],
)
def test_the_slowest_of_several_scripts_is_named(p95, counts, words):
    first, _ = closed_result().scripts
    scripts = tuple(
        replace(first, name=name, latency=Distribution(count, mean_ns=float(most), p95_ns=most))
        for name, count, most in zip(("a.sql", "b.sql"), counts, p95, strict=True)
    )
    assert slowest_words(replace(closed_result(), scripts=scripts)).startswith(words)
    assert slowest_words(replace(closed_result(), scripts=scripts[:1])) == ""


def test_errors_are_shown_by_statement_and_the_rest_as_such():
    failures = (
        FailureTotals("42P01", 5, "a.sql", 2, "SELECT\n 1;", "a.sql:2: no table"),
        FailureTotals("08006", 2, "a.sql", None, None, "gone"),
    )
    found = changed(closed_load(), errors={"42P01": 9, "08006": 2}, failed=11, failures=failures)
    table = errors_table(found)
    shown = [tuple(value.text for value in row[1:]) for row in table.rows]
    assert shown == [
        ("42P01 no such table", "5", "SELECT 1;", "a.sql:2: no table"),
        ("08006 connection lost", "2", "", "gone"),
        ("42P01 no such table", "4", "other statements", ""),
    ]


# ---- words ----


def test_words_for_figures():
    assert rate_text(51_234.4) == "51 234"
    assert rate_text(12.345) == "12.3"
    assert part_text(1, 1_000_000) == "under 0.01 %"
    assert part_text(999_999, 1_000_000) == "100.00 %"
    assert part_text(0, 0) == "0 %"
    assert code_words("40P01") == "40P01 deadlock"
    assert code_words("XX000") == "XX000"
    assert short_sql("SELECT 1\n  FROM   t") == "SELECT 1 FROM t"
    assert len(short_sql("x" * 100)) == 60


# ---- charts ----


def test_charts_show_what_was_counted():
    result = open_result()
    (line,) = throughput_chart(result).lines
    assert [y for _, y in line.points] == [second.succeeded for second in result.series]
    assert [line.variant for line in percentiles_chart(result).lines] == ["p50", "p99", "max"]
    assert [line.variant for line in distribution_chart(result).lines] == [
        "from the intended start",
        "service time",
    ]
    (line,) = failures_chart(result).lines
    assert [y for _, y in line.points] == [0, 0, 16, 4, 0]


def test_charts_without_content_are_left_out():
    assert failures_chart(closed_result()) is None
    for chart in (throughput_chart, percentiles_chart, distribution_chart, failures_chart):
        assert chart(refused_result()) is None


def statuses_of(by_second):
    result = http_result()
    seconds = [replace(one, statuses={}) for one in result.series]
    for second, statuses in by_second.items():
        seconds[second] = replace(seconds[second], statuses=statuses)
    return replace(result, series=tuple(seconds))


def test_statuses_are_drawn_over_time_and_say_when_they_came():
    result = http_result()
    chart = statuses_chart(result)
    assert [line.variant for line in chart.lines] == ["200", "503"]
    assert [y for _, y in chart.lines[1].points] == [0.0] * 13 + [10.0, 30.0]
    assert chart.description == "Answers a second: 200 from 657 to 667; 503 from 0 to 30, first at 13 s."
    (section,) = [one for one in build_load_document(result).sections if one.id == "series"]
    assert section.blocks[-2:] == (Legend(("200", "503")), chart)


def test_many_statuses_are_drawn_by_class():
    found = statuses_of({n: {"200": 5, str(400 + n): 1, "503": 2} for n in range(6)})
    assert [line.variant for line in statuses_chart(found).lines] == ["2xx", "4xx", "5xx"]
    assert statuses_chart(found).lines[1].points[:7] == tuple(
        (float(n), 1.0 if n < 6 else 0.0) for n in range(7)
    )


@pytest.mark.parametrize(
    "by_second", [{}, {n: {"200": 3} for n in range(9)}], ids=["no answer", "one status"]
)
def test_one_status_or_none_over_time_is_not_drawn(by_second):
    assert statuses_chart(statuses_of(by_second)) is None
    assert build_load_document(statuses_of(by_second)).variants == SERIES


def test_each_status_has_a_colour_of_its_own_in_the_page_and_its_files():
    document = build_load_document(http_result())
    (number,) = [one.number for one in exports(document) if one.title == "Status codes over time"]
    palette = Palette(document.variants, document.baseline)
    assert palette.number("200") == palette.number("succeeded") != palette.number("503")
    figures = export(document, number, "csv").decode().splitlines()
    assert figures[0] == 'variant,style,seconds from the beginning,"answers a second, by their status"'
    assert "503,measured,13.0,10.0" in figures
    assert b">503<" in export(document, number, "svg")


def test_a_long_load_keeps_its_charts_small():
    measured = closed_load()
    last = measured.series[-1]
    series = tuple(
        replace(last, interval=number, start_ns=number * 10**9, succeeded=1 + number % 2, histogram=None)
        for number in range(10_000)
    )
    totals = replace(measured.totals, elapsed_ns=10_000 * 10**9)
    result = result_of(CLOSED_SPEC, LoadMeasurement(totals, measured.times, series))
    (line,) = throughput_chart(result).lines
    assert len(line.points) <= 1_200
    assert sum(y for _, y in line.points) / len(line.points) == pytest.approx(1.5, rel=0.01)


# ---- writers ----


@pytest.mark.parametrize("name", RESULTS)
def test_the_page_is_whole_and_says_the_answer_first(name):
    result = RESULTS[name]()
    page = html_page(build_load_document(result))
    assert page.count("<h1") == 1
    assert page.index("<h1") < page.index("What to know") if result.warnings else True
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "hush" not in page
    assert page.count("<svg") >= {"closed": 3, "open": 4, "refused": 0, "http": 4}[name]
    links = {f'href="#{section.id}"' for section in build_load_document(result).sections}
    assert all(link in page for link in links)


def test_scripts_come_first():
    first = build_load_document(closed_result()).sections[0]
    assert first.id == "scripts" and any(isinstance(one, Fold) for one in first.blocks)


@pytest.mark.parametrize("name", RESULTS)
def test_the_document_keeps_to_its_schema(name):
    data = json.loads(json_text(RESULTS[name]()))
    jsonschema.Draft202012Validator(result_schema("load-result")).validate(data)
    assert (data["kind"], data["version"]) == ("load", 1)


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("width", [40, 200])
def test_any_terminal_shows_it(name, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    render_load_terminal(RESULTS[name](), console, statements=True)
    text = " ".join(console.file.getvalue().split())
    assert RESULTS[name]().answer in text


def test_statements_are_shown_when_asked_for():
    def shown(statements):
        console = Console(file=io.StringIO(), width=120, color_system=None)
        render_load_terminal(closed_result(), console, statements=statements)
        return console.file.getvalue()

    assert "UPDATE pgbench_accounts" in shown(True)
    assert "UPDATE pgbench_accounts" not in shown(False)


# ---- Go's benchmarks ----


def test_every_line_is_one_that_benchstat_reads():
    lines = render_go_bench(closed_result()).splitlines()
    results = [line.split() for line in lines if line.startswith("Benchmark")]
    assert [fields[0].split("/")[1] for fields in results] == [
        "script=all",
        "script=tpcb-like",
        "script=select-only",
    ]
    for name, count, *pairs in results:
        assert name.startswith("BenchmarkLoadSQL/script=")
        assert name.endswith("/protocol=prepared/clients=8")
        assert int(count) > 0
        assert len(pairs) % 2 == 0
        assert all(float(value) >= 0 for value in pairs[::2])
        assert {"ns/op", "p50-ns", "p99-ns", "tps"} <= set(pairs[1::2])
    units = {line.split()[1] for line in lines if line.startswith("Unit ")}
    assert units == set(results[0][3::2])


def test_what_was_not_measured_has_no_line():
    assert "Benchmark" not in render_go_bench(refused_result())


def test_a_name_holds_nothing_that_separates():
    odd = replace(open_result(), scripts=(replace(open_result().scripts[0], name="my orders/week=1.sql"),))
    (line,) = [line for line in render_go_bench(odd).splitlines() if line.startswith("Benchmark")]
    assert "/script=my_orders_week_1.sql/" in line
    assert "/arrivals=poisson/rate=300 " in line


def test_a_section_without_tables_is_left_out():
    bare = replace(http_result(), scripts=(), statements=())
    sections = build_load_document(bare).sections
    assert sections and all(section.blocks for section in sections)
