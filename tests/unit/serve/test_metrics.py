import asyncio
import re
from dataclasses import replace
from datetime import UTC, datetime

from fakes.stored_loads import store_load
from uncork.analysis.runs.figures import remembered_figures
from uncork.analysis.runs.listing import read_runs
from uncork.model.results.figure import Figure, RunFigures
from uncork.serve.app_context import named_figures, read_figures
from uncork.serve.metrics import Metrics, exposition
from uncork.serve.report_cache import ValueCache
from uncork.store.layout import name_run
from unit.model.test_stored_run import RUN

NOW = datetime(2026, 3, 1, 11, 15, tzinfo=UTC)
LINE = re.compile(r'[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? -?[\d.]+')


def lines(metrics=None, runs=(RUN,), damaged=0, named=()):
    text = exposition(metrics or Metrics(), runs, damaged, NOW, named)
    assert text.endswith("\n")
    return text.splitlines()


def test_runs_are_counted_by_kind_and_status_with_the_age_of_the_newest():
    other = replace(RUN, status="failed", started_at="2026-03-01T09:15:00+00:00")
    found = lines(runs=(RUN, RUN, other), damaged=3)
    assert 'uncork_runs{kind="experiment",status="complete"} 2' in found
    assert 'uncork_runs{kind="experiment",status="failed"} 1' in found
    assert "uncork_damaged_runs 3" in found
    assert 'uncork_newest_run_age_seconds{kind="experiment"} 3600' in found


def test_requests_are_counted_and_timed():
    metrics = Metrics()
    for seconds in (0.004, 0.005, 0.03, 60.0):
        metrics.count("report", "GET", 200, seconds)
    metrics.count("events", "BREW", 200, 600.0)
    metrics.refused["token"] += 2
    found = lines(metrics)
    assert 'uncork_serve_requests_total{page="report",method="GET",status="200"} 4' in found
    assert 'uncork_serve_requests_total{page="events",method="other",status="200"} 1' in found
    assert 'uncork_serve_refused_total{reason="token"} 2' in found
    buckets = [line for line in found if line.startswith("uncork_serve_request_seconds_bucket")]
    assert buckets[0].endswith('le="0.005"} 2') and buckets[-1].endswith('le="+Inf"} 4')
    assert [int(line.rpartition(" ")[2]) for line in buckets] == sorted(
        int(line.rpartition(" ")[2]) for line in buckets
    )
    assert 'uncork_serve_request_seconds_count{page="report"} 4' in found


def test_every_line_is_one_that_prometheus_reads():
    metrics = Metrics()
    metrics.count("report", "GET", 200, 0.1)
    evil = replace(RUN, kind='a"} 1\nuncork_evil{x="\\')
    for line in lines(metrics, runs=(RUN, evil)):
        assert line.startswith(("# HELP ", "# TYPE ")) or LINE.fullmatch(line), line


# ---- named runs ----


def figures(*found, **changes):
    fields = {"id": "load-1", "kind": "load", "status": "complete", "started_at": "2026-03-01T10:00:00+00:00"}
    texts = {"question": "", "server": "", "commit": "abc", "command": "", "asked": {}, "environment": {}}
    return RunFigures(**{**fields, **texts, "figures": found, **changes})


def test_metrics_of_named_runs_are_in_base_units_and_keep_their_series_when_the_name_moves():
    p99 = Figure("", "p99", 12.5e6, "ns", "lower")
    found = lines(
        named=[
            ("baseline", figures(Figure('SELECT "a"', "mean", 2e6, "ns", "lower"), p99)),
            ("nightly", figures(Figure("", "throughput", 1043.5, "/s", "higher"), commit=None)),
        ]
    )
    assert 'uncork_named_run_info{name="baseline",run="load-1",kind="load",commit="abc"} 1' in found
    assert 'uncork_named_run_info{name="nightly",run="load-1",kind="load"} 1' in found
    assert 'uncork_named_run_started_timestamp_seconds{name="baseline"} 1772359200' in found
    whole = 'uncork_named_run_seconds{name="baseline",metric="p99"} 0.0125'
    part = 'uncork_named_run_seconds{name="baseline",metric="mean",of="SELECT \\"a\\""} 0.002'
    assert found.index(whole) + 1 == found.index(part)
    assert 'uncork_named_run_per_second{name="nightly",metric="throughput"} 1043.5' in found
    assert sum(line == "# TYPE uncork_named_run_seconds gauge" for line in found) == 1
    assert all("load-1" not in line for line in (whole, part))


def test_no_series_is_served_twice_and_not_too_many():
    many = [Figure(str(number), "mean", 1e9, "ns", "lower") for number in range(500)]
    again = [Figure("", "p99", value, "ns", "lower") for value in (1e9, 2e9)]
    found = [line for line in lines(named=[("x", figures(*many, *again))]) if "run_seconds{" in line]
    assert len(found) == len(set(found)) == 200
    assert found[0].endswith('metric="p99"} 2.0')


def test_named_runs_are_read_once_and_damaged_ones_are_left_out(tmp_path, monkeypatch):
    good, damaged, plain = (store_load(tmp_path, number) for number in range(3))
    name_run(tmp_path, good.name, "baseline")
    name_run(tmp_path, damaged.name, "other")
    (damaged / "plan.json").write_text("{")
    read = []
    monkeypatch.setattr(
        "uncork.serve.app_context.remembered_figures",
        lambda folder: read.append(folder) or remembered_figures(folder),
    )
    cache, runs = ValueCache(read_figures), read_runs(tmp_path).runs
    for _ in range(2):
        ((name, found),) = asyncio.run(named_figures(cache, runs))
        assert (name, found.id) == ("baseline", good.name)
    assert sorted(read) == sorted([good, damaged])
    name_run(tmp_path, plain.name, "baseline")
    ((name, found),) = asyncio.run(named_figures(cache, read_runs(tmp_path).runs))
    assert found.id == plain.name
