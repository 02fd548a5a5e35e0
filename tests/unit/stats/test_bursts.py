"""Which cycles of a block are set aside for the work of other programs."""

import numpy as np
import pytest

from uncork.stats.bursts import MOST, cycle_weights

MILLISECOND = 1_000_000
LENGTHS = [12 * MILLISECOND] * 20


def delays(**disturbed):
    """Return the delays of 20 cycles: 20 to 40 µs each, and more in those named ``at_3=5`` (milliseconds)."""
    found = [20_000 + 1_000 * place for place in range(20)]
    for name, milliseconds in disturbed.items():
        found[int(name.removeprefix("at_"))] = milliseconds * MILLISECOND
    return found


def set_aside(delay, elapsed=LENGTHS):
    return np.flatnonzero(cycle_weights(delay, elapsed) == 0).tolist()


def test_cycles_that_waited_for_a_processor_are_set_aside():
    assert set_aside(delays()) == []
    assert set_aside(delays(at_3=4, at_4=6, at_17=1)) == [3, 4, 17]


def test_a_little_waiting_is_none():
    assert set_aside(delays(at_3=0.2)) == []


def test_the_worst_third_at_most():
    many = delays(**{f"at_{place}": 3 + place for place in range(9)})
    assert set_aside(many) == [3, 4, 5, 6, 7, 8]
    assert len(set_aside(many)) == int(MOST * 20)


def test_none_where_the_load_itself_waits_for_processors():
    crowded = [2 * MILLISECOND] * 15 + [9 * MILLISECOND] * 5
    assert set_aside(crowded) == []


def test_a_long_cycle_without_waiting_counts():
    lengths = [*LENGTHS[:-1], 500 * MILLISECOND]
    assert set_aside(delays(), lengths) == []
    # Nor does the rule apply to the rest of a block with such a cycle: long cycles meet more bursts.
    assert set_aside(delays(at_3=6), lengths) == []


def test_a_cycle_that_is_long_by_its_waiting_is_set_aside():
    lengths = list(LENGTHS)
    lengths[5] += 30 * MILLISECOND
    assert set_aside(delays(at_5=30), lengths) == [5]


def test_few_cycles_all_count():
    assert set_aside([0.0] * 4 + [9 * MILLISECOND], LENGTHS[:5]) == []
    assert set_aside([], []) == []
    assert set_aside([0.0] * 20, [0.0] * 20) == []


@pytest.mark.parametrize(("delay", "elapsed", "said"), [
    ([1.0, 2.0], [1.0, 2.0, 3.0], "2 cycles but elapsed_ns has 3"),
    ([-1.0], [1.0], "zero or more"),
    ([float("nan")], [1.0], "zero or more"),
])  # fmt: skip
def test_wrong_calls_are_errors(delay, elapsed, said):
    with pytest.raises(ValueError, match=said):
        cycle_weights(delay, elapsed)
