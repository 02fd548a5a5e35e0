"""What the role that watches may not see: how much of the work, and when that is most of it."""

from __future__ import annotations

import pytest

from uncork.analysis.database.result import hidden_work

SERVER = {"sees_all": False, "role": "watcher", "database": "shop"}
SECOND_US = 1_000_000


def statement(seconds, database="shop", *, toplevel=True):
    return {"execution_ns": seconds * 1e9, "database": database, "toplevel": toplevel}


def counted(seconds):
    return [{"view": "hidden statements", "counter": "total_exec_time", "value": seconds * 1e3}]


def session(seconds, state="active", database="shop"):
    return {"weight": seconds * SECOND_US, "state": state, "database": database}


def found(*, hidden=1.0, statements=(), before=None, after=None, sessions=(), active=None, server=SERVER):
    counters = tuple([] if one is None else counted(one) for one in (before, after))
    return hidden_work(server, hidden, statements, counters, sessions, active, 10.0 * SECOND_US)


@pytest.mark.parametrize(
    ("unseen", "share", "most"),
    [(0.0, 0.0, False), (1.0, 0.25, False), (3.0, 0.5, False), (9.0, 0.75, True)],
)
def test_the_server_counts_hidden_statements_exactly(unseen, share, most):
    seen = [statement(3.0), statement(99.0, "other"), statement(2.0, toplevel=False)]
    work = found(statements=seen, before=100.0, after=100.0 + unseen, sessions=[session(3.0)])
    assert (work.share, work.base, work.most) == (pytest.approx(share), "statements", most)


def test_without_counts_of_statements_the_servers_count_of_active_sessions_decides():
    rows = [session(2.0), session(9.0, "idle in transaction"), session(9.0, database="other")]
    work = found(sessions=rows, active=1.0)
    assert (work.share, work.base, work.most) == (pytest.approx(0.8), "sessions", True)
    assert found(sessions=rows, active=0.15).share == 0.0  # samples saw more than the server counted


def test_an_unknown_share_is_most_if_no_session_was_seen():
    assert found().most and found().share is None
    assert not found(sessions=[session(1.0)]).most
    # Entries were evicted, or the counters were reset: their growth is unknown.
    assert found(statements=[statement(1.0)], before=9.0, after=2.0, active=0.01).share is None


def test_nothing_is_hidden_from_a_role_that_sees_all_or_that_is_alone():
    assert found(server={**SERVER, "sees_all": True}, before=0.0, after=9.0) is None
    assert found(hidden=0.0, statements=[statement(1.0)], before=5.0, after=5.0) is None
