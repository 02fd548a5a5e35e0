"""A workload can contain pauses of the client, which are sent as pauses and never as SQL."""

from __future__ import annotations

import pytest

from uncork.errors import SpecError
from uncork.experiment.plan.order import Cell
from uncork.experiment.run.request import answer_request, trial_request
from uncork.experiment.run.sent_sql import sent_sql
from uncork.experiment.spec.pauses import pause_line, pause_ns, paused_ns
from uncork.experiment.spec.schema import parse_spec
from uncork.load.sql import sql_arm_plan
from uncork.model.request import Pause
from uncork.model.server import Target
from uncork.model.trial import Arm, Trial

FILE = r"""
[experiment]
name = "pause"
question = "Is it faster without?"

[variants.inside]
baseline = true

[variants.outside]
workloads.pay.sql = ['\sleep 20 ms', "BEGIN", "SELECT 1", "COMMIT"]

[setup]
sql = "CREATE TABLE a (b int)"

[workloads.pay]
sql = ["BEGIN", "SELECT 1", '\sleep 20 ms', "COMMIT", '\sleep 1500us']
"""
TARGET = Target("db", {"host": "x", "port": 5432, "user": "u"})


def spec(text=FILE):
    return parse_spec(text, file="pause.toml", read=str, overrides={})


def request(variant, build=trial_request):
    trial = Trial(1, 1, 1, Cell(()), "pay", Arm(variant))
    if build is trial_request:
        return trial_request(spec(), trial, TARGET, {})
    return answer_request(spec(), trial.cell, "pay", variant, TARGET, {})


@pytest.mark.parametrize(
    ("text", "length_ns"), [(r"\sleep 2", 2e9), (r"\SLEEP 20 MS;", 2e7), (r" \sleep 7us ", 7e3)]
)
def test_a_pause_is_written_as_in_pgbench(text, length_ns):
    assert pause_ns(text) == length_ns


def test_a_pause_is_written_in_microseconds():
    assert pause_line(1.5e6) == r"\sleep 1500 us"
    assert pause_ns(pause_line(121_437_899.4)) == 121_438_000
    assert paused_ns(["BEGIN", pause_line(2e6), "COMMIT", pause_line(1e6)]) == 3_000_000


def test_pauses_keep_their_place_and_are_no_statements():
    found = request("inside")
    assert [one.sql for one in found.statements] == ["BEGIN", "SELECT 1", "COMMIT"]
    assert [one.name for one in found.statements] == ["pay.1", "pay.2", "pay.3"]
    assert found.pauses == (Pause(2, 20_000_000), Pause(3, 1_500_000))
    assert request("outside").pauses == (Pause(0, 20_000_000),)
    assert sql_arm_plan(found)["scripts"][0]["pauses"][0] == {"before": 2, "ns": 20_000_000}


def test_the_check_of_answers_does_not_pause():
    assert request("inside", answer_request).pauses == ()
    assert all("sleep" not in one.sent for one in sent_sql(spec()))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"\sleep 1500us", r"\sleep :time", r"\sleep :time is no pause of the client"),
        (r"\sleep 1500us", r"\gset", r"\gset is no pause of the client; write \sleep"),
        (r"\sleep 1500us", r"\sleep 90", "longer than 60 s"),
        ('["BEGIN", "SELECT 1", ', "[", "the workload has 1"),
        ("[variants.outside]\n", '[variants.outside]\nengine = "duckdb"\n',
         "only with postgresql, not duckdb"),
    ],
)  # fmt: skip
def test_what_is_no_pause_is_refused(old, new, message):
    with pytest.raises(SpecError, match=message.replace("\\", r"\\")):
        spec(FILE.replace(old, new))


def test_a_list_of_pauses_sends_nothing():
    text = FILE.replace('sql = ["BEGIN", "SELECT 1", ', "sql = [").replace('"COMMIT", ', "")
    with pytest.raises(SpecError, match="has only pauses; add a statement"):
        spec(text)
