"""Decide whether a statement's slow executions wait instead of working, by its percentiles. Pure."""

from __future__ import annotations

from typing import Final

__all__ = ["waits_in_its_tail"]

_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_ENDS: Final = frozenset({"COMMIT", "END"})
_P95: Final = 10.0
_P99: Final = 20.0
"""How many times the median p95 or p99 must be. Durations of one plan over data of one size vary by a factor
of two or three, and by five between a cold and a warm cache on an SSD."""
_LEAST: Final = 100
"""Fewest executions: with fewer, p99 is the maximum."""
_LEAST_NS: Final = 5_000_000
"""Shortest p99 that is worth a question."""
_EVEN: Final = 2.0
"""How many times the mean the longest list may have: a statement whose lists differ more has more work in
some executions."""


def waits_in_its_tail(
    kind: str,
    executions: int,
    p50_ns: int | None,
    p95_ns: int | None,
    p99_ns: int | None,
    *,
    list_mean: float | None = None,
    list_max: int | None = None,
) -> bool:
    """Return whether a writing statement is usually fast and sometimes far slower.

    Its plan is the same each time, so the slow executions wait: for a lock, for the write-ahead log, or for a
    checkpoint's writes. COMMIT and END have no plan, so their time is always waiting.
    """
    if kind in _ENDS:
        return True
    if kind not in _WRITES or executions < _LEAST or not p50_ns or not p95_ns or not p99_ns:
        return False
    if list_mean and list_max and list_max > _EVEN * list_mean:
        return False
    return p99_ns >= _LEAST_NS and (p95_ns >= _P95 * p50_ns or p99_ns >= _P99 * p50_ns)
