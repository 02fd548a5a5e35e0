"""Results of oha, vegeta, Criterion, pytest-benchmark and JMH, as they wrote them, and tables of metrics."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from uncork.errors import UsageError
from uncork.profile.imported.reading import read_folder, read_results

RESULTS = Path(__file__).parents[2] / "fixtures" / "results"
CRITERION = {
    path.relative_to(RESULTS / "criterion").as_posix(): path.read_text()
    for path in (RESULTS / "criterion").rglob("*.json")
}


def read_one(text, file="x"):
    (found,) = read_results(text, file)
    return found


def read(name):
    return read_one((RESULTS / name).read_text(), name)


def document(name):
    return json.loads((RESULTS / name).read_text())


def values(result, subject=""):
    return {one.name: pytest.approx(one.value) for one in result.figures if one.subject == subject}


def changed(name, path, value):
    """Return a fixture's text with another value at a path; without the key if the value is `...`."""
    data = copy.deepcopy(document(name))
    place = data
    for key in path[:-1]:
        place = place[key]
    if value is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return json.dumps(data)


# ---- oha ----


def test_oha():
    found = values(read("oha.json"))
    assert found["throughput"] == 300 / 1.824927962
    assert (found["mean"], found["p50"], found["p99"]) == (48049866.28, 44070451, 52048540)
    assert (found["first byte p50"], found["connect mean"]) == (44069321, 127057629.5)
    assert found["failed"] == 5 / 300
    assert "p99.9" not in found  # none of 300 requests lies beyond it


def test_oha_counts_no_refused_connection_as_throughput():
    found = read("oha-refused.json")
    assert values(found) == {"failed": 1.0, "error of connections": 1.0}


def test_requests_that_oha_cut_off_at_the_end_did_not_fail():
    found = read("oha-time.json")
    (failed,) = [one for one in found.figures if one.name == "failed"]
    assert (failed.count, failed.of) == (2, 88)


# ---- vegeta ----


def test_the_report_of_vegeta():
    found = read("vegeta-report.json")
    assert found.started_at == "2026-11-27T09:19:52+00:00"
    assert values(found) == {
        **{"throughput": 48.8953896577097, "mean": 31109006, "p50": 44716008, "p90": 46575051},
        **{"p95": 48749989, "p99": 50147207, "failed": 0.01},
    }


@pytest.mark.parametrize("name", ["vegeta-requests.jsonl", "vegeta-requests.csv"])
def test_the_requests_of_vegeta_have_the_metrics_of_its_report(name):
    found, report = read(name), values(read("vegeta-report.json"))
    assert (found.series, found.question) == ("shop", "vegeta: GET http://127.0.0.1:8080/")
    assert found.started_at == "2026-11-27T09:19:52+00:00"
    own = {one.name: one.value for one in found.figures}
    assert set(own) == set(report)
    for metric in ("throughput", "mean", "failed"):
        assert own[metric] == pytest.approx(report[metric].expected, rel=1e-6)
    for metric in ("p50", "p90", "p95", "p99"):  # vegeta estimates quantiles, uncork takes requests
        assert own[metric] == pytest.approx(report[metric].expected, rel=0.05)


def test_requests_that_failed_have_an_error_or_a_wrong_status():
    lines = [json.loads(line) for line in (RESULTS / "vegeta-requests.jsonl").read_text().splitlines()]
    lines[0] |= {"code": 0, "error": "dial tcp: connection refused"}
    lines[1] |= {"code": 302}
    found = read_one("\n".join(map(json.dumps, lines)))
    (failed,) = [one for one in found.figures if one.name == "failed"]
    assert (failed.count, failed.of) == (2, 100)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"latency": 1', "line 2 is not valid JSON"),
        ('{"code": 200, "timestamp": "2026-05-31T08:30:00Z"}', '"line 2: latency" is missing'),
        (
            '{"code": 200, "timestamp": "soon", "latency": 1}',
            '"line 2: timestamp" is "soon"; expecting a time',
        ),
        ('{"code": 200, "timestamp": "2026-05-31T08:30:00Z", "latency": -1}', "at least 0"),
    ],
)
def test_wrong_requests_name_their_line(line, said):
    first = (RESULTS / "vegeta-requests.jsonl").read_text().splitlines()[0]
    with pytest.raises(
        UsageError, match=r"^x\.jsonl is damaged: .*write it again with: vegeta encode"
    ) as told:
        read_results(f"{first}\n{line}\n", "x.jsonl")
    assert said in str(told.value)


