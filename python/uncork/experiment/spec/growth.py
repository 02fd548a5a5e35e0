"""The growth section of an experiment file: prediction for sizes far beyond the measured ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from uncork.experiment.spec import problems
from uncork.experiment.spec.fields import Section, Word

if TYPE_CHECKING:
    from uncork.experiment.spec.schema import Spec


class Growth(Section):
    """How an operation's time grows along a factor, and a prediction far beyond its levels."""

    factor: Word = Field(description="A factor whose levels are numbers above zero, such as rows.")
    to: int | float = Field(
        gt=0, description="The size to extrapolate to. Reports mark it as extrapolated, and say how far."
    )


def check_growth(spec: Spec) -> list[problems.Problem]:
    """Return the problems of the growth section: its factor must be a size."""
    if spec.growth is None:
        return []
    name, place = spec.growth.factor, ("growth", "factor")
    if name not in spec.factors:
        hint = problems.hint(name, set(spec.factors))
        return [problems.Problem(place, f'there is no factor "{name}"{hint}')]
    levels = spec.factors[name]
    sizes = isinstance(levels, list) and all(
        isinstance(level, int | float) and not isinstance(level, bool) and level > 0 for level in levels
    )
    if not sizes:
        return [problems.Problem(place, f'the levels of "{name}" must be numbers above zero')]
    return []
