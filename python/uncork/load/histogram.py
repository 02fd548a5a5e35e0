"""Read counts of latencies from serialised histograms.

The core writes HdrHistogram's V2 format: a header, then counts as zigzag LEB128, where a negative count means
a run of zeros (see ``HistogramEncoder`` of HdrHistogram, and ``CountsArray`` for the layout of buckets). The
core's own list of quantiles is exact in values but too coarse in counts for a fraction of successes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

_HEADER = struct.Struct(">iiiiqqd")
_COOKIE = 0x1C849303
_SUB_BUCKETS = 2048
"""Buckets of the first power of two, for three significant digits from 1 on; later powers have half as many.
"""


@dataclass(frozen=True, slots=True)
class Moments:
    """Sums over the values of a histogram; the shortest and the longest are None if there are no values."""

    count: int
    sum_ns: float
    sum_squares_ns2: float
    min_ns: int | None
    max_ns: int | None


def moments(histogram: bytes) -> Moments:
    """Return the sums of a histogram's values, each taken as the middle of its bucket.

    Raises ValueError if the bytes are not a histogram written by the core.
    """
    count, total, squares = 0, 0.0, 0.0
    shortest = longest = None
    for place, number in _buckets(histogram):
        first, last = _least(place), _least(place + 1) - 1
        middle = (first + last) / 2
        count += number
        total += number * middle
        squares += number * middle * middle
        shortest, longest = first if shortest is None else shortest, last
    return Moments(count, total, squares, shortest, longest)


def count_within(histogram: bytes, limit_ns: int) -> int:
    """Return how many values are at or below the limit, to the histogram's precision of three digits.

    Raises ValueError if the bytes are not a histogram written by the core.
    """
    return sum(number for place, number in _buckets(histogram) if _least(place) <= limit_ns)


def _buckets(histogram: bytes) -> Iterator[tuple[int, int]]:
    """Yield the place and the count of each bucket that has values."""
    if len(histogram) < _HEADER.size:
        raise ValueError("too few bytes for a histogram")
    cookie, length, offset, digits, lowest, _, _ = _HEADER.unpack_from(histogram)
    if cookie & ~0xF0 != _COOKIE & ~0xF0 or (offset, digits, lowest) != (0, 3, 1):
        raise ValueError("not a V2 histogram of three digits")
    place = 0
    for count in _counts(histogram[_HEADER.size : _HEADER.size + length]):
        if count < 0:
            place -= count
            continue
        if count:
            yield place, count
        place += 1


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