def test_wrong_columns_name_their_line():
    first = (RESULTS / "vegeta-requests.csv").read_text().splitlines()[0]
    with pytest.raises(UsageError, match="line 2 has 2 columns; expecting at least 8"):
        read_results(f"{first}\n1,2\n", "x.csv")
    with pytest.raises(UsageError, match='line 2: "-5" is not a whole number'):
        read_results(f"{first}\n{first.replace(first.split(',')[2], '-5')}\n", "x.csv")


# ---- pytest-benchmark ----


def test_pytest_benchmark_knows_machine_commit_and_branch():
    found = read("pytest-benchmark.json")
    assert found.environment == {
        "machine": {"processor": "AMD EPYC", "architecture": "x86_64"},
        "language": {"version": "CPython 3.11.7"},
    }
    assert (found.commit, found.branch) == ("3f2c9d0b7a6e41c5b8d2e9f0a1b2c3d4e5f60718-dirty", "main")
    assert found.started_at == "2026-11-27T09:19:50+00:00"
    stats = document("pytest-benchmark.json")["benchmarks"][0]["stats"]
    subject = "tests/test_sums.py::test_sum[10]"
    assert values(found, subject) == {
        "mean": stats["mean"] * 1e9,
        "p50": stats["median"] * 1e9,
        "fastest": stats["min"] * 1e9,
    }
    expected = stats["stddev"] / stats["rounds"] ** 0.5 / stats["mean"]
    assert found.figures[0].within == pytest.approx(expected)


def test_a_time_without_an_offset_is_in_utc_and_unknown_commits_are_none():
    data = document("pytest-benchmark.json")
    data["datetime"] = "2026-05-31T08:30:00.5"
    data["commit_info"] = {"id": "unversioned", "dirty": False, "branch": "(detached head)"}
    found = read_one(json.dumps(data))
    assert (found.started_at, found.commit, found.branch) == ("2026-05-31T08:30:00+00:00", "", "")


# ---- JMH ----


def test_jmh_in_all_modes():
    found = read("jmh.json")
    first = document("jmh.json")[0]["primaryMetric"]
    assert values(found, "org.example.Sums.max (rows=10)") == {"throughput": first["score"] * 1e3}
    forks = [sum(fork) / len(fork) for fork in first["rawData"]]
    assert len(forks) == 2
    assert found.figures[0].within == pytest.approx(abs(forks[1] / forks[0] - 1) / 2, rel=0.1)
    assert values(found, "org.example.Sums.sum (rows=1000)") == {"mean": 1416.1944411142456}
    sampled = values(found, "org.example.Sums.root (rows=1000, sampled)")
    assert (sampled["p50"], sampled["p99"]) == (2000, 2200)
    assert found.environment["language"]["version"] == "OpenJDK 64-Bit Server VM 17.0.15"


def test_one_fork_says_nothing_about_how_forks_differ():
    data = document("jmh.json")
    for one in data:
        one["primaryMetric"]["rawData"] = one["primaryMetric"].get("rawData", [])[:1]
    assert all(figure.within is None for figure in read_one(json.dumps(data)).figures)


@pytest.mark.parametrize(
    ("unit", "metric", "value"),
    [
        ("ops/s", "throughput", 10.0),
        ("ops/us", "throughput", 10e6),
        ("ops/min", "throughput", 10 / 60),
        ("ns/op", "mean", 10.0),
        ("s/op", "mean", 10e9),
        ("hr/op", "mean", 36e12),
    ],
)
def test_units_of_jmh(unit, metric, value):
    data = document("jmh.json")[:1]
    data[0]["primaryMetric"] |= {"score": 10.0, "scoreUnit": unit, "scoreError": "NaN"}
    assert values(read_one(json.dumps(data)), "org.example.Sums.max (rows=10)") == {metric: value}


def test_bytes_allocated_each_are_read():
    data = document("jmh.json")[:1]
    data[0]["secondaryMetrics"] = {
        "·gc.alloc.rate.norm": {"score": 24.0, "scoreUnit": "B/op"},
        "·gc.alloc.rate": {"score": 99.0, "scoreUnit": "MB/sec"},
    }
    assert values(read_one(json.dumps(data)), "org.example.Sums.max (rows=10)")["bytes each"] == 24.0


# ---- Criterion ----


def test_criterion():
    found = read_folder(CRITERION, "target/criterion")
    assert found.question == "Criterion: parse one, sum/rows/10, sum/rows/1000"
    estimates = json.loads(CRITERION["sum/rows/10/new/estimates.json"])
    mean = estimates["mean"]
    assert values(found, "sum/rows/10") == {
        "mean": mean["point_estimate"],
        "p50": estimates["median"]["point_estimate"],
        "throughput": 10e9 / mean["point_estimate"],
    }
    within = next(one.within for one in found.figures if one.subject == "sum/rows/10")
    assert within == pytest.approx(mean["standard_error"] / mean["point_estimate"])


