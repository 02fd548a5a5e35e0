"""Shares of a whole in words."""

import pytest

from uncork.report.log_words import share_text


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
