"""Results of other tools, as they wrote them: each figure that is read, and what is none of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_output_of_pgbench():
    found = read("pgbench.txt")
    assert (found.tool, found.environment) == ("pgbench", {"server": {"version": "18.4"}})
    assert found.asked["clients"] == "2"
    assert found.asked["duration"] == "3 s"
    assert values(found) == {"throughput": 2394.70606, "mean": 833e3, "connect": 4.191e6, "failed": 0.0}
    late = read("pgbench-rate.txt")
    assert values(late)["lateness mean"] == 546e3
    assert {"skipped", "late"} <= set(values(late))


def test_statements_of_pgbench():
    statement = "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;"
    assert values(read("pgbench-select.txt"), statement) == {"mean": 93e3}


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


def test_wrk():
    found = read("wrk.txt")
    assert values(found) == {
        **{
            "throughput": 44078.17,
            "mean": 451_700,
            "p50": 43_000,
            "p75": 79_000,
            "p90": 1.34e6,
            "p99": 6.2e6,
        },
        **{"failed": 0.0, "error of sockets": 0.0},
    }
    assert found.asked["connections"] == "4"
    assert values(read("wrk-errors.txt"))["failed"] == 1.0


def test_h2load():
    found = values(read("h2load.txt"))
    assert found["throughput"] == 57076
    assert (found["mean"], found["connect mean"], found["first byte mean"]) == (63e3, 124e3, 261e3)
    assert found["status 2xx"] == 1.0
    assert values(read("h2load-time.txt"))["failed"] == 1.0


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


def test_hyperfine_has_a_subject_a_command_and_its_samples_tell_an_error():
    found = read("hyperfine.json")
    data = json.loads((RESULTS / "hyperfine.json").read_text())["results"][0]
    assert values(found, "sleep 0.01") == {
        "mean": data["mean"] * 1e9,
        "p50": data["median"] * 1e9,
        "processor time each": (data["user"] + data["system"]) * 1e9,
        "failed": 0.0,
    }
    assert found.figures[0].within == pytest.approx(0.11, abs=0.05)


@pytest.mark.parametrize(
    "name",
    [
        *("k6.json", "k6-export.json", "k6-summary.json"),
        *("k6-1.8.json", "k6-1.8-export.json", "k6-1.8-summary.json"),
    ],
)
def test_all_summaries_of_k6(name):
    found = values(read(name))
    assert {"throughput", "mean", "p50", "p90", "p95", "failed"} <= set(found)


def test_k6_in_figures():
    found = read("k6.json")
    assert values(found)["throughput"] == 19.768856959496336
    assert values(found)["p99.9"] == 846.1e6
    assert values(found)["failed"] == 0.05
    assert values(found)["error of checks"] == 0.05
    assert values(found, "staticAsset:yes")["mean"] == 283.67e6


def test_the_summary_of_k6_since_version_2():
    found = read("k6-summary.json")
    assert found.started_at == "2026-01-15T10:29:45+00:00"
    assert found.asked == {"virtual users at most": "10", "script": "checkout.js"}
    assert values(found)["p99"] == 445.12e6
    assert (values(found)["failed"], values(found)["error of checks"]) == (0.02, 0.05)


def test_the_machine_readable_summary_of_k6_1_8():
    found = read("k6-1.8-summary.json")
    data = json.loads((RESULTS / "k6-1.8-summary.json").read_text())
    assert found.started_at == "2026-11-27T09:31:45+00:00"
    assert found.question == "k6: HTTP requests"
    assert found.asked["script"].startswith("sha256 ")
    assert values(found)["throughput"] == 132 / data["config"]["duration"]
    assert (values(found)["p90"], values(found)["failed"]) == (48524858.8, 4 / 132)
    assert values(found)["error of checks"] == 4 / 132


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
