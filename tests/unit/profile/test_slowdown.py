"""When a machine was held back after full use: series that credits, neighbours and quiet machines leave."""

import pytest

from uncork.model.system import ModeHistory
from uncork.profile.system import find_slowdown

CPUS = 2


def history(*stretches, step_s=1):
    """A machine through stretches of so many seconds, shares of its processors at work and taken away."""
    steps = [pair for seconds, *pair in stretches for _ in range(seconds // step_s)]
    user, steal = zip(*steps, strict=True)
    modes = {"user": tuple(CPUS * value for value in user), "steal": tuple(CPUS * value for value in steal)}
    return ModeHistory(1_000, step_s, modes)


def test_steal_that_begins_after_full_use_and_stays_is_told():
    found = find_slowdown(history((20, 0.1, 0.0), (180, 0.99, 0.0), (120, 0.6, 0.4)), CPUS)
    assert (found.start_s, found.full_s) == (1_200, 180)
    assert (found.before, found.after) == (pytest.approx(0.0), pytest.approx(0.4))


def test_long_watches_have_longer_steps():
    found = find_slowdown(history((3_600, 0.97, 0.01), (1_800, 0.2, 0.78), step_s=20), CPUS)
    assert (found.start_s, found.full_s) == (4_600, 3_600)


def test_while_less_is_asked_for_nothing_need_be_taken():
    found = find_slowdown(history((90, 1, 0), (40, 0.4, 0.6), (30, 0.2, 0), (40, 0.4, 0.6)), CPUS)
    assert found.start_s == 1_090 and found.after == pytest.approx(0.6)


@pytest.mark.parametrize(
    "stretches",
    [
        [(300, 1.0, 0.0)],
        [(300, 0.6, 0.4)],  # held back from the beginning: when it began was not seen
        [(180, 0.5, 0.0), (120, 0.5, 0.4)],  # never asked for all of it
        [(30, 1.0, 0.0), (120, 0.6, 0.4)],  # too short at full use
        [(180, 1.0, 0.0), (30, 0.6, 0.4)],  # too short since
        [(180, 1.0, 0.0), (120, 0.9, 0.1)],  # hardly taken
        [(180, 1.0, 0.0), (60, 0.6, 0.4), (60, 1.0, 0.0)],  # a neighbour who went again
        [(180, 0.85, 0.15), (120, 0.6, 0.4)],  # there was one before
        [(10, 1.0, 0.0)],
    ],
)
def test_what_looks_otherwise_is_not_told(stretches):
    assert find_slowdown(history(*stretches), CPUS) is None


def test_without_steal_there_is_nothing_to_tell():
    assert find_slowdown(ModeHistory(0, 1, {"user": (2.0,) * 300}), CPUS) is None
    assert find_slowdown(ModeHistory(0, 1, {}), CPUS) is None
