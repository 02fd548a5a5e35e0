"""Answers that come after their deadline, counted from a trial's histogram."""

import pytest

from fakes.histograms import fake_load
from uncork.load.merging import count_within
from uncork.load.sql import trial_measurement
from uncork.load.trials import LATE, _without_late
from uncork.model.measurement import Outcome

MS = 10**6


def trial(*latencies_ns, operations):
    """Return what a trial measures whose operations take these times in turn."""
    totals, rows = fake_load(*latencies_ns, operations=operations)
    return trial_measurement(totals, rows, "script", Outcome.COMPLETE, None)


@pytest.mark.parametrize(
    ("limit_ns", "within"),
    [(1, 0), (997_000, 0), (1_000_000, 50), (29_900_000, 50), (30_000_000, 100), (10**12, 100)],
)
def test_a_histogram_tells_how_many_are_within_a_limit(limit_ns, within):
    times = trial(MS, 30 * MS, operations=100).operation
    # The fake driver's clock is exact, the histogram to three digits.
    assert count_within(times.histogram, round(limit_ns * 1.001)) == within


@pytest.mark.parametrize("latency_ns", [3, 1_023, 1_024, 2_047, 2_048, 2_049, 65_537, 123_456_789, 6 * 10**9])
def test_it_does_so_over_its_whole_range(latency_ns):
    times = trial(latency_ns, operations=7).operation
    assert times.min_ns >= latency_ns
    assert count_within(times.histogram, int(times.min_ns * 0.998) - 1) == 0
    assert count_within(times.histogram, times.max_ns) == 7


@pytest.mark.parametrize("rubbish", [b"", b"rubbish", b"x" * 60])
def test_rubbish_is_no_histogram(rubbish):
    with pytest.raises(ValueError, match="histogram"):
        count_within(rubbish, 1)


def test_late_answers_have_failed_though_their_times_are_known():
    found = _without_late(trial(MS, 30 * MS, operations=40), 10 * MS)
    assert (found.started, found.succeeded, found.failed, found.errors) == (40, 20, 20, {LATE: 20})
    assert found.metric("success") == 0.5
    assert found.operation.executions == 40
    assert found.message == "20 answers came after the deadline of 10.0 ms"


def test_answers_in_time_are_as_they_were():
    found = trial(MS, 30 * MS, operations=40)
    assert _without_late(found, 100 * MS) is found
