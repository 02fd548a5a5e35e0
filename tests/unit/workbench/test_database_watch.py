"""When samples are due."""

import pytest

from uncork.workbench.profile.database_watch import next_tick


@pytest.mark.parametrize(
    ("tick", "elapsed", "following"),
    [
        (0, 3, 1),  # in time
        (0, 100, 1),  # just due
        (0, 160, 1),  # late, and taken at once
        (0, 200, 2),  # the one after it is due too: 1 is missed
        (4, 990, 9),
    ],
)
def test_ticks_are_due_at_whole_periods_and_lateness_does_not_add_up(tick, elapsed, following):
    assert next_tick(tick, elapsed, 100) == following
