"""Bound how fast bytes are read: a token bucket, without a clock of its own."""

from __future__ import annotations

from typing import Final

_BURST_S: Final = 0.1
"""Unused time that a reader may catch up with, in seconds."""


class Pace:
    """Allow `rate` bytes per second on average, and a tenth of a second's worth at once."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free_at = float("-inf")

    def wait(self, size: int, now: float) -> float:
        """Count `size` bytes read at `now`, in seconds of any clock; return how many seconds to wait."""
        self._free_at = max(self._free_at, now - _BURST_S) + size / self._rate
        return max(0.0, self._free_at - now)
