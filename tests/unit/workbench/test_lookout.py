"""From samples of sessions to what they did while it was loaded."""

from uncork.workbench.lookout import Sample, SessionsSeen, database_use

SECOND = 1_000_000
ASLEEP = ("Timeout", "PgSleep")


def seen_of(samples):
    """Samples at even times over ten seconds."""
    count = len(samples)
    rows = tuple(
        Sample(round(at * 10 * SECOND / count), {ASLEEP: busy}, {"select ?": busy}, ages)
        for at, (busy, ages) in enumerate(samples)
    )
    return SessionsSeen(rows, 10 * SECOND, 9, 100, 3)


def test_sessions_are_counted_on_average_over_the_load_alone():
    found = database_use(seen_of([(0, ())] * 50 + [(4, ())] * 50), 200.0, 5 * 10**9)
    assert found.waits == {ASLEEP: 4.0}
    assert (found.sessions, found.held, found.templates) == (4.0, 0.0, {"select ?": 1.0})
    assert (found.connections, found.max_connections, found.reserved) == (9, 100, 3)


def test_a_session_idle_for_less_than_half_of_what_a_request_has_it_for_is_held():
    """Four sessions at 200 requests a second: each request has one for 20 ms."""
    held = database_use(seen_of([(2, (3_000, 9_000))] * 100), 200.0, 10 * 10**9)
    assert (held.sessions, held.held) == (4.0, 2.0)
    lent_in_turn = database_use(seen_of([(1, (11_000, 15_000, 19_000))] * 100), 200.0, 10 * 10**9)
    assert (lent_in_turn.sessions, lent_in_turn.held) == (4.0, 0.0)


def test_nothing_succeeded_and_nothing_is_made_up():
    found = database_use(seen_of([(0, ())] * 10), 0.0, 10**9)
    assert (found.busy, found.sessions, found.held, found.templates) == (0.0, 0.0, 0.0, {})
