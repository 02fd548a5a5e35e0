"""What is said while something is measured."""

from dataclasses import replace

import pytest

from uncork.experiment.run.events import BudgetShort, Preparing, RoundEnded, RoundStarted
from uncork.model.load import LoadProgress
from uncork.workbench.event_words import RunSteps, event_line, progress_line

PROGRESS = LoadProgress(
    elapsed_ns=5_000_000_000, seconds=5.0, succeeded=256_171, failed=3, skipped=2, retries=4,
    backlog=12, clients=14, mean_ns=156_000.0, stddev_ns=33_000.0, p50_ns=150_000, p99_ns=310_000,
    max_ns=2_100_000, lateness_p99_ns=50_000,
)  # fmt: skip


def line(progress=PROGRESS, **changes):
    return progress_line(progress, **{"open_loop": False, **changes})


def test_a_line_begins_as_pgbench_s_does():
    assert line() == (
        "progress: 5.0 s, 51234.2 tps, lat 0.156 ms stddev 0.033, 3 failed, p50 0.150 p99 0.310 max 2.100"
    )


def test_an_open_loop_tells_its_backlog_and_lateness():
    assert line(open_loop=True, limited=True, tries=True).endswith(
        "3 failed, 2 skipped, 4 retries, p50 0.150 p99 0.310 max 2.100, backlog 12, clients 14, "
        "late p99 0.050 ms"
    )


def test_a_load_by_http_sends_requests_over_connections():
    assert line(http=True).startswith("progress: 5.0 s, 51234.2 requests/s, lat 0.156 ms")
    assert ", backlog 12, connections 14, " in line(http=True, open_loop=True)


def test_unix_time_can_take_the_place_of_the_time_elapsed():
    assert line(at=1_700_000_000.25).startswith("progress: 1700000000.250 s, ")


def test_nothing_done_is_no_division_by_zero():
    assert line(replace(PROGRESS, seconds=0.0)).startswith("progress: 5.0 s, 0.0 tps")


def test_a_stage_of_preparing_is_told_once_and_a_round_when_it_begins():
    steps = RunSteps(60_000_000_000)
    assert steps.line(Preparing("data of scan", 0, 3)) == "data of scan (1 of 3)"
    assert steps.line(Preparing("data of key", 1, 3)) is None
    begun = RoundStarted(2, 12, 4, 40_000_000_000, 15_000_000_000)
    assert steps.line(begun) == "round 2: measuring 4 comparisons, at most 45.0 s left"


@pytest.mark.parametrize(("event", "line"), [
    (RoundStarted(1, 12, 4, 0), None),
    (RoundEnded(3, 2, 4, 0.123, "key on get", 0),
     "round 3 done: 2 of 4 comparisons settled; widest interval ±12.3% (key on get)"),
    (BudgetShort("the budget holds 2 rounds"), "warning: the budget holds 2 rounds"),
])  # fmt: skip
def test_events_that_are_worth_a_line_get_one(event, line):
    assert event_line(event) == line
