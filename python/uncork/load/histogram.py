"""How many latencies of a trial lie within a limit, from its histogram as the core serialises it.

The format is HdrHistogram's V2: a header, then counts as zigzag LEB128, a negative one for a run of zeros
(``HistogramEncoder`` of HdrHistogram; the layout of buckets is that of its ``CountsArray``). The core's own
walk along quantiles is exact in value and coarse in count, which a share of successes cannot bear.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

__all__ = ["count_within"]

_HEADER = struct.Struct(">iiiiqqd")
_COOKIE = 0x1C849303
_SUB_BUCKETS = 2048
"""Buckets of the first power of two, for three significant digits from 1 on; later ones have half as many."""


def count_within(histogram: bytes, limit_ns: int) -> int:
    """Return how many values are at or below the limit, to the histogram's precision of three digits.

    Raises:
        ValueError: if the bytes are no histogram of the core's.
    """
    if len(histogram) < _HEADER.size:
        raise ValueError("too few bytes for a histogram")
    cookie, length, offset, digits, lowest, _, _ = _HEADER.unpack_from(histogram)
    if cookie & ~0xF0 != _COOKIE & ~0xF0 or (offset, digits, lowest) != (0, 3, 1):
        raise ValueError("no histogram of three digits in the format V2")
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
    """Return the least value of a bucket."""
    half = _SUB_BUCKETS // 2
    power = max(place // half - 1, 0)
    return (place - power * half) << power


def _counts(payload: bytes) -> Iterator[int]:
    number, shift = 0, 0
    for byte in payload:
        # Nine bytes hold 64 bits: the last one has no flag.
        number |= (byte if shift == 56 else byte & 0x7F) << shift
        shift += 7
        if byte & 0x80 and shift < 63:
            continue
        yield (number >> 1) ^ -(number & 1)
        number, shift = 0, 0
