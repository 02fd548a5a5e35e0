"""The worked cases in miniature, and the doctor."""

from __future__ import annotations

import json

import pytest

from fakes.needed import needs
from uncork.store.layout import stored_file

pytestmark = [pytest.mark.postgres, pytest.mark.slow]


def test_cluster_names_shows_the_published_figure_beside_the_measured_one(uncork):
    options = ["--set", "rows=10000", "--workload", "select", "--budget", "30s", "--precision", "99%"]
    done = uncork("case", "run", "cluster-names", *options)
    assert done.returncode == 0, done.stderr
    assert "published" in done.stdout
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    (without,) = [
        comparison
        for comparison in result["comparisons"]
        if comparison["variant"] == "uuid" and ["index", "none"] in comparison["cell"]
    ]
    assert without["published_ratio"] == pytest.approx(1080828 / 1269443)
    assert without["ratio"] is not None
    read = {
        cost["variant"]: cost["shared_hit"] for cost in result["costs"] if ["index", "none"] in cost["cell"]
    }
    assert read["uuid"] < 0.8 * read["char"], "a smaller key makes the scan cheaper"
    sizes = {
        (entry["variant"], entry["relation"]): entry["bytes"]
        for entry in result["sizes"]
        if ["index", "none"] in entry["cell"]
    }
    assert sizes["uuid", "reported_pkey"] < sizes["char", "reported_pkey"]
    assert "rows=10000,index=cluster" not in done.stderr.partition("refused")[2]


@pytest.mark.thorough
def test_clair_shows_the_cost_of_a_row_and_what_a_batch_is(uncork):
    options = ["--set", "stored=10000", "--set", "rows=100", "--budget", "40s", "--precision", "99%"]
    done = uncork("case", "run", "clair", *options)
    assert done.returncode == 0, done.stderr
    assert "Not only speed differs" in done.stdout
    (folder,) = uncork.runs
    assert "Costs per row" in (folder / "report.html").read_text()
    result = json.loads((folder / "result.json").read_text())
    assert not [item for item in result["comparisons"] if item["verdict"] == "refused"], done.stderr
    waits = {batch["variant"]: batch["round_trips"] for batch in result["batches"]}
    assert waits == {
        "transaction": 102,
        "rows": 100,
        "rows-unsynced": 100,
        "pipeline": 1,
        "values": 1,
        "unnest": 1,
        "copy": 5,
    }
    # A slow machine may have had no time for some of them.
    ratios = {item["variant"]: item["ratio"] for item in result["comparisons"] if item["ratio"] is not None}
    bulk = [ratios[way] for way in ("pipeline", "unnest") if way in ratios]
    assert bulk
    assert max(bulk) < 1
    assert [figure["name"] for figure in result["figures"]][3] == "database peak CPU"


NO_WHOLE_HOURS = (
    *("America/St_Johns", "Asia/Kathmandu", "Asia/Kolkata"),
    *("Australia/Adelaide", "Australia/Lord_Howe", "Pacific/Chatham"),
)


@pytest.mark.thorough
def test_time_zones_refuses_the_published_table_and_shows_what_each_way_costs(uncork):
    options = ["--set", "events=6000", "--set", "sessions=1", "--budget", "40s", "--precision", "99%"]
    done = uncork.briefly("case", "run", "time-zones", *options, timeout=460)
    assert done.returncode == 0, done.stderr
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    reasons = {item["variant"]: item["reason"] for item in result["comparisons"]}
    verdicts = {item["variant"]: item["verdict"] for item in result["comparisons"]}
    for variant in ("hourly", "duckdb-hourly"):
        assert verdicts[variant] == "refused", "an hour of UTC is no hour of Asia/Kolkata"
        assert any(zone in reasons[variant] for zone in NO_WHOLE_HOURS), reasons[variant]
    right = {name for name, verdict in verdicts.items() if verdict not in ("refused", "skipped")}
    assert {"ranges", "function", "wrapper", "grouped"} <= right
    assert {"duckdb-function", "duckdb-ranges", "duckdb-quarters"} <= right
    skipped = [reason for name, reason in reasons.items() if verdicts[name] == "skipped"]
    assert all(reason.startswith("cannot be run here: ClickHouse") for reason in skipped)
    ratios = {item["variant"]: item["ratio"] for item in result["comparisons"] if item["ratio"] is not None}
    assert ratios["ranges"] < 1, "a table asks nothing of the kernel"
    used = {cost["variant"]: cost["server_user_ns"] + cost["server_system_ns"] for cost in result["costs"]}
    assert used["careful"] > used["function"], "the kernel's part is below a clock tick with so few events"
    assert "Published results" in (folder / "report.html").read_text()
    assert "Australia/Lord_Howe" in stored_file(folder, "time_zones.offsets.sql").read_text()


