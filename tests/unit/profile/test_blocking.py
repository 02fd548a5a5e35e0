"""Who holds up whom: roots, chains, several blockers, deadlocks."""

import pytest

from uncork.model.database.wait_classes import IDLE
from uncork.profile.blocking import find_blockers

SECOND = 1_000_000


def session(pid, blocked_by=None, *, state="active", application="app", template=0, open_us=None, sample=0):
    return {
        "sample": sample,
        "pid": pid,
        "state": state,
        "wait_class": "Lock" if blocked_by else None,
        "wait_event": "transactionid" if blocked_by else None,
        "application": application,
        "user": "u",
        "template": template,
        "transaction_us": open_us,
        "blocked_by": blocked_by,
    }


def blockers(rows, samples=1):
    asked = [{"sample": n, "time_us": n * SECOND + SECOND // 2, "blockers": True} for n in range(samples)]
    return find_blockers(asked, rows, 0, samples * SECOND, {0: "select ?", 1: "update t"})


def test_the_root_of_a_chain_holds_up_all_of_it():
    rows = [
        session(1, state="idle in transaction", application="batch", template=1, open_us=5 * SECOND),
        session(2, "1"),
        session(3, "2"),
        session(4, "3,2"),
    ]
    (one,) = blockers(rows)
    assert (one.application, one.state, one.text) == ("batch", IDLE, "update t")
    assert (one.sessions, one.most, one.chain, one.processes) == (3.0, 3, 3, 1)
    assert one.transaction_ns == 5_000_000_000
    assert [(w.application, w.text, w.event, w.sessions) for w in one.waiters] == [
        ("app", "select ?", "transactionid", 3.0)
    ]


def test_two_roots_share_who_waits_for_both():
    rows = [session(1, application="a"), session(2, application="b"), session(3, "1,2"), session(4, "2")]
    found = {one.application: one.sessions for one in blockers(rows)}
    assert found == {"b": 1.5, "a": 0.5}


def test_time_is_averaged_over_the_samples_that_asked():
    rows = [session(1, application="a"), session(2, "1")]
    (one,) = blockers(rows, samples=4)
    assert one.sessions == pytest.approx(0.25)


def test_sessions_that_hold_up_one_another_are_told_though_there_is_no_root():
    found = blockers([session(1, "2"), session(2, "1")])
    assert sum(one.sessions for one in found) == 2.0


def test_blockers_that_are_not_seen_are_told_as_what_they_may_be():
    found = {one.state: one.sessions for one in blockers([session(3, "0"), session(4, "99")])}
    assert found == {"prepared transaction": 1.0, "not seen": 1.0}


def test_nobody_held_up_is_no_blocker():
    assert blockers([session(1)]) == ()


def test_a_thousand_may_wait_in_one_row():
    rows = [session(0), *(session(pid, str(pid - 1)) for pid in range(1, 2001))]
    (one,) = blockers(rows)
    assert (one.sessions, one.most, one.chain) == (2000.0, 2000, 2000)
