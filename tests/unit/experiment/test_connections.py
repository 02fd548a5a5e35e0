"""Variants that open a connection for each operation: what the file refuses, and how they are measured."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from fakes.goldens import compare_mistakes
from uncork.experiment.plan.order import plan_forecasts
from uncork.experiment.run.measuring import Measuring
from uncork.experiment.run.request import trial_request
from uncork.experiment.spec.schema import parse_spec
from uncork.load.sql import sql_arm_plan
from uncork.model.server import Target
from uncork.model.trial import Arm, Cell, Trial

FILE = """\
[experiment]
name = "pool"
question = "Does a pool help?"

[variants.now]
baseline = true
connections = "new"

[variants.pool]
connections = "keep"

[setup]
sql = "CREATE TABLE item (id integer)"

[workloads.read]
sql = "SELECT 1"
metric = "throughput"
"""


def parse(text=FILE):
    return parse_spec(text, file="pool.toml", read=str, overrides={})


def plan_of(spec, variant):
    trial = Trial(1, 1, 0, Cell(()), "read", Arm(variant))
    return sql_arm_plan(trial_request(spec, trial, Target("own", {"host": "/tmp"}, cpu=1), {}))


def test_each_operation_of_such_a_variant_opens_a_connection_and_no_variant_is_pinned():
    spec = parse()
    now, pool = plan_of(spec, "now"), plan_of(spec, "pool")
    assert (now["connect_each"], pool["connect_each"]) == (True, False)
    assert now["pin_cpu"] is None and pool["pin_cpu"] is None
    kept = parse(FILE.replace('"new"', '"keep"'))
    assert plan_of(kept, "now")["pin_cpu"] == 1


@pytest.mark.parametrize(("clients", "threads"), [(1, 1), (2, 1), (7, 4), (200, 64)])
def test_all_clients_can_open_connections_at_the_same_time(clients, threads):
    spec = parse(FILE + f"clients = {clients}\n")
    assert {plan_of(spec, variant)["threads"] for variant in spec.variants} == {threads}
    kept = parse(FILE.replace('"new"', '"keep"') + f"clients = {clients}\n")
    assert plan_of(kept, "now")["threads"] == 1


@pytest.mark.parametrize(("connections", "in_turns"), [("new", False), ("keep", True)])
def test_its_workloads_are_measured_in_separate_trials(connections, in_turns):
    spec = parse(FILE.replace('"new"', f'"{connections}"'))
    server = SimpleNamespace(target=lambda *_: SimpleNamespace(cpu=None))
    placements = SimpleNamespace(of=lambda cell, arm: (cell, arm))
    measuring = Measuring(spec, server, None, placements, None, None, None, None)
    assert measuring.interleaves(Cell(()), "read") is in_turns
    assert bool(plan_forecasts(spec, {})) is in_turns


def test_what_cannot_be_measured_is_refused_with_its_place():
    compare_mistakes("spec/connections", FILE, parse, 1)