SMALL = ("--set", "documents=2000", "--precision", "99%")


def by_variant(result, workload, part="comparisons"):
    return {item["variant"]: item for item in result[part] if item["workload"] == workload}


@pytest.mark.thorough
def test_analysis_api_shows_what_http2_gains_and_where_the_database_is_the_limit(uncork):
    workloads = ("--workload", "simple", "--workload", "analysis", "--workload", "newest")
    done = uncork("case", "run", "analysis-api", *SMALL, *workloads, "--budget", "35s", timeout=460)
    assert done.returncode == 0, done.stderr
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    assert not [item for item in result["comparisons"] if item["verdict"] == "refused"], done.stderr
    simple = by_variant(result, "simple")
    far = simple["http2-100"]["value"] / simple["http1-1"]["value"]
    assert far > 5, "100 requests wait for one way there and back together"
    assert simple["near-http1-6"]["value"] > simple["http1-1"]["value"]
    analysis = by_variant(result, "analysis")
    assert analysis["http2-100"]["ratio"] < 3, "what waits for the database waits for it by any version"
    costs = by_variant(result, "newest", "costs").items()
    used = {variant: cost["server_user_ns"] + cost["server_system_ns"] for variant, cost in costs}
    assert max(used["not-exists"], used["current"]) < 0.5 * used["published"], "of a processor's time"
    page = (folder / "report.html").read_text()
    assert "Published results" in page
    assert "162.65/s" in page
    assert "service CPU" in page


@pytest.mark.thorough
@needs("nginx")
def test_analysis_api_shows_the_cliff_of_a_thousand_requests_a_connection(uncork):
    done = uncork("case", "run", "analysis-api", "--workload", "cliff", "--budget", "15s", timeout=460)
    assert done.returncode == 0, done.stderr
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    cliff = by_variant(result, "cliff")
    assert cliff["cliff-stops"]["value"] == pytest.approx(0.2, abs=0.01)
    assert cliff["cliff-reconnects"]["value"] == 1
    figures = {figure["name"]: figure["measured"] for figure in result["figures"]}
    assert figures["5 000 on one connection, nginx"] == [pytest.approx(0.2, abs=0.01)]


@pytest.mark.thorough
def test_analysis_api_pays_for_the_fast_views_with_writes(uncork):
    done = uncork(
        "case", "run", "analysis-api", *SMALL, "--workload", "write", "--workload", "count", "--budget", "38s"
    )
    assert done.returncode == 0, done.stderr
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    assert not [item for item in result["comparisons"] if item["verdict"] == "refused"], done.stderr
    write, count = by_variant(result, "write"), by_variant(result, "count")
    assert write["marked"]["ratio"] > 1.3
    assert write["current"]["ratio"] > 1.3
    assert 0.7 < write["not-exists"]["ratio"] < 1.4
    assert count["marked"]["ratio"] < 0.8


def test_the_doctor_compares_the_system_with_itself(uncork):
    done = uncork("doctor", "--self-test", "--budget", "10s")
    assert done.returncode in (0, 3), done.stderr
    for heading in ("noise floor", "clock source", "generator, lookup", "power, lookup", "+20%, known"):
        assert heading in done.stdout
    assert "Traceback" not in done.stderr


@pytest.mark.thorough
def test_message_archive_in_small_compares_environments_and_tells_what_their_keys_let_in(uncork):
    chosen = ["--workload", "user", "--workload", "id", "--rows", "10000"]
    done = uncork("case", "run", "message-archive", *chosen, "--budget", "30s", "--precision", "99%")
    assert done.returncode == 0, done.stderr
    assert (
        "timescaledb is skipped: cannot be run here: the extension timescaledb is not installed on the server"
        in done.stderr
    )
    (folder,) = uncork.runs
    result = json.loads((folder / "result.json").read_text())
    checks = {one["variant"]: one["value"] for one in result["data_checks"]}
    twice = {name for name, value in checks.items() if value == "1"}
    assert twice == {"by-id", "by-time"}
    assert set(checks) == {*twice, "prod", "window", "index", "index-window"}
    assert "duplicate message ids" in " ".join(result["reasons"])
    differ = {one["variant"] for one in result["answers"] if one["workload"] == "user"}
    assert differ == {"window", "by-id", "by-time", "index-window"}, "those with a window; not the index"
    counts = {(one["workload"], one["variant"]): one for one in result["requests"]}
    assert {variant for _, variant in counts} == set(checks)
    assert all(one["started"] >= 20 and one["mean_ns"] > 0 for one in counts.values())
    page = (folder / "report.html").read_text()
    assert "Requests at a glance" in page
    assert "at least three sizes and three rounds" in page
    assert "/id: requests per second, one table and partitioned by id" in page
