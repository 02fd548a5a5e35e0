"""A budget that is too small, in words."""

import pytest

from uncork.experiment.feasibility import feasibility_words
from uncork.stats.power import feasible

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (60, ""),
        (
            56,
            "the budget of 56.0 s holds 4 rounds, and a verdict needs 5: raise it to 60.0 s with --budget, "
            "or ask a smaller question: 3 pairs of cell and workload instead of 4 or 2 variants instead of 3",
        ),
        (
            30,
            "the budget of 30.0 s holds 2 rounds, and a verdict needs 5: raise it to 60.0 s with --budget, "
            "or ask a smaller question: 1 pair of cell and workload instead of 4",
        ),
        (
            12,
            "the budget of 12.0 s holds 0 rounds, and a verdict needs 5: raise it to 60.0 s with --budget; "
            "no smaller part of the question fits",
        ),
    ],
)
def test_what_fits_is_offered(budget, expected):
    found = feasible(
        budget_ns=budget * SECOND,
        setup_ns=10 * SECOND,
        round_ns=2 * SECOND,
        block_ns=SECOND // 2,
        slice_ns=SECOND // 10,
        variants=3,
        pairs=4,
        blocks=2,
        minimum_rounds=5,
    )
    assert feasibility_words(found, minimum_rounds=5, pairs=4, variants=3) == expected
