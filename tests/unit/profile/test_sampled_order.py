"""The order of a transaction's statements, from made-up samples and logs whose truth is known."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from uncork.model.database.recording import LoggedStatement, LoggedTransaction
from uncork.profile.recording.transactions import LoggedSessions
from uncork.profile.workload.transactions import NoOrder, logged_order, sampled_order

TEXTS = {
    1: "select * from item where id = ?",
    2: "update item set note = ? where id = ?",
    3: "insert into sale (price) values (?)",
    8: "begin",
    9: "commit",
}
SECONDS, SAMPLES = 10.0, 200


def row(template, begun_us, since_us, *, idle=False, held=None):
    state = "idle in transaction" if idle else "active"
    return {
        "template": template,
        "state": state,
        "transaction_us": begun_us + since_us,
        "state_us": since_us,
        "held_age": held,
    }


def paused(*, after=1, begun_us=300, length_us=100_000, held=None, count=80):
    """Return samples of sessions whose client pauses after a statement."""
    chance = random.Random(1)
    return [row(after, begun_us, chance.randrange(length_us), idle=True, held=held) for _ in range(count)]


def order(rows, calls, anchor=1):
    return sampled_order(rows, SAMPLES, SECONDS, anchor, calls, TEXTS)


def test_a_statement_that_begins_after_the_pause_comes_after_it():
    rows = [*paused(), row(2, 100_500, 40), row(9, 100_900, 600), *paused(after=8, begun_us=20, count=20)]
    found = order(rows, {1: 40, 2: 40})
    assert [one.template for one in found.statements] == [1, 2]
    first, second = found.statements
    assert first.pause_ns == pytest.approx(80 / 200 * 10e9 / 40)  # 80 of 200 samples, in 40 transactions
    assert second.pause_ns == 0 and found.block and found.count == 40
    assert found.first_ns == pytest.approx(20 / 200 * 10e9 / 40)
    assert found.sessions == pytest.approx(81 / 200)
    assert found.basis[0].startswith("The order of the 2 statements comes from 200 samples")


def test_changes_that_no_sample_shows_come_after_a_pause_in_which_nothing_was_changed():
    assert [one.template for one in order(paused(), {1: 40, 2: 41}).statements] == [1, 2]
    with pytest.raises(NoOrder, match="do not show where in its transactions"):
        order(paused(held=7), {1: 40, 2: 40})


def test_what_a_row_lock_makes_wait_comes_first():
    waits = [row(2, 80, since) for since in range(100, 9000, 100)]
    later = [*(row(3, begun, 30) for begun in (4000, 5000, 9000)), row(9, 9500, 400)]
    found = order([*waits, *later], {1: 0, 2: 300, 3: 300}, anchor=2)
    assert [one.template for one in found.statements] == [2, 3]
    early = [row(3, 60, 10), row(3, 61, 12), row(3, 62, 13), row(9, 9500, 400)]
    assert [one.template for one in order([*waits, *early], {1: 0, 2: 300, 3: 300}, 2).statements] == [3, 2]


def test_an_order_that_few_samples_leave_open_asks_for_the_log():
    waits = [row(2, 80, since) for since in range(100, 9000, 100)]
    with pytest.raises(NoOrder, match=r"before or after.*log_min_duration_statement = 0.*--logs"):
        order([*waits, row(3, 60, 10), row(3, 100, 30), row(9, 9500, 400)], {1: 0, 2: 300, 3: 300}, anchor=2)


def test_a_short_statement_before_a_pause_is_placed_by_its_end():
    found = order([*paused(), row(1, 60, 10), row(2, 100_500, 40)], {1: 40, 2: 40})
    assert [one.template for one in found.statements] == [1, 2]


def test_a_statement_that_begins_with_its_transaction_is_one_of_its_own():
    found = order([row(2, 3, since) for since in range(50)], {1: 0, 2: 500}, anchor=2)
    assert [one.template for one in found.statements] == [2]
    assert not found.block and found.sessions == pytest.approx(50 / 200)
    planned = [row(2, 320, since) for since in range(50)]  # parsed and planned before it is executed
    assert not order(planned, {1: 0, 2: 500}, anchor=2).block


def test_statements_with_other_numbers_of_calls_are_left_out():
    rows = [*paused(), row(2, 100_500, 40), row(3, 200, 30)]
    found = order(rows, {1: 40, 2: 40, 3: 7})
    assert [one.template for one in found.statements] == [1, 2]
    assert "1 other statement" in found.basis[1]


def test_a_transaction_that_was_not_seen_has_no_order():
    with pytest.raises(NoOrder, match="do not show its transactions"):
        order(paused(), {1: 0})


def logged(*texts, begin_us=0, pauses=()):
    statements = tuple(
        LoggedStatement(text, "", False, pauses[place] if place < len(pauses) else 0)
        for place, text in enumerate(texts)
    )
    return LoggedTransaction(1, begin_us, begin_us + 150_000, statements)


def of_log(*transactions, anchor=1):
    numbers = {"SELECT": 1, "UPDATE": 2, "INSERT": 3}
    return logged_order(LoggedSessions(transactions, {}, 0), numbers.get, anchor)


def test_a_log_has_the_order_and_the_pauses():
    usual = [
        logged("BEGIN", "SELECT", "UPDATE", "COMMIT", begin_us=n * 200_000, pauses=(0, 40, 120_000, 5_000))
        for n in range(3)
    ]
    found = of_log(*usual, logged("begin", "SELECT", "COMMIT"), logged("INSERT"))
    assert [one.template for one in found.statements] == [1, 2]
    assert [one.pause_ns for one in found.statements] == [120e6, 5e6]
    assert (found.first_ns, found.block, found.count, found.seconds) == (0.0, True, 3, 0.55)
    assert found.sessions == pytest.approx(0.45 / 0.55)
    assert found.basis == (
        "The order of the 2 statements and the mean pauses come from 3 transactions of the log, 75 % of "
        "those with the statement.",
    )


def test_a_statement_outside_of_a_block_is_a_transaction_of_a_log():
    found = of_log(logged("UPDATE"), anchor=2)
    assert [one.template for one in found.statements] == [2] and not found.block


def test_a_log_without_the_transaction_or_with_unknown_statements_is_refused():
    with pytest.raises(NoOrder, match="no whole transaction"):
        of_log(logged("BEGIN", "SELECT", "COMMIT"), anchor=3)
    with pytest.raises(NoOrder, match="the watch did not see"):
        of_log(logged("BEGIN", "SELECT", "NOTIFY", "COMMIT"))


def test_a_statement_that_is_also_sent_alone_needs_the_log():
    with pytest.raises(NoOrder, match=r"in other transactions, too.*--logs"):
        order([*paused(), row(1, 250, 30), *(row(1, 4, since) for since in range(9))], {1: 900})
    alone = [logged("SELECT", begin_us=n) for n in range(9)]
    alone = [replace(one, end_us=one.begin_us + 50) for one in alone]
    found = of_log(*alone, logged("BEGIN", "SELECT", "UPDATE", "COMMIT"))
    assert [one.template for one in found.statements] == [1, 2]
