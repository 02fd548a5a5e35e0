"""Nothing goes on running when uncork is killed; UNCORK_KILLS=50 kills more often."""

import os

import pytest
from bench.killed.runs import kill_runs

AFTER_S = 60.0
"""The benchmark allows five seconds; beside other tests, the end of a server may wait for a processor."""

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.thorough]


def test_nothing_goes_on_running_after_a_kill():
    kills = int(os.environ.get("UNCORK_KILLS", "3"))
    outcome = kill_runs(kills, seed=5, tell=print, longest_s=3.0 if kills <= 3 else 10.0, after_s=AFTER_S)
    assert outcome.left == ()
    assert outcome.kills == kills and outcome.started > kills
