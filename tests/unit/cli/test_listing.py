"""The list of runs in a terminal."""

import pytest

from uncork.cli.runs.listing import _fitting


@pytest.mark.parametrize(
    ("width", "server", "question"),
    [(200, 42, 35), (144, 42, 35), (120, 26, 27), (100, 16, 17), (60, 8, 8)],
)
def test_servers_and_questions_are_shortened_until_the_list_fits(width, server, question):
    assert _fitting([29, 10, 10, 8, 42, 35], width) == [29, 10, 10, 8, server, question]


def test_a_short_column_leaves_its_room_to_the_other():
    assert _fitting([29, 10, 10, 8, 8, 90], 100) == [29, 10, 10, 8, 8, 25]
    assert _fitting([29, 10, 10, 8, 90, 8], 100) == [29, 10, 10, 8, 25, 8]
