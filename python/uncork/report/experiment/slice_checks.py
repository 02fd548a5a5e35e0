"""Sentences on whether short slices show the same effects as long ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from uncork.model.results.experiment import FactorFacts, SliceCheckFacts
from uncork.model.units import format_percent
from uncork.report.words import cell_words, count_words, effect_with_interval


def slice_check_words(checks: Sequence[SliceCheckFacts]) -> str:
    """Return how far the effects of short and long slices agree; empty without such slices."""
    if not checks:
        return ""
    known = [
        check for check in checks if check.low is not None and check.high is not None and not check.disturbed
    ]
    if not known:
        if any(check.disturbed for check in checks):
            return ""
        return (
            "Variants took turns in short slices. Whether this disturbs them was not checked: the check "
            "needs at least two rounds of long slices (every third round), and this run ended earlier."
        )
    widest = max(max(-math.log(one.low or 1.0), math.log(one.high or 1.0)) for one in known)
    fewest = min(one.rounds for one in known)
    return (
        "Variants took turns in short slices; every third round had slices five times as long. Both lengths "
        f"show the same effects to within {format_percent(math.exp(widest)).removeprefix('+')} "
        f"({count_words(len(known), 'comparison')}, each with at least {count_words(fewest, 'round')} of "
        "long slices)."
    )


def disturbed_words(checks: Sequence[SliceCheckFacts], factors: Sequence[FactorFacts]) -> Iterator[str]:
    """Yield a sentence for each cell and workload for which only long slices count."""
    places = dict.fromkeys((check.cell, check.workload) for check in checks if check.disturbed)
    for cell, workload in places:
        here = [check for check in checks if (check.cell, check.workload) == (cell, workload) and check.ratio]
        worst = max(here, key=lambda one: abs(math.log(one.ratio or 1.0)))
        where = f" at {cell_words(cell, factors)}" if cell else ""
        yield (
            f"Short slices disturb each other on {workload}{where}: there {worst.variant} differs by "
            f"{effect_with_interval(worst.ratio or 1.0, worst.low, worst.high)} from its result with "
            "long slices. Only rounds with slices five times as long count for it. Give the "
            "workload a duration, so that trials run one after the other."
        )
