"""Connections for each request become a variant that keeps them, with what was assumed and what it saves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fakes.goldens import compare_cases
from uncork.experiment.cure.judge import judge
from uncork.experiment.cure.pooling import (
    connecting_habit,
    net_of_requests,
    pool_arm,
    pooling_experiment,
    request_of,
    times_known,
)
from uncork.experiment.cure.text import effect_of_times
from uncork.experiment.spec.schema import parse_spec
from uncork.model.database.finding import Bill, Candidate, Finding
from uncork.model.database.workload import CapturedStatement, CapturedWorkload
from uncork.model.results.cure import StatementEffect

READ = CapturedStatement(
    1, "SELECT note FROM item WHERE id = $1", tuple((str(n),) for n in range(200)), "drawn", 7200, 1e6, 0.5,
    ("item",), changes=False,
)  # fmt: skip
ADD = CapturedStatement(
    2, "INSERT INTO event (kind, body) VALUES ($1, $2)", (("1", "it's"), ("2", None)), "seen", 3600, 1e6, 0.4,
    ("event",), changes=True,
)  # fmt: skip
DROP = replace(READ, template=3, sql="DELETE FROM item WHERE id = $1", calls_per_hour=3600, changes=True)
KEEP = Candidate(
    "client", "Keep connections.", against=("Sessions are shared.",), habit="connects", per_hour=3600.0
)
FINDING = Finding("any", "shop connects", ("shop",), Bill(2160.0, 1, 1, 0.4), candidates=(KEEP,))


def request(*statements, sessions=1.2):
    return request_of(CapturedWorkload(statements, (), 60.0, sessions), FINDING, KEEP)


def effect(ratio, low, high, before=250.0, clients=2):
    """Return an effect on requests a second."""
    return StatementEffect(
        1, "SELECT 1", False, 3600.0, "none", before, before * ratio, ratio, low, high, clients=clients
    )


def test_only_a_finding_that_counts_connections_has_the_habit():
    assert connecting_habit(FINDING) == KEEP
    loop = replace(KEEP, habit="loops", per_hour=None)
    assert connecting_habit(replace(FINDING, candidates=(loop,))) is None


def test_a_request_is_what_the_server_executes_for_a_connection():
    found = request(READ, ADD)
    assert [one.template for one in found.statements] == [1, 1, 2]
    assert found.source_ns == 3e6  # three statements of 1 ms
    assert found.clients == 2  # 1.2 busy sessions, and 0.6 that are starting
    assert request(READ, ADD, sessions=50.0).clients == 8


def test_a_delete_is_left_out_of_a_request_but_its_time_counts():
    found = request(READ, DROP)
    assert [one.template for one in found.statements] == [1, 1]
    assert found.source_ns == 3e6
    assert request(DROP) is None
    assert request() is None


def test_a_request_has_a_statement_at_least_and_twenty_at_most():
    assert len(request(replace(READ, calls_per_hour=36.0)).statements) == 1
    assert len(request(replace(READ, calls_per_hour=1e6)).statements) == 20


def written(*statements):
    """Return the change, and the experiment about it."""
    found = request(*statements)
    arm, assumed = pool_arm(KEEP, found)
    text = pooling_experiment("Is it faster?", "dbname=copy", found, arm, budget_s=30)
    spec = parse_spec(text, file="pooling.toml", read=str, overrides={})
    assert spec.opens_connections("s1") and spec.workloads["s1"].fitted is (ADD not in statements)
    return "\n".join((arm.sql, "", arm.undo, "", *arm.against, *assumed)), text


def test_experiments_compare_new_connections_with_kept_ones():
    few = replace(READ, sets=READ.sets[:2])
    compare_cases("cure/pooling", [
        ("requests that read", *written(few)),
        ("requests that write are as many in every variant", *written(few, ADD)),
    ])  # fmt: skip


def test_requests_a_second_become_the_time_of_a_request():
    found = effect_of_times(effect(20.0, 16.0, 25.0))
    assert found.before_ns == 8e6 and found.after_ns == pytest.approx(4e5)
    assert (found.ratio, found.low, found.high) == (0.05, 0.04, 0.0625)
    unknown = effect_of_times(effect(20.0, None, None))
    assert (unknown.low, unknown.high) == (None, None)
    assert net_of_requests(unknown, request(READ)) is None


def test_what_statements_take_longer_on_the_source_is_not_saved():
    found = effect_of_times(effect(20.0, 16.0, 25.0))
    net = net_of_requests(found, request(READ))  # 2 ms on the source, 0.4 ms on the copy
    assert net.saved == pytest.approx(3600 * 7.6e-3) and net.low < net.saved < net.high
    assert net.before == pytest.approx(net.saved + 3600 * 2e-3)
    quick = net_of_requests(found, request(replace(READ, mean_ns=1e3)))
    assert quick.before == pytest.approx(3600 * 8e-3)


def test_connections_that_matter_little_beside_slow_statements_are_no_cure():
    slow = request(replace(READ, mean_ns=1e9))
    arm, _ = pool_arm(KEEP, slow)
    found = effect_of_times(effect(1.004, 1.002, 1.006, before=1.0))
    assert judge(arm, [found], net_of_requests(found, slow))[0] == "not cured"


def test_trials_end_when_the_part_saved_is_known_and_not_because_it_is_large():
    known, wide = effect(20.0, 11.0, 25.0), effect(20.0, 5.0, 80.0)
    assert times_known({"pool": [known]}) == {("pool", 1)}
    assert times_known({"pool": [wide]}) == times_known({"pool": [effect(20.0, None, None)]}) == set()
