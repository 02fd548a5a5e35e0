"""The kernel's share of the server's processor time; a high share is worth a finding."""

from __future__ import annotations

from collections.abc import Sequence

from uncork.model.results.experiment import Cost, FactorFacts
from uncork.model.units import format_duration
from uncork.report.words import cell_words

_HIGH = 0.2
"""A query that computes spends a few per cent in the kernel; a fifth means many or costly system calls."""
_LEAST_NS = 1_000_000.0
"""Shorter operations mostly send and receive, which is the kernel's work."""


def kernel_words(costs: Sequence[Cost], factors: Sequence[FactorFacts]) -> tuple[str, ...]:
    """Return a sentence on the variant with the highest kernel share, if it is high, and on the lowest."""
    known = [
        (share, cost)
        for cost in costs
        if (share := cost.kernel_share) is not None
        and (cost.server_user_ns or 0) + (cost.server_system_ns or 0) >= _LEAST_NS
    ]
    if not known:
        return ()
    share, cost = max(known, key=lambda one: one[0])
    if share < _HIGH:
        return ()
    here = [one for one in known if (one[1].cell, one[1].workload) == (cost.cell, cost.workload)]
    least, other = min(here, key=lambda one: one[0])
    lowest = f"; {other.variant} spends {least * 100:.0f} %" if other is not cost else ""
    each = format_duration(cost.server_system_ns or 0)
    place = f"{cost.variant} on {cost.workload}" + (
        f" at {cell_words(cost.cell, factors)}" if cost.cell else ""
    )
    return (
        f"{place} spends {share * 100:.0f} % of its server CPU in the kernel ({each} per operation){lowest}. "
        '`evidence = ["syscalls"]` in the experiment file lists its system calls.',
    )
