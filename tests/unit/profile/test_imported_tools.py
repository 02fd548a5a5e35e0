"""Tables of metrics, and what is wrong in results of other tools."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

from uncork.errors import UsageError
from uncork.profile.imported.reading import read_results

RESULTS = Path(__file__).parents[2] / "fixtures" / "results"


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
        ("k6.json", ("metrics", "http_reqs"), 3, '"metrics.http_reqs" is 3; expecting an object'),
        ("hyperfine.json", ("results", 0, "mean"), True, '"results[0].mean" is true; expecting a number'),
        ("hyperfine.json", ("results", 0, "times"), [10**400], "expecting a finite number"),
    ],
)
def test_the_message_names_file_key_value_and_remedy(name, path, value, said):
    with pytest.raises(UsageError) as told:
        read_results(changed(name, path, value), name)
    assert str(told.value).startswith(f"{name} is damaged: ")
    assert said in str(told.value)
    assert "; write it again with: " in str(told.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0 1 100 0 1700000000 5\n0 2 100 0 soon 7\n", "line 2 is not a transaction of pgbench"),
        ("1700000000 5 10 20 1 9\n1700000001 5\n", "line 2 is not an interval of pgbench"),
    ],
)
def test_wrong_lines_of_text_are_named(text, said):
    with pytest.raises(UsageError) as told:
        read_results(text, "x.txt")
    assert said in str(told.value)
