import re
from dataclasses import replace
from datetime import UTC, datetime

from uncork.serve.metrics import Metrics, exposition
from unit.model.test_stored_run import RUN

NOW = datetime(2026, 3, 1, 11, 15, tzinfo=UTC)
LINE = re.compile(r'[a-z_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? -?[\d.]+')


def lines(metrics=None, runs=(RUN,), damaged=0):
    text = exposition(metrics or Metrics(), runs, damaged, NOW)
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
