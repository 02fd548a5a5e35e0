"""Limits of an experiment's size, checked before anything is expanded."""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from uncork.experiment.spec import problems
from uncork.model.units import count_words

if TYPE_CHECKING:
    from uncork.experiment.spec.schema import Spec

MOST_VARIANTS: Final = 200
MOST_COMPARISONS: Final = 2000
"""Largest number of comparisons. Five rounds of two blocks of 40 ms take about 13 minutes at this size."""

_VARIANT: Final = re.compile(r'^[ \t]*\[[ \t]*variants[ \t]*\.[ \t]*([\w-]+|"[^"\n]*")', re.MULTILINE)


def too_many_variants(variants: str | Collection[str]) -> list[problems.Problem]:
    """Return a problem if a file has too many variants: from its text, or from their names.

    Parsing tens of thousands of variants takes seconds, so their headers in the text are counted first.
    """
    count = len(set(_VARIANT.findall(variants)) if isinstance(variants, str) else variants)
    if count <= MOST_VARIANTS:
        return []
    return [
        problems.Problem(
            ("variants",),
            f"found {_grouped(count)} variants; expected at most {MOST_VARIANTS}, because every round "
            "measures each of them; remove variants, or divide them among several files",
        )
    ]


def too_many_comparisons(spec: Spec) -> list[problems.Problem]:
    """Return a problem if an experiment makes too many comparisons: cells x workloads x variants."""
    numbers = [len(spec.levels(factor)) for factor in spec.factors]
    each = sum(len(spec.compared(name)) - 1 for name in spec.workloads)
    comparisons = math.prod(numbers) * each
    if comparisons <= MOST_COMPARISONS:
        return []
    made = " × ".join(map(_grouped, numbers))
    levels = f"{made} levels of {', '.join(spec.factors)}" if spec.factors else "no factors"
    remedy = f"--set {next(iter(spec.factors))}=LEVEL keeps one level" if spec.factors else "remove variants"
    return [
        problems.Problem(
            ("factors",) if spec.factors else ("variants",),
            f"{levels} and {count_words(each, 'comparison')} in each of their combinations make "
            f"{_grouped(comparisons)} comparisons; expected at most {_grouped(MOST_COMPARISONS)}; remove "
            f"levels, variants or workloads ({remedy}, --workload NAME keeps one workload)",
        )
    ]


def _grouped(count: int) -> str:
    return f"{count:,}".replace(",", " ")
