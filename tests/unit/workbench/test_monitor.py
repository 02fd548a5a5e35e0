"""From samples of sessions to what they did while it was loaded."""

from uncork.workbench.load.monitor import Sample, SessionsSeen, database_use

SECOND = 1_000_000
ASLEEP = ("Timeout", "PgSleep")


def seen_of(samples):
    """Samples at even times over ten seconds."""
    count = len(samples)
    rows = tuple(
        Sample(round(at * 10 * SECOND / count), {ASLEEP: busy}, {"select ?": busy}, idle)
        for at, (busy, idle) in enumerate(samples)
    )
    return SessionsSeen(rows, 10 * SECOND, 9, 100, 3)


def test_sessions_are_counted_on_average_over_the_load_alone():
    found = database_use(seen_of([(0, 0)] * 50 + [(3, 1)] * 50), 5 * 10**9)
    assert found.waits == {ASLEEP: 3.0}
    assert (found.sessions, found.templates) == (4.0, {"select ?": 1.0})
    assert (found.connections, found.max_connections, found.reserved) == (9, 100, 3)


def test_nothing_was_at_work_and_nothing_is_made_up():
    found = database_use(seen_of([(0, 0)] * 10), 10**9)
    assert (found.busy, found.sessions, found.templates) == (0.0, 0.0, {})
