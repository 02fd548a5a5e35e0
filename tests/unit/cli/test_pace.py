"""How often progress is reported where nobody watches a terminal."""

import pytest

from uncork.cli import console
from uncork.cli.console import Pace
from uncork.cli.run import PlainView
from uncork.experiment.run.events import BudgetShort, Preparing, RoundStarted


@pytest.fixture
def clock():
    return [0.0]


def test_at_most_one_line_is_due_in_ten_seconds(clock):
    pace = Pace(10.0, lambda: clock[0])
    due = []
    for second in range(31):
        clock[0] = float(second)
        if pace.due():
            due.append(second)
    assert due == [0, 10, 20, 30]


def test_with_no_time_between_lines_all_are_due():
    pace = Pace(0.0, lambda: 1.0)
    assert pace.due() and pace.due()


def test_rounds_are_reported_now_and_then_and_warnings_always(clock, monkeypatch, capsys):
    monkeypatch.setattr(console, "_shared_pace", Pace(10.0, lambda: clock[0]))
    view = PlainView(60 * 10**9)
    for number, second in enumerate((0.0, 1.0, 2.0, 11.0, 12.0), 1):
        clock[0] = second
        view.show(RoundStarted(number, 12, 4, 0))
    view.show(BudgetShort("the budget holds 2 rounds"))
    view.show(Preparing("filling char", 0, 4))
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1].strip() for line in lines] == ["round 1", "round 4", "warning"]
