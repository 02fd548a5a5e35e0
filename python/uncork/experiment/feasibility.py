"""Put into words whether a budget holds the rounds that a verdict needs, and which smaller question fits."""

from __future__ import annotations

from uncork.model.units import count_words, format_duration
from uncork.stats.power import Feasibility

__all__ = ["feasibility_words"]


def feasibility_words(found: Feasibility, *, minimum_rounds: int, pairs: int, variants: int) -> str:
    """Return one sentence on a budget that is too small, with what to do; empty if the budget fits.

    `pairs` (cells times workloads) and `variants` (beside the baseline) are those of the experiment as asked.
    """
    if found.fits:
        return ""
    rounds = count_words(found.rounds, "round")
    text = (
        f"the budget of {format_duration(found.budget_ns)} holds {rounds}, and a verdict needs "
        f"{minimum_rounds}: raise it to {format_duration(found.least_ns)} with --budget"
    )
    smaller = []
    if 0 < found.pairs < pairs:
        one = "pair" if found.pairs == 1 else "pairs"
        smaller.append(f"{found.pairs} {one} of cell and workload instead of {pairs}")
    if 0 < found.variants < variants:
        smaller.append(f"{count_words(found.variants, 'variant')} instead of {variants}")
    if not smaller:
        return f"{text}; no smaller part of the question fits"
    return f"{text}, or ask a smaller question: {' or '.join(smaller)}"
