"""How often a statement that takes too long for each row is called fine, and a quick one is unexplained.

A statement is judged by its mean time a row, of 20 calls at least. Times of calls are log-normal: most are
short and a few are long, as they are on a machine that does other work too.
"""

from dataclasses import replace

import numpy as np
import pytest

from fakes.evidence import a_statement, evidence, spent
from uncork.diagnosis.findings import costly_parts

WATCHES = 2_000
LOOKUP = a_statement("SELECT id FROM item WHERE id = $1")


def fine(seed, mean_ns, calls, spread):
    """Return the part of watches in which a statement with this true mean time of a call is fine."""
    generator = np.random.default_rng(seed)
    times = generator.lognormal(np.log(mean_ns) - spread**2 / 2, spread, (WATCHES, calls)).mean(axis=1)
    counted = replace(LOOKUP, calls=calls, rows=calls, blocks=4 * calls)
    watched = evidence([spent()], [counted])
    found = 0
    for mean in times:
        seen = replace(watched, statements={0: replace(counted, mean_ns=mean)})
        (part,) = costly_parts(seen, ())
        found += part.state == "fine"
    return found / WATCHES


@pytest.mark.parametrize("spread", [0.5, 1.0])
def test_with_the_fewest_calls_three_times_the_limit_is_seldom_fine_and_a_third_seldom_unexplained(spread):
    assert fine(1, 15e6, 20, spread) <= 0.01
    assert fine(2, 1.67e6, 20, spread) >= 0.97


def test_with_many_calls_half_as_much_again_is_enough():
    assert fine(3, 7.5e6, 2_000, 1.0) == 0.0
    assert fine(4, 3.3e6, 2_000, 1.0) == 1.0
