"""Who is asked next, and who is given up."""

from uncork.cluster.conductor import OVERDUE_S, UNREACHABLE_S, Roll


def test_a_node_is_asked_again_after_its_answer_and_the_pause():
    roll = Roll([1, 2], 0.0)
    assert roll.due(0.0) == [1, 2]
    roll.asked(1, 0.0)
    roll.asked(2, 0.0)
    assert roll.due(5.0) == []  # both are under way
    roll.answered(1, 0.5, 2.0)
    assert roll.due(1.9) == []
    assert roll.due(2.0) == [1]


def test_who_does_not_answer_is_overdue_but_not_who_could_not_be_asked_for_a_moment():
    roll = Roll([1, 2], 0.0)
    roll.asked(1, 0.0)
    roll.asked(2, 0.0)
    roll.failed(2, 1.0, 0.5)
    assert roll.due(1.5) == [2]
    roll.asked(2, 1.5)
    roll.answered(2, 1.6, 2.0)
    assert roll.overdue(OVERDUE_S) == []
    assert roll.overdue(OVERDUE_S + 0.1) == [1]
    roll.end(1)
    assert (roll.open, roll.overdue(100.0)) == ([2], [2])


def test_who_refuses_connections_is_given_up_sooner_than_who_is_silent():
    roll = Roll([1, 2], 0.0)
    for number in (1, 2):
        roll.asked(number, 2.0)
        roll.failed(number, 3.0, 0.5)
        roll.asked(number, 3.5)
    roll.failed(1, 4.5, 0.5)
    roll.answered(2, 4.5, 2.0)  # the network came back
    assert roll.overdue(2.0 + UNREACHABLE_S) == []
    assert roll.overdue(2.1 + UNREACHABLE_S) == [1]


def test_after_a_pause_of_the_coordinator_nobody_is_overdue_at_once():
    roll = Roll([1, 2], 0.0)
    roll.end(2)
    roll.resume(60.0)
    assert (roll.overdue(61.0), roll.due(60.0), roll.open) == ([], [1], [1])
