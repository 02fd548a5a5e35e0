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


def test_a_session_that_only_inserts_is_told_with_its_wait_for_the_log():
    sums = [
        spent(6e6, template=1, state="active", wait_class="IO", wait_event="WalSync"),
        spent(2e6, template=1, state="active"),
    ]
    (found,) = row_writers(sums, WHOLE, TEXTS)
    assert (found.text, found.sessions, found.log_share) == (
        TEXTS[1],
        pytest.approx(0.8),
        pytest.approx(0.75),
    )


@pytest.mark.parametrize(
    "sums",
    [
        [spent(4e6, template=1, state="active")],  # less than half of the time
        [spent(6e6, template=1, state="active"), spent(2e6, template=0, state="active")],  # other work too
        [spent(8e6, template=0, state="active")],  # no INSERT
        [spent(4e6, pid=pid, template=1, state="active") for pid in range(5)],  # many sessions in turn
        [spent(8e6, template=None, state="active")],
    ],
)
def test_sessions_that_insert_beside_other_work_or_in_turn_are_left_out(sums):
    assert row_writers(sums, WHOLE, TEXTS) == ()


def test_sessions_of_a_pool_count_whether_they_are_busy_for_more_or_less_than_half_of_the_time():
    shares = (5.2e6, 5.1e6, 4.9e6, 4.8e6, 0.1e6)
    sums = [spent(time, pid=pid, template=1, state="active") for pid, time in enumerate(shares)]
    (found,) = row_writers(sums, WHOLE, TEXTS)
    assert found.processes == 4
    assert found.sessions == pytest.approx(1.03)


def test_the_commits_of_a_writer_belong_to_it_and_its_long_pauses_show_that_it_seldom_commits():
    def writer(*, log, pauses):
        texts = {**TEXTS, 5: "commit", 6: "update item set n = ? where id = ?"}
        sums = [
            spent(log, template=5, state="active", wait_class="IO", wait_event="WalSync"),
            spent(1e6, template=6, state="active"),
            spent(pauses, template=6, state="idle in transaction"),
        ]
        (found,) = row_writers(sums, WHOLE, texts)
        assert (found.template, found.processes) == (6, 1)
        return found.log_share

    assert writer(log=5e6, pauses=3e6) == pytest.approx(5 / 7.5)
    assert writer(log=1e6, pauses=8e6) == pytest.approx(1 / 6)
