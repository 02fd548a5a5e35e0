"""The seconds of a whole load: complete when every node that still sends has reported them."""

from fakes.histograms import histogram
from uncork.cluster.loads import WholeProgress
from uncork.model.load import LoadProgress
from uncork.model.tables.load import LoadInterval

MS = 1_000_000


def snapshot(second, succeeded, latency_ms, elapsed=None):
    latency = latency_ms * MS
    counts = (succeeded, succeeded, 0, 0, 0, 1)
    row = LoadInterval(second - 1, 0, "s", *counts, histogram(latency, succeeded))
    figures = (float(latency), 0.0, latency, latency, latency, 5)
    return LoadProgress(round((elapsed or second) * 10**9), 1.0, succeeded, 1, 0, 0, 2, 3, *figures, (row,))


def test_a_second_is_told_when_the_last_node_has_reported_it():
    stored = []
    whole = WholeProgress(stored.append, None)
    whole.add(1, [snapshot(1, 100, 2), snapshot(2, 100, 2)])
    whole.follow([1, 2])
    assert stored == []
    whole.add(2, [snapshot(1, 300, 10)])
    whole.follow([1, 2])
    (one,) = stored
    assert (one.elapsed_ns, one.seconds, one.succeeded, one.failed) == (10**9, 1.0, 400, 2)
    assert (one.clients, one.backlog, one.mean_ns) == (6, 4, 8.0 * MS)
    assert 9.99 * MS < one.p50_ns < 10.02 * MS  # of all 400, not the mean of two medians
    whole.follow([1])  # the second node has ended
    assert [(one.elapsed_ns, one.succeeded) for one in stored] == [(10**9, 400), (2 * 10**9, 100)]
    whole.add(2, [snapshot(2, 300, 10)])  # too late
    whole.follow([])
    assert len(stored) == 2


def test_with_a_longer_interval_the_seconds_between_are_stored_but_shown_together():
    stored, shown = [], []
    whole = WholeProgress(stored.append, shown.append, every=2)
    for number in (1, 2):
        whole.add(number, [snapshot(second, 100 * second, 2) for second in (1, 2, 3)])
    whole.follow([1, 2])
    assert len(stored) == 3
    (one,) = shown
    assert (one.elapsed_ns, one.seconds, one.succeeded, one.clients) == (2 * 10**9, 2.0, 600, 6)


def test_a_node_whose_snapshot_is_late_keeps_its_clients_and_loses_no_count():
    stored = []
    whole = WholeProgress(stored.append, None)
    whole.add(1, [snapshot(second, 100, 2) for second in (1, 2, 3)])
    late = [snapshot(1, 10, 2), snapshot(2, 20, 2, elapsed=2.6), snapshot(3, 30, 2, elapsed=3.1)]
    whole.add(2, late)
    whole.follow([1, 2])
    assert [(one.succeeded, one.clients) for one in stored] == [(110, 6), (100, 6), (150, 6)]
