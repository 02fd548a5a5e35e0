"""How much of the waiting for the write-ahead log its volume costs. Pure."""

from __future__ import annotations

from typing import Final

from uncork.advise.evidence import Evidence

_BYTES_PER_S: Final = 500e6
"""Speed of writing WAL: that of an SSD. The latency of a flush hardly depends on its size. Updates that wrote
90 MB of full-page images a second took 13 % more time than the same updates without; this speed predicts 15 %
(see bench/ADVICE.md). On a slower disk the bill is too small."""


def part_of_volume(size: float, evidence: Evidence) -> float:
    """Return which part of the waiting for WAL so many bytes cost: the time to write them, of all writing.

    One session at a time writes and flushes WAL, so the sessions that do are the time of all of it.
    """
    writing = sum(
        piece.sessions for piece in evidence.pieces if piece.wait_class == "IO" and piece.waits_for_wal
    )
    spent = writing * evidence.seconds
    return min(1.0, size / _BYTES_PER_S / spent) if spent else 1.0
