"""What is left of runs whose process is killed."""

import os

import pytest
from bench.killed.runs import kill_runs
from bench.killed.senders import kill_senders
from bench.killed.writers import kill_writers

pytestmark = [pytest.mark.slow, pytest.mark.thorough]

AFTER_S = 60.0
"""The benchmark allows five seconds; beside other tests, the end of a server may wait for a processor."""


@pytest.mark.postgres
def test_nothing_goes_on_running_after_a_kill():
    kills = int(os.environ.get("UNCORK_KILLS", "3"))
    outcome = kill_runs(kills, seed=5, tell=print, longest_s=3.0 if kills <= 3 else 10.0, after_s=AFTER_S)
    assert outcome.left == ()
    assert outcome.kills == kills and outcome.started > kills


def test_two_send_one_reads_and_others_are_killed(tmp_path):
    outcome = kill_senders(tmp_path, rounds=3, seed=7)
    assert outcome.troubles == ()
    assert outcome.told > 3 and outcome.killed_unsent > 0 and outcome.lists > 1
    assert outcome.opened > 3 and outcome.runs > outcome.told


def test_two_write_one_reads_and_others_are_killed(tmp_path):
    outcome = kill_writers(tmp_path, rounds=20, seed=7)
    assert outcome.troubles == ()
    assert outcome.rounds == 20 and outcome.stored > 20 and outcome.lists > 1
    assert outcome.killed > 5 and outcome.runs > outcome.killed
