"""Decide whether a log shows a loop outside of transactions, or requests that merely follow each other. Pure.

Within a transaction, a template that runs ten times or more is repeated: that is a fact. Outside of
transactions, a pooled connection carries many requests, and its statements may alternate because requests
do. A loop differs in two ways. The statement before it is followed by the loop nearly every time, not just
when chance has it. And either its stretches are separated by pauses, or the number of repetitions is steady:
if independent requests alternate, the number between two requests of another kind has a geometric
distribution, whose standard deviation equals its mean. ``tests/calibration/test_loops.py`` simulates the
false alarms.
"""

from __future__ import annotations

from typing import Final

__all__ = ["is_loop"]

_LEAST_PART: Final = 0.5
"""Fraction of the parent's executions that the loop must follow."""
_LEAST_STRETCHES: Final = 3
"""Fewest stretches that show a loop separated by pauses: one or two may begin with any statement."""
_LEAST_PARENTS: Final = 10
_MOST_VARIATION: Final = 0.5
"""Fewest executions of the parent, and the largest coefficient of variation of the repetitions after each,
that show a steady loop. In a geometric distribution it is close to 1."""


def is_loop(*, executions: int, parents: int, parent_executions: int, stretches: int, squares: float) -> bool:
    """Return whether executions of a template after a parent, outside of transactions, are a loop.

    `parents` of all `parent_executions` have the template after them; `squares` is the sum of the squares of
    the numbers of executions after each.
    """
    if not executions or not parents or parents < _LEAST_PART * parent_executions:
        return False
    variation = max(0.0, squares * parents / executions**2 - 1) ** 0.5
    steady = parents >= _LEAST_PARENTS and variation <= _MOST_VARIATION
    return steady or stretches >= _LEAST_STRETCHES
