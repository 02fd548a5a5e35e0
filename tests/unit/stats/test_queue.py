"""The M/M/c queue against figures from its tables, and against its limits."""

import math

import pytest

from uncork.stats.load.queue import mean_waiting


@pytest.mark.parametrize(
    ("servers", "use", "waiting"),
    [(1, 0.5, 0.5), (1, 0.9, 8.1), (2, 0.8, 2.844), (4, 0.9, 7.090), (10, 0.9, 6.019)],
)
def test_figures_of_the_tables(servers, use, waiting):
    assert mean_waiting(servers, use) == pytest.approx(waiting, rel=1e-3)


def test_nobody_waits_for_what_is_not_used_and_all_for_what_is_never_free():
    assert mean_waiting(8, 0.0) == 0.0
    assert mean_waiting(8, 1.0) == math.inf
