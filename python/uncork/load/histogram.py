"""Count the latencies of a trial within a limit, from its serialised histogram.

The core writes HdrHistogram's V2 format: a header, then counts as zigzag LEB128, where a negative count means
a run of zeros (see ``HistogramEncoder`` of HdrHistogram, and ``CountsArray`` for the layout of buckets). The
core's own list of quantiles is exact in values but too coarse in counts for a fraction of successes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["count_within"]

_HEADER = struct.Struct(">iiiiqqd")
_COOKIE = 0x1C849303
_SUB_BUCKETS = 2048
"""Buckets of the first power of two, for three significant digits from 1 on; later powers have half as many.
"""


def count_within(histogram: bytes, limit_ns: int) -> int:
    """Return how many values are at or below the limit, to the histogram's precision of three digits.

    Raises:
        ValueError: if the bytes are not a histogram written by the core.
    """
    if len(histogram) < _HEADER.size:
        raise ValueError("too few bytes for a histogram")
    cookie, length, offset, digits, lowest, _, _ = _HEADER.unpack_from(histogram)
    if cookie & ~0xF0 != _COOKIE & ~0xF0 or (offset, digits, lowest) != (0, 3, 1):
        raise ValueError("not a V2 histogram of three digits")
    found, place = 0, 0
    for count in _counts(histogram[_HEADER.size : _HEADER.size + length]):
        if count < 0:
            place -= count
            continue
        if _least(place) > limit_ns:
            break
        found += count
        place += 1
    return found


def _least(place: int) -> int:
    """Return the smallest value of a bucket."""
    half = _SUB_BUCKETS // 2
    power = max(place // half - 1, 0)
    return (place - power * half) << power


def _counts(payload: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in payload:
        # Nine bytes hold 64 bits, because the last byte has no continuation flag.
        number |= (byte if shift == 56 else byte & 0x7F) << shift
        shift += 7
        if byte & 0x80 and shift < 63:
            continue
        yield (number >> 1) ^ -(number & 1)
        number, shift = 0, 0
