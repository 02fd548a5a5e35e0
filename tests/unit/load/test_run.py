"""The plan that goes to the core, and what its answer becomes."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from fakes.load_results import CLOSED_SPEC, CONNECTION, OPEN_SPEC, closed_answer, open_load, refused_load
from uncork.load import run
from uncork.load.run import load_plan, measurement, run_load, without_password
from uncork.model.load import Arrivals, LoadLog, LoadOutcome, LoadProgress
from uncork.model.tables.load import IntervalStatus


def plan(spec):
    return load_plan(spec, CONNECTION, pid=7)


def test_a_plan_says_what_the_spec_says():
    made = plan(replace(OPEN_SPEC, log=LoadLog("prefix", 0.5), progress_s=5, connect_each=True))
    assert made["scripts"] == [{"name": "orders.sql", "weight": 1, "text": "SELECT 1;\n"}]
    assert made["arrivals"] == {"kind": "poisson", "rate": 300.0}
    assert made["stop"] == {"duration_ns": 5_000_000_000}
    assert made["deadline_ns"] > made["stop"]["duration_ns"]
    assert made["log"] == {"path": "prefix", "sample": 0.5, "aggregate_ns": None}
    assert (made["clients"], made["max_clients"], made["progress_intervals"]) == (4, 64, 5)
    assert made["latency_limit_ns"] == 50_000_000
    assert made["connect_each"] is True
    assert made["watch_pid"] == 7


def test_a_load_lives_with_what_a_server_does():
    made = plan(CLOSED_SPEC)
    assert made["on_lost"] == "reconnect"
    assert made["keep_interrupted"] is True
    assert made["prepare"] == "first use"
    assert made["interval_ns"] == 1_000_000_000
    assert made["arrivals"] is made["log"] is None


@pytest.mark.parametrize(("arrivals", "each", "expected"), [
    (None, 10, {"operations_each": 10}),
    (Arrivals("constant", 5.0), 10, {"operations": 80}),
    (Arrivals("trace", offsets_ns=(0, 1, 2)), None, {"operations": 3}),
    (Arrivals("trace", offsets_ns=(0, 1, 2)), 1, {"operations": 8}),
])  # fmt: skip
def test_in_an_open_loop_all_clients_share_the_count(arrivals, each, expected):
    spec = replace(CLOSED_SPEC, arrivals=arrivals, operations_each=each, duration_ns=None)
    assert plan(spec)["stop"] == expected


@pytest.mark.parametrize(
    ("arrivals", "expected"),
    [
        (Arrivals("bursts", 9.0, 3), {"kind": "bursts", "rate": 9.0, "size": 3}),
        (Arrivals("trace", offsets_ns=(0, 5)), {"kind": "trace", "offsets_ns": [0, 5]}),
    ],
)
def test_arrivals_are_told_in_the_words_of_the_plan(arrivals, expected):
    assert plan(replace(OPEN_SPEC, arrivals=arrivals))["arrivals"] == expected


def test_a_plan_without_its_password_may_be_stored():
    made = plan(CLOSED_SPEC)
    assert made["connection"]["password"] == "hush"
    assert "hush" not in json.dumps(without_password(made))
    assert {**without_password(made), "connection": CONNECTION} == made


def test_the_core_s_answer_keeps_its_identities():
    found = open_load().totals
    assert found.started == found.succeeded + found.failed
    assert found.arrivals == found.started + found.skipped + found.unsent
    assert found.failed == sum(found.errors.values())
    assert (found.connections_opened, found.connections_lost, found.connections_most) == (18, 4, 14)
    assert found.server_user_ns is None
    assert refused_load().totals.outcome is LoadOutcome.REFUSED


def test_a_field_that_nobody_knows_is_no_reason_to_fail():
    totals, times, series = closed_answer()
    assert measurement({**totals, "news": 1}, times, series) == measurement(totals, times, series)


def test_progress_comes_as_a_value(monkeypatch):
    told = {name: 1 for name in LoadProgress.__dataclass_fields__ if name != "series"}
    totals, times, series = closed_answer()
    statuses = [{"interval": 1, "start_ns": 10**9, "length_ns": 5, "status": 503, "answers": 2}]

    def core(_plan, _table, tell, _lease, *_):
        import pyarrow as pa

        tell(json.dumps(told).encode(), None)
        tables = (pa.Table.from_pylist(rows) for rows in (times, series, statuses))
        return json.dumps(totals).encode(), *tables, None

    monkeypatch.setattr(run._native, "run_load", core)
    seen = []
    found = run_load(CLOSED_SPEC, CONNECTION, progress=seen.append)
    assert seen == [LoadProgress(**told)]
    assert found.totals.succeeded == 12_000
    assert found.statuses == (IntervalStatus(1, 10**9, 5, 503, 2),)
    assert {row.kind for row in found.times} == {"statement", "script", "operation", "service", "connect"}


def test_what_arrow_imports_at_its_first_table_is_there_before_any_load():
    """Only the command line keeps Arrow from importing pandas; the programs on nodes and Python do not."""
    code = (
        "import sys, uncork.load.run, pyarrow as pa; n = len(sys.modules); pa.table({'a': [1]}).to_pylist(); "
    )
    code += "print('pandas' in sys.modules, len(sys.modules) - n)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "0"]
