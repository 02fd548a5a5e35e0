"""Set how long evidence is sampled, and how much of the budget that takes. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from uncork.model.variant_evidence import Sampling

WATCH_NS: Final = 5_000_000_000
"""How long stacks and sessions are usually sampled: about five hundred samples of each busy process."""
SYSCALLS_NS: Final = 3_000_000_000
"""How long system calls are usually counted, in a separate load, because tracing slows a process down."""
LOADED_BEFORE_NS: Final = 1_000_000_000
"""The load runs this much longer than the sampling, which takes a moment to start."""
_AROUND_NS: Final = 1_000_000_000
"""Approximate time to start sampling, to store the samples and to draw them. On two virtual processors, it
was 0.9 to 1.0 s per variant."""
_BUDGET_PART: Final = 3
"""Evidence takes at most one part in this many of the budget, unless sampling would become too short."""
_LEAST: Final = 0.2
"""Sampling is never shorter than this fraction of its usual length."""


def sampling(kinds: Collection[str], places: int, budget_ns: int) -> Sampling:
    """Return how long to sample in each of `places`, so that it takes at most a third of the budget.

    Sampling has its usual length if the budget allows it, and at least a fifth of it.
    """
    usual = Sampling(WATCH_NS, SYSCALLS_NS if "syscalls" in kinds else 0)
    samples_ns = usual.watch_ns + usual.syscalls_ns
    free_ns = budget_ns / _BUDGET_PART / max(places, 1) - (evidence_ns(usual) - samples_ns)
    part = min(max(free_ns / samples_ns, _LEAST), 1.0)
    return Sampling(round(part * usual.watch_ns), round(part * usual.syscalls_ns))


def evidence_ns(lengths: Sampling) -> int:
    """Return how long the evidence of one variant takes, approximately."""
    loads = [length + LOADED_BEFORE_NS for length in (lengths.watch_ns, lengths.syscalls_ns) if length]
    return sum(loads) + _AROUND_NS
