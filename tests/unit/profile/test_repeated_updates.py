"""Updates that assign what their row was given before, read from the order of a log."""

import pytest

from uncork.profile.shapes.repeated_updates import Sent, count_repeated_updates

SET = "UPDATE item SET state = $1 WHERE id = $2"


def counted(*statements):
    found = count_repeated_updates(statements)[1]
    return found.updates, found.followed, found.unchanged


def sent(text, *values, template=1):
    words = ", ".join(
        f"${number} = {'NULL' if value is None else repr(value)}" for number, value in enumerate(values, 1)
    )
    return Sent(template, text, words)


def test_parameters_that_were_assigned_before_change_nothing():
    assert counted(*(sent(SET, "online", str(number % 5)) for number in range(20))) == (20, 15, 15)
    assert counted(*(sent(SET, None, "7") for _ in range(3))) == (3, 2, 2)


def test_literals_count_as_parameters_do():
    texts = (f"UPDATE item SET state = 'it''s', n = -1 WHERE id = {number % 5}" for number in range(20))
    assert counted(*(Sent(1, text) for text in texts)) == (20, 15, 15)


def test_a_flag_that_is_set_and_cleared_changes_each_time():
    values = ("on", "off")
    assert counted(*(sent(SET, values[number % 2], "7") for number in range(20))) == (20, 19, 0)
    clear = "UPDATE item SET state = 'off' WHERE id = $1"
    turns = ((sent(SET, "on", "7"), sent(clear, "7", template=2)) for _ in range(10))
    assert counted(*(one for turn in turns for one in turn)) == (10, 9, 0)


@pytest.mark.parametrize(
    "between",
    [
        "UPDATE item SET state = 'off'",
        "UPDATE item SET state = lower(state) WHERE id = 7",
        "UPDATE item SET state = 'off' WHERE kind = 7",
        "UPDATE item SET state = 'off' WHERE id > 3",
        "UPDATE item AS i SET state = o.state FROM other o WHERE o.id = i.id",
        "DELETE FROM item WHERE id = 7",
        "INSERT INTO item VALUES (7) ON CONFLICT (id) DO UPDATE SET state = 'off'",
        "WITH x AS (UPDATE item SET state = 'off' RETURNING id) SELECT * FROM x",
        "ROLLBACK",
        "no SQL",
    ],
)
def test_after_a_change_that_is_not_understood_nothing_is_known(between):
    assert counted(sent(SET, "on", "7"), Sent(2, between), sent(SET, "on", "7")) == (2, 0, 0)


def test_an_expression_and_a_compared_column_are_never_unchanged():
    for text in (
        "UPDATE item SET state = 'on', n = n + 1 WHERE id = 7",
        "UPDATE item SET state = 'on', seen = now() WHERE id = 7",
    ):
        assert counted(Sent(1, text), Sent(1, text)) == (2, 0, 0)
    assert 1 not in count_repeated_updates(
        [sent("UPDATE item SET state = $1 WHERE state = $2", "b", "a")] * 2
    )
