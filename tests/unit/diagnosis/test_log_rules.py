"""Rules on logs: what is a loop of a client."""

from dataclasses import replace

import pytest

from fakes.log_results import MS, contributions, log_result
from uncork.diagnosis.log_loops import client_loops, is_loop, is_steady
from uncork.model.results.log import Repetition, TransactionFacts


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


@pytest.mark.parametrize(
    ("rows", "steady"),
    [
        ({"rows": 40, "repeated": 2_000, "longest": 60, "executions": 2_100}, True),
        # Each of three sessions sends nothing else: requests of a pool, or of a load generator.
        ({"rows": 3, "repeated": 12_000, "longest": 4_200, "executions": 12_000}, False),
        # The lengths vary as if each next statement were drawn by chance.
        ({"rows": 40, "repeated": 2_000, "longest": 180, "executions": 2_100}, False),
        ({"rows": 40, "repeated": 2_000, "longest": 60, "executions": 9_000}, False),
    ],
)
def test_rows_of_executions_outside_of_transactions_are_a_loop_if_they_are_steady(rows, steady):
    assert is_steady(**rows) == steady


def test_the_part_of_rows_within_transactions_is_a_loop_of_its_own():
    log = log_result(templates=1)
    rows = Repetition(4, 2_000, 1_280, 100 * MS, 2_000 * MS)
    template = replace(log.templates[0], repetition=rows, applications=contributions("shop", "other"))
    within = TransactionFacts("shop", "u", "d", 2, 1_100 * MS, 100 * MS, 1_002, 501, 501, 0, 0, 0, 1_000 * MS)
    (loop,) = client_loops(replace(log, templates=(template,), transactions=(within,)))
    assert (loop.executions, loop.longest, loop.waiting_ns) == (1_000, 501, 1_000 * MS)
    assert loop.in_transaction
    assert not list(client_loops(replace(log, templates=(template,), transactions=())))
