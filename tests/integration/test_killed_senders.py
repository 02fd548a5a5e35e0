"""Nothing that was told as stored at an address is lost when a sender is killed; nothing is half-visible."""

import pytest
from bench.killed.senders import kill_senders

pytestmark = [pytest.mark.slow, pytest.mark.thorough]


def test_two_send_one_reads_and_others_are_killed(tmp_path):
    outcome = kill_senders(tmp_path, rounds=3, seed=7)
    assert outcome.troubles == ()
    assert outcome.told > 3 and outcome.killed_unsent > 0 and outcome.lists > 1
    assert outcome.opened > 3 and outcome.runs > outcome.told
