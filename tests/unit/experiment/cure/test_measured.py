"""A change is measured with the statements that have most of the time that it can touch."""

from __future__ import annotations

import pytest

from uncork.experiment.cure.arms import Arm
from uncork.experiment.cure.judge import MOST_STATEMENTS, measured_statements
from uncork.model.database.workload import CapturedStatement, CapturedWorkload

INDEX = Arm("i", "index", "", "", "", setup="CREATE INDEX ON orders (customer)", tables=("orders",))


def reads(template, time, table="orders"):
    """A statement with a time per hour, in seconds."""
    return CapturedStatement(template, "SELECT 1", ((),), "none", time, 1e9, 0.0, (table,), changes=False)


def writes(template, time, table="orders"):
    return CapturedStatement(template, "INSERT", ((),), "none", time, 1e9, 0.0, (table,), changes=True)


def measured(*statements, own=(), arms=(INDEX,)):
    workload = CapturedWorkload(statements, (), 60.0, 1.0)
    return [one.template for one in measured_statements(arms, workload, own)]


@pytest.mark.parametrize(
    ("statements", "own", "expected"),
    [
        ([reads(1, 50), reads(2, 40), reads(3, 8.5), reads(4, 1.5)], (), [1, 2, 3]),
        ([reads(1, 50), reads(2, 45), reads(3, 5)], (3,), [3, 1, 2]),
        ([reads(1, 50), reads(2, 50, "item")], (), [1]),
        ([reads(1, 50), reads(2, 50, "item")], (2,), [2, 1]),
        ([reads(1, 99), writes(2, 1)], (), [1, 2]),
        ([reads(1, 99), writes(2, 1, "item")], (), [1]),
        ([reads(1, 99.9), writes(2, 0.1)], (), [1]),
        ([reads(1, 100)], (), [1]),
        ([], (), []),
    ],
    ids=[
        "up to 98 %",
        "its own first",
        "no other table",
        "its own is on another table",
        "writes to its table count ten times",
        "other writes count once",
        "very rare writes",
        "one",
        "none",
    ],
)
def test_statements_with_most_of_the_time_that_a_change_can_touch(statements, own, expected):
    assert measured(*statements, own=own) == expected


def test_many_equal_statements_are_limited():
    assert len(measured(*(reads(number, 1) for number in range(30)))) == MOST_STATEMENTS


def test_without_changes_only_its_own_statements():
    assert measured(reads(1, 50), reads(2, 50), own=(2,), arms=()) == [2]
