"""How often updates that change rows are said to change nothing, if a log has only some of the statements."""

import numpy as np
import pytest

from uncork.diagnosis.rules.writes.redundant_updates import is_unchanged
from uncork.profile.shapes.repeated_updates import Sent, count_repeated_updates

ROWS = 20
UPDATES = 2_000
TEXT = "UPDATE item SET state = $1 WHERE id = $2"


def _states(generator: np.random.Generator, values: int) -> list[tuple[int, int]]:
    """Return updates of random rows, each of which changes the row's value."""
    state, found = [0] * ROWS, []
    for row in generator.integers(ROWS, size=UPDATES):
        state[row] = (state[row] + 1 + int(generator.integers(values - 1))) % values
        found.append((int(row), state[row]))
    return found


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("logged", [1.0, 0.5, 0.1])
def test_values_that_change_are_not_called_repeated(values, logged, runs, generator, figure):
    logs = max(20, runs // 100)
    false = 0
    for _ in range(logs):
        kept = [one for one in _states(generator, values) if generator.random() < logged]
        sent = [Sent(1, TEXT, f"$1 = '{value}', $2 = '{row}'") for row, value in kept]
        one = count_repeated_updates(sent)[1]
        false += is_unchanged(one.unchanged, one.updates)
    figure(f"updates: {values} values, {logged:.0%} logged: said to change nothing", false / logs)
    assert false <= 0.01 * logs
