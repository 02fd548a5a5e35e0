"""How often a service is said to wait for acknowledgements though it does not, and the other way round."""

from collections.abc import Callable

import numpy as np
import pytest

from uncork.model.load import Stalls
from uncork.stats.load.stall import waits_for_acknowledgements

LOADS = 4_000
EACH = 8
"""Silences of each kind that one thread of the core tries."""

SHORT = 0.035
"""Seconds from which on a silence is not short."""


def _exponential(dice: np.random.Generator, size: int) -> np.ndarray:
    return 0.01 + dice.exponential(0.025, size)


def _tight(dice: np.random.Generator, size: int) -> np.ndarray:
    return dice.normal(0.035, 0.002, size)


def _even(dice: np.random.Generator, size: int) -> np.ndarray:
    return dice.uniform(0.01, 0.06, size)


def _every_other(dice: np.random.Generator, size: int) -> np.ndarray:
    return np.where(np.arange(size) % 2 == dice.integers(2), 0.043, 0.02)


def _in_runs(dice: np.random.Generator, size: int) -> np.ndarray:
    return np.where((np.arange(size) // 5 + dice.integers(2)) % 2, 0.043, 0.02)


def _drifting(dice: np.random.Generator, size: int) -> np.ndarray:
    return np.linspace(0.02, 0.05, size) + dice.normal(0, 0.002, size)


def tried(
    silences: Callable[[np.random.Generator, int], np.ndarray], dice, each: int, matters: float
) -> bool:
    """Carry out a trial as the core does, on silences that an acknowledgement ends with some probability."""
    lasting = silences(dice, 2 * each)
    hastened = dice.permutation(2 * each) < each
    ended = hastened & (dice.random(2 * each) < matters)
    short = np.where(ended, 0.0105, lasting) < SHORT
    stalls = Stalls(
        200,
        int((~hastened).sum()),
        int(short[~hastened].sum()),
        int(hastened.sum()),
        int(short[hastened].sum()),
    )
    return waits_for_acknowledgements(stalls, 1_000)


@pytest.mark.parametrize("silences", [_exponential, _tight, _even, _every_other, _in_runs, _drifting])
@pytest.mark.parametrize("each", [6, EACH, 4 * EACH])
def test_who_does_not_wait_is_hardly_ever_named(silences, each):
    """By construction at most in 0.2 % of loads, and still rarer as the effect must be clear."""
    dice = np.random.default_rng(1)
    named = sum(tried(silences, dice, each, 0.0) for _ in range(LOADS))
    # Three standard deviations above 0.2 %.
    assert named <= 0.002 * LOADS + 3 * (0.002 * LOADS) ** 0.5


def test_who_waits_is_named():
    """Silences of 40 ms, some longer on a busy machine, that nearly always end with the acknowledgement."""
    dice = np.random.default_rng(2)

    def silences(dice: np.random.Generator, size: int) -> np.ndarray:
        return 0.040 + dice.exponential(0.003, size)

    assert sum(tried(silences, dice, EACH, 0.98) for _ in range(LOADS)) > 0.97 * LOADS
    # A load that is too short to try six of each says nothing.
    assert sum(tried(silences, dice, 5, 1.0) for _ in range(100)) == 0


def test_too_few_answers_to_matter_are_not_named():
    clear = Stalls(9, 8, 0, 8, 8)
    assert not waits_for_acknowledgements(clear, 1_000)
    assert waits_for_acknowledgements(clear, 900)
    assert not waits_for_acknowledgements(Stalls(), 0)
