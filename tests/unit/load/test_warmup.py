"""What warms up before a load, and what is left of a warm-up that does not complete."""

from dataclasses import replace

import pytest

from fakes.http_results import HTTP_SPEC
from fakes.load_results import CLOSED_SPEC, CONNECTION, OPEN_SPEC, open_load, refused_load
from uncork.load.parts import part_deadline_ns
from uncork.load.run import load_plan
from uncork.load.warmup import after_warm_up, warm_up_of
from uncork.model.load import Arrivals, LoadLog, LoadOutcome, LoadPart

SECOND = 10**9


def test_the_core_warms_up_a_closed_loop_on_the_connections_of_the_load():
    spec = replace(CLOSED_SPEC, warmup_ns=2 * SECOND)
    assert warm_up_of(spec) is warm_up_of(OPEN_SPEC) is None
    made, plain = (load_plan(one, CONNECTION, pid=None) for one in (spec, CLOSED_SPEC))
    assert made["warmup_ns"] == 2 * SECOND
    assert made["deadline_ns"] == plain["deadline_ns"] + 2 * SECOND
    assert made["stop"] == plain["stop"]


@pytest.mark.parametrize("load", [replace(OPEN_SPEC, log=LoadLog("prefix"), operations_each=7), HTTP_SPEC])
def test_an_open_loop_warms_up_at_its_rate_with_other_values_and_is_not_logged(load):
    arrivals = Arrivals("bursts", 90.0, 3)
    part = LoadPart(2, 3, start_at_ns=5, end_after_ns=6, lease="-", reservations="file")
    spec = replace(load, arrivals=arrivals, duration_ns=None, warmup_ns=SECOND, progress_s=1, part=part)
    warming = warm_up_of(spec)
    assert (warming.arrivals, warming.duration_ns, warming.warmup_ns) == (arrivals, SECOND, 0)
    assert (warming.seed != spec.seed, warming.progress_s) == (True, None)
    assert warming.part == LoadPart(2, 3, lease="-"), "a lost lease ends the warm-up too"
    for name in ("log", "operations_each", "operations"):
        assert getattr(warming, name, None) is None


def test_only_what_follows_the_warm_up_is_measured():
    sent, show = [], print
    spec = replace(OPEN_SPEC, warmup_ns=SECOND)

    def send(one, progress):
        sent.append((one, progress))
        return open_load()

    assert after_warm_up(spec, send, show) == open_load()
    assert sent == [(warm_up_of(spec), None), (OPEN_SPEC, show)]


@pytest.mark.parametrize("outcome", [LoadOutcome.INTERRUPTED, LoadOutcome.NOTHING_SUCCEEDED])
def test_a_warm_up_that_does_not_complete_ends_the_load_and_counts_nothing(outcome):
    sent = []

    def send(one, _):
        sent.append(one)
        found = open_load()
        return replace(found, totals=replace(found.totals, outcome=outcome, message="why"))

    found = after_warm_up(replace(OPEN_SPEC, warmup_ns=SECOND), send, None)
    assert len(sent) == 1
    assert (found.totals.outcome, found.totals.message) == (outcome, "why")
    assert found.totals.started == found.totals.succeeded == found.totals.arrivals == 0
    assert found.times == found.series == ()


def test_a_server_that_refuses_the_warm_up_has_refused_the_load():
    found = after_warm_up(replace(OPEN_SPEC, warmup_ns=SECOND), lambda *_: refused_load(), None)
    assert found.totals.outcome is LoadOutcome.REFUSED
    assert found.totals.connect_errors == refused_load().totals.connect_errors != {}


def test_the_hard_end_of_a_part_counts_from_the_end_of_its_warm_up():
    part = LoadPart(1, 2, end_after_ns=3 * SECOND)
    assert part_deadline_ns(part, 9 * SECOND, 2 * SECOND) == 5 * SECOND
    assert part_deadline_ns(None, 9 * SECOND, 2 * SECOND) == 11 * SECOND
    assert part_deadline_ns(replace(part, start_at_ns=1), 9 * SECOND) == 3 * SECOND, "its start has passed"
