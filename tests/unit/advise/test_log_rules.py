"""Rules on logs: what is a loop."""

import pytest

from uncork.advise.log_loops import is_loop

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
