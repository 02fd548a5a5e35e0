"""Findings whose cost was sampled: how often a small cause is reported, and a large one missed.

A finding is reported from a tenth of the busy time on (`diagnosis.rule.LEAST_SHARE`). Where the time of a
cause is known from samples only, such as waits for locks, a watch sees more or less than its true share. The
simulation samples eight sessions, of which some execute the cause's statements, as a watch does: 20 times a
second.
"""

import numpy as np
import pytest
from test_sampled_time import busy_sessions

from uncork.diagnosis.rule import worth
from uncork.model.database.finding import Bill

RATE_HZ = 20
WATCHES = 400


def reported(seed, share, seconds, mean_s, sessions=8, busy=0.3):
    """Return the part of the watches in which a cause with a true share of the busy time is reported."""
    generator, found = np.random.default_rng(seed), 0
    for _ in range(WATCHES):
        times = (seconds, sessions, mean_s)
        cause = busy_sessions(generator, *times, busy * share, RATE_HZ).mean()
        others = busy_sessions(generator, *times, busy * (1 - share), RATE_HZ).mean()
        seen = cause / max(cause + others, 1e-9)
        found += worth(Bill(cause * 3600, cause * 3600, cause * 3600, seen))
    return found / WATCHES


@pytest.mark.parametrize("mean_s", [0.005, 0.05, 0.5])
def test_in_a_minute_half_the_least_share_is_seldom_reported_and_twice_of_it_seldom_missed(mean_s):
    assert reported(1, 0.05, 60, mean_s) <= 0.02
    assert reported(2, 0.20, 60, mean_s) >= 0.98


@pytest.mark.parametrize(
    ("seconds", "mean_s", "false", "missed"),
    [(10, 0.5, 0.20, 0.12), (60, 2.0, 0.20, 0.10)],  # about 48 and 72 statements of all kinds in the watch
)
def test_few_long_statements_are_judged_wrongly_more_often(seconds, mean_s, false, missed):
    assert 0.05 <= reported(3, 0.05, seconds, mean_s) <= false
    assert reported(4, 0.20, seconds, mean_s) >= 1 - missed
