"""What sessions do within transactions, from made-up samples whose truth is known."""

import random

import pytest

from uncork.profile.transactions import in_transactions, row_writers

TEXTS = {0: "select * from item where id = ?", 1: "insert into item (a) values (?)", 2: "commit"}
WHOLE = 10e6


def idle(state_us, transaction_us, *, pid=1, template=0, held_age=None):
    who = {"pid": pid, "application": "shop", "user": "app", "template": template}
    return {**who, "state_us": state_us, "transaction_us": transaction_us, "held_age": held_age}


def spent(weight, *, pid=1, template=0, state="idle in transaction", wait_class=None, wait_event=None):
    who = {"pid": pid, "application": "shop", "user": "app", "template": template, "weight": weight}
    return {**who, "state": state, "wait_class": wait_class, "wait_event": wait_event}


def test_a_loop_in_a_transaction_is_told_by_its_pauses_and_its_length():
    """500 statements with a pause of 400 µs after each: transactions of 200 ms, sampled anywhere."""
    chance = random.Random(1)
    rows = [idle(chance.randrange(400), chance.randrange(200_000)) for _ in range(200)]
    (found,) = in_transactions(rows, [spent(8e6), spent(2e6, state="active")], WHOLE, TEXTS)
    assert found.sessions == pytest.approx(1.0)
    assert found.gap_ns == pytest.approx(400_000, rel=0.2)
    assert found.per_transaction == pytest.approx(0.8 * 500, rel=0.3)
    assert found.length_ns == pytest.approx(200e6, rel=0.1) and found.part == 1
    assert (found.text, found.application, found.samples) == (TEXTS[0], "shop", 200)


def test_a_transaction_left_idle_has_one_statement_and_its_age():
    rows = [idle(1_000_000 * n, 1_000_000 * n + 300, held_age=7 * n) for n in range(1, 90)]
    (found,) = in_transactions(rows, [spent(10e6)], WHOLE, TEXTS)
    assert found.per_transaction == pytest.approx(1, rel=0.1)
    assert (found.idle_ns, found.open_ns) == (89_000_000_000, 89_000_300_000)
    assert found.held_age == 7 * 89


def test_samples_without_ages_say_nothing():
    assert in_transactions([idle(None, 5)], [spent(10e6)], WHOLE, TEXTS) == ()


def counted(template, calls, *, user="app", toplevel=True):
    return {"user": user, "template": template, "calls": calls, "toplevel": toplevel}


def test_a_role_that_mostly_inserts_has_its_counts_and_its_sessions():
    sums = [
        spent(6e6, template=1, state="active", wait_class="IO", wait_event="WalSync"),
        spent(2e6, template=1, state="active"),
        spent(1e6, pid=2, template=1, state="active"),
        spent(1e6, pid=2, template=2, state="active", wait_class="IO", wait_event="WALSync"),
        spent(9e6, pid=3, template=0, state="active"),  # a report of the same role
    ]
    counts = [counted(1, 5_000), counted(0, 40), counted(2, 5_000), counted(0, 10_000, user="web")]
    (found,) = row_writers(sums, WHOLE, 200, TEXTS, counts)
    assert (found.text, found.user, found.application) == (TEXTS[1], "app", "shop")
    assert (found.calls, found.others) == (5_000, 40)
    assert (found.processes, found.samples) == (2, 200)
    assert found.sessions == pytest.approx(1.0)
    assert found.evenness == pytest.approx(2 / 8)
    assert found.log_share == pytest.approx(0.7)
    assert found.idle_share == 0


def test_statements_within_functions_are_not_sent_by_the_client():
    sums = [spent(6e6, template=1, state="active")]
    counts = [counted(1, 5_000), counted(0, 90_000, toplevel=False), counted(1, 7, toplevel=False)]
    (found,) = row_writers(sums, WHOLE, 200, TEXTS, counts)
    assert (found.calls, found.others) == (5_000, 0)


@pytest.mark.parametrize(
    "counts",
    [
        [],  # nobody counted what its sessions sent between two samples
        [counted(1, 5_000), counted(0, 5_001)],  # it reads more often
        [counted(1, 5_000, user="other")],  # no sampled session is of that role
        [counted(None, 5_000)],
    ],
)
def test_without_counts_of_mostly_one_write_a_role_writes_no_rows_one_by_one(counts):
    assert row_writers([spent(9e6, template=1, state="active")], WHOLE, 200, TEXTS, counts) == ()


def test_pauses_within_transactions_are_a_part_of_its_time():
    texts = {**TEXTS, 5: "commit", 6: "update item set n = ? where id = ?"}
    sums = [
        spent(5e6, template=5, state="active", wait_class="IO", wait_event="WalSync"),
        spent(3e6, template=6, state="idle in transaction"),
        spent(2e6, template=6, state="active"),
    ]
    (found,) = row_writers(sums, WHOLE, 200, texts, [counted(6, 3_000), counted(5, 2_900)])
    assert (found.idle_share, found.log_share) == (pytest.approx(0.3), pytest.approx(0.5))
    assert (found.template, found.calls) == (6, 3_000)
