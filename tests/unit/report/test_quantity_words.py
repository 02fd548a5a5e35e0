"""Shares and times in words for people."""

import pytest

from uncork.model.units import share_text
from uncork.report.words import step_text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.0004, "under 0.1 %"),
        (0.004, "0.4 %"),
        (0.0949, "9.5 %"),
        (0.62, "62 %"),
        (0.986, "99 %"),
        (0.9925, "99.2 %"),
        (0.9996, "over 99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_only_the_whole_is_100_percent_and_only_nothing_is_0(share, text):
    assert share_text(share) == text


def test_steps_of_time_are_told_in_their_own_unit():
    assert [step_text(seconds) for seconds in (1, 30, 300, 21_600, 604_800)] == [
        *("1 s", "30 s", "5 min", "6 h", "7 d")
    ]