def test_bytes_of_criterion_are_bytes_a_second():
    files = dict(CRITERION)
    path = "sum/rows/10/new/benchmark.json"
    files[path] = files[path].replace('{"Elements":10}', '{"Bytes":100}')
    found = values(read_folder(files, "x"), "sum/rows/10")
    assert found["bytes a second"] == 100e9 / found["mean"].expected
    assert "throughput" not in found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"sum/rows/10/new/benchmark.json": None}, "sum/rows/10/new/benchmark.json is missing"),
        ({"sum/rows/10/new/estimates.json": "{"}, "sum/rows/10/new/estimates.json is not valid JSON"),
        ({"sum/rows/10/new/estimates.json": "{}"}, '"sum/rows/10/new/estimates.json: mean" is missing'),
        ({path: None for path in CRITERION}, "a folder without results of Criterion"),
    ],
)
def test_a_damaged_folder_of_criterion(change, said):
    files = {path: change.get(path, text) for path, text in CRITERION.items()}
    with pytest.raises(UsageError) as told:
        read_folder({path: text for path, text in files.items() if text is not None}, "target/criterion")
    assert said in str(told.value)
    assert str(told.value).startswith("target/criterion")


# ---- a table ----


TABLE = """time,commit,metric,value,unit,of
2026-05-01T08:00,aaa,p99,12.5,ms,
2026-05-01T08:00,aaa,throughput,1000,/s,
2026-05-01T08:00,aaa,p99,30,ms,checkout
1777708800,bbb,p99,13,ms,
"""


def test_a_table_has_a_run_for_each_time():
    first, second = read_results(TABLE, "nightly/shop.csv")
    assert (first.started_at, first.commit, first.series) == ("2026-05-01T08:00:00+00:00", "aaa", "shop")
    assert values(first) == {"p99": 12.5e6, "throughput": 1000}
    assert values(first, "checkout") == {"p99": 30e6}
    assert (second.started_at, second.commit) == ("2026-05-02T08:00:00+00:00", "bbb")
    assert first.digest != second.digest


def test_a_row_that_is_added_leaves_the_other_runs_as_they_were():
    longer = f"{TABLE}2026-05-03,ccc,p99,14,ms,\n"
    assert [one.digest for one in read_results(longer, "x")][:2] == [
        one.digest for one in read_results(TABLE, "x")
    ]


def test_repeated_values_are_samples():
    (found,) = read_results("time,metric,value\n2026-05-01,n,1\n2026-05-01,n,2\n2026-05-01,n,4\n", "x")
    (figure,) = found.figures
    assert figure.value == pytest.approx(7 / 3)
    assert figure.within == pytest.approx(0.4, abs=0.01)
    assert figure.better == ""


@pytest.mark.parametrize(
    ("metric", "better"), [("p99", "lower"), ("p99.9", "lower"), ("latency_mean", "lower"), ("tps", "higher"),
                           ("throughput", "higher"), ("p99 of x", ""), ("rows", "")],
)  # fmt: skip
def test_the_name_of_a_metric_can_say_which_direction_is_better(metric, better):
    (found,) = read_results(f"time,metric,value\n2026-05-01,{metric},1\n", "x.csv")
    assert found.figures[0].better == better


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_capitals_blanks_and_marks_of_spreadsheets(separator):
    text = "\ufeff" + "Time,Metric,Value,Unit,Better\r\n2026-05-01, queue ,3,,lower\r\n\r\n".replace(
        ",", separator
    )
    (found,) = read_results(text, "x")
    assert [(one.name, one.value, one.better) for one in found.figures] == [("queue", 3.0, "lower")]


