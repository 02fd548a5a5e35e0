"""Results of other tools, as they wrote them: each figure that is read, and what is none of them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from fakes.goldens import compare_cases
from uncork.errors import UsageError
from uncork.profile.imported.parts import time_ns
from uncork.profile.imported.reading import read_results

RESULTS = Path(__file__).parents[2] / "fixtures" / "results"


def read_result(text, file):
    (found,) = read_results(text, file)
    return found


def read(name):
    return read_result((RESULTS / name).read_text(), name)


def values(result, subject=""):
    return {one.name: pytest.approx(one.value) for one in result.figures if one.subject == subject}


def written(run):
    """Return all that was read from a file, with the figures in its order."""
    facts = {name: value for name, value in asdict(run).items() if value and name != "figures"}
    yield from (f"{name}: {value}" for name, value in facts.items())
    for figure in run.figures:
        known = {name: value for name, value in asdict(figure).items() if value}
        known |= {name: f"{value:.9g}" for name, value in known.items() if isinstance(value, float)}
        place = f"{known.pop('name')} of {known.pop('subject', 'all')}: {known.pop('value', 0)}"
        yield " ".join((place, *(f"{name}={value}" for name, value in known.items())))


def test_each_figure_of_each_file():
    files = sorted(path.name for path in RESULTS.iterdir() if path.suffix != ".md")
    compare_cases("profile/imported", [(name, "\n".join(written(read(name)))) for name in files])


def test_older_pgbench_tells_two_rates_of_which_the_one_without_connecting_counts():
    text = "number of clients: 1\ntps = 80.5 (including connections establishing)\n"
    text += "tps = 85.25 (excluding connections establishing)\n"
    assert values(read_result(text, "x")) == {"throughput": 85.25}


def test_a_log_of_pgbench_is_read_line_by_line():
    found = read("pgbench-rate.log")
    lines = [line.split() for line in (RESULTS / "pgbench-rate.log").read_text().splitlines()]
    latencies = sorted(int(words[2]) for words in lines)
    assert found.started_at.startswith("2026-11-22T11:03:4")
    assert values(found)["mean"] == sum(latencies) / len(latencies) * 1e3
    assert values(found)["p50"] == latencies[(len(latencies) + 1) // 2 - 1] * 1e3
    rate = next(one.value for one in found.figures if one.name == "throughput")
    assert rate == pytest.approx(61, abs=4)
    assert "p99" not in values(found)


def test_a_sampled_log_counts_by_the_numbers_of_its_transactions():
    found = read("pgbench-sampled.log")
    lines = [line.split() for line in (RESULTS / "pgbench-sampled.log").read_text().splitlines()]
    done = sum(max(int(words[1]) for words in lines if words[0] == client) for client in "01")
    assert done > 10 * len(lines)
    rate = next(one.value for one in found.figures if one.name == "throughput")
    assert 5_000 < rate < 20_000


def test_failed_and_skipped_transactions_have_no_latency():
    lines = [f"0 {n} 1000 0 1700000000 {n * 1000}" for n in range(1, 21)]
    lines += ["0 21 failed 0 1700000000 30000", "0 22 skipped 0 1700000000 40000 5"]
    found = values(read_result("\n".join(lines), "x"))
    assert found["failed"] == 1 / 21
    assert found["skipped"] == 1 / 22
    assert found["mean"] == 1e6


def test_a_log_by_interval():
    rows = [line.split() for line in (RESULTS / "pgbench-intervals.log").read_text().splitlines()][:-1]
    count, total = (sum(int(row[place]) for row in rows) for place in (1, 2))
    assert values(read("pgbench-intervals.log")) == {
        "throughput": count / len(rows),
        "mean": total / count * 1e3,
    }


def test_percentiles_of_newer_h2load():
    text = (RESULTS / "h2load.txt").read_text()
    text = text.replace(
        "min         max         mean         sd        +/- sd", "min   max   median   p95   p99   mean   sd"
    )
    text = text.replace(
        "time for request:       16us       896us        63us        55us    96.30%",
        "request   : 16us 896us 50us 70us 99us 63us 55us",
    )
    found = values(read_result(text, "x"))
    assert (found["p50"], found["p95"], found["p99"], found["mean"]) == (50e3, 70e3, 99e3, 63e3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("hello", "is not a result that uncork can import"),
        ("{}", "is not a result that uncork can import"),
        ("[1]", "is not a result that uncork can import"),
        ('{"metrics": {}}', "is not a result that uncork can import"),
        ('{"metrics"', "is damaged: it begins like JSON"),
        ('{"results": [{"command": "x"}]}', "is damaged"),
        ('{"results": [{"command": "x", "mean": "soon"}]}', "is damaged"),
        ('{"metrics": {"vus": 3}}', "is damaged"),
        ("0 1 100 0 1700000000 5\n0 2 100 0 1700000000\n", 'line 2 is truncated: "0 2 100 0 1700000000"'),
        ("Running 2s test @ http://x\n  1 threads and 4 connections\n", "contains no metrics"),
        ("finished in 1s, 0.00 req/s\nrequests: 0 total, 0 done\n", "contains no metrics"),
    ],
)
def test_what_is_none_of_them_or_damaged_is_told(text, said):
    with pytest.raises(UsageError, match=r"x\.txt") as refused:
        read_result(text, "x.txt")
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_times_of_load_generators():
    assert [time_ns(text) for text in ("16us", "1.34ms", "2s", "1m")] == [16e3, 1.34e6, 2e9, 60e9]
    with pytest.raises(ValueError, match="not a time"):
        time_ns("16")
