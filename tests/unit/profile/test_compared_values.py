"""Constants with which a statement always compares columns, read from the texts that sessions sent."""

import pytest

from uncork.profile.statement_shape import compared_values

COLUMNS = {"item": ["id", "state", "amount"]}
OPEN = "SELECT id FROM item WHERE state = 'new' AND amount = {}"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([OPEN.format("$1")], {"state": "new"}),  # the constant is part of the code
        ([OPEN.format(5)], {}),  # both values may be written by the client
        ([OPEN.format(5), OPEN.format(6)], {}),
        ([OPEN.format(number) for number in (5, 6, 7)], {"state": "new"}),
        ([OPEN.format("$1"), OPEN.format("$1").replace("new", "done")], {}),
        (["SELECT id FROM item WHERE state = 'new' OR amount = $1"], {}),
        (["SELECT id FROM item WHERE state <> 'new' AND amount = $1"], {}),
        (["UPDATE item SET amount = $1 WHERE state = 'new'"], {"state": "new"}),
        (["SELECT id FROM item WHERE state = 'new' AND amou"], {}),
        ([], {}),
    ],
)
def test_only_what_all_texts_compare_is_constant(texts, expected):
    assert compared_values(texts, COLUMNS) == expected