@pytest.mark.parametrize(
    ("unit", "value", "base"),
    [("%", 0.05, "share"), ("µs", 5e3, "ns"), ("min", 300e9, "ns"), ("KiB", 5120, "B"), ("tps", 5, "/s")],
)
def test_units_of_a_table(unit, value, base):
    (found,) = read_results(f"time,metric,value,unit\n2026-05-01,x,5,{unit}\n", "x")
    assert (found.figures[0].value, found.figures[0].unit) == (pytest.approx(value), base)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("soon,p99,1,ms,lower", 'line 2: "time" is "soon"; expecting a time such as 2026-05-31T08:30'),
        ("12,p99,1,ms,lower", 'line 2: "time" is "12"'),
        ("2026-05-01,,1,ms,lower", 'line 2: "metric" is empty'),
        ("2026-05-01,p99,NaN,ms,lower", 'line 2: "value" is "NaN"; expecting a number: leave out rows'),
        ("2026-05-01,p99,,ms,lower", 'line 2: "value" is ""'),
        ("2026-05-01,p99,1e999,ms,lower", 'line 2: "value" is "1e999"'),
        ("2026-05-01,p99,1,fortnight,lower", 'line 2: "unit" is "fortnight"; expecting one of %, ns'),
        ("2026-05-01,p99,1,ms,less", 'line 2: "better" is "less"; expecting lower, higher, or nothing'),
        ("2026-05-01,p99,1", "line 2 has 3 columns, but the first line has 5"),
        ("2026-05-01,p99,1,ms,lower\n2026-05-01,p99,1,s,higher", '"p99" at 2026-05-01 00:00 has rows in'),
    ],
)
def test_a_wrong_row_is_told_with_its_line(row, said):
    with pytest.raises(UsageError) as told:
        read_results(f"time,metric,value,unit,better\n{row}\n", "x.csv")
    assert str(told.value).startswith("x.csv is damaged: ")
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_an_unknown_column_and_an_empty_table():
    with pytest.raises(
        UsageError, match='unknown column "host"; the columns are time, metric, value, commit'
    ):
        read_results("time,metric,value,host\n", "x")
    with pytest.raises(UsageError, match="x is a table without rows"):
        read_results("time,metric,value\n", "x")


# ---- what is wrong is named ----


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("oha.json", ("summary", "average"), "fast", '"summary.average" is "fast"; expecting a number'),
        ("oha.json", ("summary", "total"), ..., '"summary.total" is missing'),
        ("oha.json", ("statusCodeDistribution", "200"), 1.5, "expecting a whole number"),
        ("vegeta-report.json", ("success",), 1.5, '"success" is 1.5; expecting a share from 0 to 1'),
        ("vegeta-report.json", ("latencies", "99th"), -1, "expecting a number of at least 0"),
        ("vegeta-report.json", ("earliest",), "soon", '"earliest" is "soon"; expecting a time'),
        (
            "pytest-benchmark.json",
            ("benchmarks", 1, "stats", "mean"),
            None,
            '"benchmarks[1].stats.mean" is null; expecting a number',
        ),
        ("pytest-benchmark.json", ("benchmarks", 0, "stats"), [], "is []; expecting an object"),
        ("pytest-benchmark.json", ("datetime",), "late", '"datetime" is "late"'),
        ("jmh.json", (0, "primaryMetric", "score"), "NaN", '"[0].primaryMetric.score" is "NaN"'),
        ("jmh.json", (0, "primaryMetric", "score"), float("nan"), "is NaN; expecting a finite number"),
        ("jmh.json", (0, "primaryMetric", "scoreUnit"), "ops", "expecting a unit such as ops/s or us/op"),
        ("k6.json", ("metrics", "http_reqs"), 3, '"metrics.http_reqs" is 3; expecting an object'),
        ("hyperfine.json", ("results", 0, "mean"), True, '"results[0].mean" is true; expecting a number'),
        (
            "pgbadger.json",
            ("overall_stat", "postgres", "first_query_ts"),
            "soon",
            '"overall_stat.postgres.first_query_ts" is "soon"; expecting a time',
        ),
        ("pgbadger.json", ("overall_stat", "postgres", "queries_number"), "x", '"x"; expecting a number'),
        ("hyperfine.json", ("results", 0, "times"), [10**400], "expecting a finite number"),
    ],
)
def test_the_message_names_file_key_value_and_remedy(name, path, value, said):
    with pytest.raises(UsageError) as told:
        read_results(changed(name, path, value), name)
    assert str(told.value).startswith(f"{name} is damaged: ")
    assert said in str(told.value)
    assert "; write it again with: " in str(told.value)


@pytest.mark.parametrize("name", ["pytest-benchmark.json"])
def test_results_without_benchmarks_have_no_metrics(name):
    with pytest.raises(UsageError, match="was written by pytest-benchmark, but contains no metrics"):
        read_results(changed(name, ("benchmarks",), []), name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 100 0 1700000000 5\n0 2 100 0 soon 7\n", "line 2 is not a transaction of pgbench"),
        ("1700000000 5 10 20 1 9\n1700000001 5\n", "line 2 is not an interval of pgbench"),
        (
            "BenchmarkX 5 12 ns/op\nBenchmarkX 5 fast ns/op\n",
            'BenchmarkX: "fast" before ns/op is not a number',
        ),
    ],
)
def test_wrong_lines_of_text_are_named(text, said):
    with pytest.raises(UsageError) as told:
        read_results(text, "x.txt")
    assert said in str(told.value)
