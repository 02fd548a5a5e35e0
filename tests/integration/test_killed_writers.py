"""Nothing that was reported as stored is lost when a writer is killed, and nothing is ever half-visible."""

import pytest
from bench.killed.writers import kill_writers

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def test_two_write_one_reads_and_others_are_killed(tmp_path):
    outcome = kill_writers(tmp_path, rounds=20, seed=7)
    assert outcome.troubles == ()
    assert outcome.rounds == 20 and outcome.stored > 20 and outcome.lists > 1
    assert outcome.killed > 5 and outcome.runs > outcome.killed
