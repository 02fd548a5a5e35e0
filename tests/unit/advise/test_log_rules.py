"""Rules on logs: what waits instead of working, and what is a loop."""

import pytest

from uncork.advise.log_loops import is_loop
from uncork.advise.log_tails import waits_in_its_tail

MS = 1_000_000


@pytest.mark.parametrize(
    ("kind", "executions", "percentiles", "lists", "waits"),
    [
        ("UPDATE", 1_000, (1, 12, 40), (None, None), True),
        ("UPDATE", 1_000, (1, 2, 40), (None, None), True),
        ("INSERT", 1_000, (1, 5, 9), (None, None), False),
        ("SELECT", 1_000, (1, 12, 40), (None, None), False),
        ("UPDATE", 50, (1, 12, 40), (None, None), False),
        ("INSERT", 1_000, (1, 12, 40), (10.0, 500), False),
        ("INSERT", 1_000, (1, 12, 40), (10.0, 12), True),
        ("COMMIT", 5, (1, 1, 1), (None, None), True),
    ],
)
def test_a_writing_statement_with_a_long_tail_waits(kind, executions, percentiles, lists, waits):
    p50, p95, p99 = (value * MS for value in percentiles)
    mean, most = lists
    assert waits_in_its_tail(kind, executions, p50, p95, p99, list_mean=mean, list_max=most) == waits


def test_a_tail_of_microseconds_is_no_question():
    assert not waits_in_its_tail("UPDATE", 1_000, 10_000, 200_000, 900_000)
    assert not waits_in_its_tail("UPDATE", 1_000, None, None, None)


@pytest.mark.parametrize(
    ("counts", "parent_executions", "stretches", "loop"),
    [
        ([20] * 3, 3, 3, True),
        ([20] * 3, 3, 2, False),
        # Steady repetitions show a loop though no pause separates its stretches.
        ([20] * 12, 12, 1, True),
        ([1, 80, 4, 2, 40, 1, 3, 60, 2, 5, 1, 41], 12, 1, False),
        # Most executions of the statement before have no loop after them.
        ([20] * 12, 30, 12, False),
    ],
)
def test_a_loop_outside_of_transactions_follows_its_parent(counts, parent_executions, stretches, loop):
    assert loop == is_loop(
        executions=sum(counts),
        parents=len(counts),
        parent_executions=parent_executions,
        stretches=stretches,
        squares=float(sum(count**2 for count in counts)),
    )
