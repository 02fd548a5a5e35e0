"""Estimate the size that an index would have if it were built. Pure.

A B-tree is computed as its build fills pages: rows of the columns' average widths, aligned, equal
keys merged into posting lists, leaf pages filled to 90 %. The other methods are rougher, because no
statistics tell how many entries a value has; `other_pages` says what each one assumes.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

_PAGE: Final = 8192
_USABLE: Final = _PAGE - 24 - 16
"""A page without its header and the special space of a B-tree."""
_ITEM: Final = 4
"""The pointer of each tuple on a page."""
_HEADER: Final = 8
_HEADER_WITH_NULLS: Final = 16
_POINTER: Final = 6
_POSTING: Final = 808
"""The largest posting list that a build makes, a tenth of a page."""
_LARGE: Final = 100
_INNER_FILL: Final = 0.7
_GIN_ENTRY: Final = 28
_GIN_FILL: Final = 0.6
"""Bytes of a key with its pointers' header, and how full pages are, measured on TPC-H."""
_DIFFERENT: Final = 50_000
"""The most different entries: that many trigrams of letters and digits there are."""
_HASH_FILL: Final = 0.75
_GIST_FILL: Final = 0.7


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of an index. `width` is the average in bytes of values that are not NULL.

    `length` is the type's fixed length, -1 if it varies, and `alignment` that of values with a fixed length.
    `distinct` is the number of different values, and `common` the fractions of the rows that the most common
    values have. `merged` is false for types whose equal values may look different, such as numeric. An index
    does not compare a column that is only `included`. `sizes` are sizes of sampled values, if they vary.
    """

    width: float
    length: int
    alignment: int
    null_fraction: float = 0.0
    distinct: float = 0.0
    common: tuple[float, ...] = ()
    merged: bool = True
    included: bool = False
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a column in a GIN index: in all rows, different ones, and the mean frequency of one.

    `frequency` is the fraction of the rows that have an entry, as an average over all entries.
    """

    many: float
    different: float
    frequency: float

    @classmethod
    def of_array(cls, rows: float, elements: float, frequencies: Sequence[float]) -> Entries:
        """Return the entries of arrays, from the average number of elements and the most common ones."""
        covered = sum(frequencies)
        rest = max(0.0, elements - covered)
        different = len(frequencies) + (rest / min(frequencies) if frequencies else rest * rows)
        square = sum(frequency * frequency for frequency in frequencies)
        return cls(rows * elements, different, square / covered if covered else 1 / max(1.0, rows))


def entries_of(values: Sequence[Collection[str]], rows: float, otherwise: float) -> Entries:
    """Return the entries of a column from those of sampled values.

    The number of different entries grows with a power of the number of all entries, by Heaps' law. The power
    comes from half of the sample and all of it. Without a sample, a value has `otherwise` entries.
    """
    counts = Counter(entry for value in values for entry in value)
    total = sum(counts.values())
    if total == 0 or len(values) < 2:
        return Entries(rows * otherwise, min(rows * otherwise, _DIFFERENT), 1 / max(1.0, rows))
    half = values[::2]
    of_half, in_half = sum(map(len, half)), len({entry for collection in half for entry in collection})
    power = math.log(len(counts) / in_half) / math.log(total / of_half) if 0 < of_half < total else 0.0
    many = rows * total / len(values)
    different = len(counts) * max(1.0, many / total) ** min(1.0, max(0.0, power))
    pairs = sum(count * (count - 1) for count in counts.values())
    frequency = max(pairs / (len(values) - 1) / total, 1 / max(1.0, rows))
    return Entries(many, min(different, many, _DIFFERENT), frequency)


def btree_pages(rows: float, columns: Sequence[KeyColumn], *, unique: bool, fillfactor: int = 90) -> int:
    """Return the number of pages of a B-tree over so many rows, with its metapage."""
    if rows < 1:
        return 1
    size, tuples = _leaf_tuples(rows, columns, _item_bytes(columns), unique)
    if size <= _USABLE:
        return 2
    # A page is full when it has less free space than the fillfactor reserves.
    usable = _USABLE - _ITEM - _PAGE * (100 - fillfactor) // 100
    average = size / tuples
    # On average, half a large tuple does not fit.
    fitting = usable / average - 0.5 if average > _LARGE else usable // average
    leaves = math.ceil(tuples / max(1.0, fitting))
    return 1 + leaves + sum(_levels(leaves, columns))


def btree_height(pages: int, columns: Sequence[KeyColumn]) -> int:
    """Return the number of levels above the leaves of a B-tree with so many pages."""
    leaves = max(1, pages - 1)
    inner = _levels(leaves, columns)
    return len(_levels(max(1, leaves - sum(inner)), columns))


def other_pages(
    method: str, rows: float, columns: Sequence[KeyColumn], table_pages: int, entries: Sequence[Entries]
) -> int:
    """Return about how many pages an index of another method has.

    - gin: `entries` of each column. Pointers to rows are compressed: one byte to the same page of the table,
      and more the further away the next row with the entry is.
    - brin: a summary of both bounds for 128 pages of the table.
    - hash: a tuple of 16 bytes and its pointer a row, pages filled to three quarters.
    - gist, spgist and others: a tuple a row, pages filled to 70 %.
    """
    if method == "gin":
        size = 0.0
        for entry in entries:
            pages = table_pages / max(1.0, rows * entry.frequency)
            pointer = 1 + min(1.0, pages) if pages < 1 else 2 if pages < 8 else 3 if pages < 1024 else 4
            size += entry.many * pointer + entry.different * _GIN_ENTRY
        return 2 + math.ceil(size / (_USABLE * _GIN_FILL))
    if method == "brin":
        ranges = math.ceil(max(1, table_pages) / 128)
        return 3 + math.ceil(
            ranges * (2 * sum(column.width for column in columns) + _HEADER + _ITEM) / _USABLE
        )
    if method == "hash":
        buckets = 1 << math.ceil(math.log2(max(2.0, rows * (16 + _ITEM) / (_USABLE * _HASH_FILL))))
        return 3 + buckets
    return 1 + math.ceil(rows * (_item_bytes(columns) + _ITEM) / (_USABLE * _GIST_FILL))


def _levels(leaves: int, columns: Sequence[KeyColumn]) -> list[int]:
    """Return the number of pages of each level above the leaves."""
    keys = [column for column in columns if not column.included]
    fan_out = max(2, int((_USABLE - _PAGE * (1 - _INNER_FILL)) / (_item_bytes(keys) + _ITEM)))
    found, below = [], leaves
    while below > 1:
        below = math.ceil(below / fan_out)
        found.append(below)
    return found


def _item_bytes(columns: Sequence[KeyColumn]) -> float:
    """Return the average size of a tuple of the index, over the sampled sizes of its columns."""
    many = max((len(column.sizes) for column in columns), default=0) or 1
    sizes = []
    for number in range(many):
        end = 0.0
        for column in columns:
            present = 1 - column.null_fraction
            if column.length > 0:
                aligned = math.ceil(end / column.alignment) * column.alignment if present > 0.5 else end
                end = aligned + column.length * present
            else:
                end += present * (
                    column.sizes[number * len(column.sizes) // many] if column.sizes else column.width
                )
        sizes.append(_aligned(_HEADER + end))
    nulls = 1 - math.prod(1 - column.null_fraction for column in columns)
    return sum(sizes) / many + nulls * (_HEADER_WITH_NULLS - _HEADER)


def _leaf_tuples(rows: float, columns: Sequence[KeyColumn], item: float, unique: bool) -> tuple[float, float]:
    """Return the bytes of all tuples on leaf pages, with their pointers, and the number of tuples."""
    if unique or not all(column.merged and not column.included for column in columns):
        return rows * (item + _ITEM), rows
    if len(columns) == 1:
        (column,) = columns
        present = _item_bytes([replace(column, null_fraction=0.0)])
        groups = [(fraction * rows, 1.0, present) for fraction in column.common]
        if column.null_fraction:
            groups.append((column.null_fraction * rows, 1.0, _HEADER_WITH_NULLS))
        rest = rows * max(0.0, 1 - sum(column.common) - column.null_fraction)
        if rest >= 1:
            others = min(max(1.0, column.distinct - len(column.common)), rest)
            groups.append((rest / others, others, present))
    else:
        combined = math.prod(max(1.0, column.distinct + (column.null_fraction > 0)) for column in columns)
        distinct = combined * -math.expm1(-rows / combined)
        groups = [(rows / max(1.0, distinct), distinct, item)]
    sizes = [(many, *_group(each, value)) for each, many, value in groups]
    return sum(many * size for many, size, _ in sizes), sum(many * tuples for many, _, tuples in sizes)


def _group(size: float, item: float) -> tuple[float, float]:
    """Return the bytes and the number of tuples with one key that on average so many rows have."""
    below = max(1, math.floor(size))
    part = max(0.0, size - below)
    few, more = _merged(below, item), _merged(below + 1, item)
    return (1 - part) * few[0] + part * more[0], (1 - part) * few[1] + part * more[1]


def _merged(size: int, item: float) -> tuple[float, int]:
    most = int((_POSTING - item) // _POINTER)
    if size == 1 or most < 2:
        return size * (item + _ITEM), size
    full, rest = divmod(size, most)
    found = full * (_aligned(item + most * _POINTER) + _ITEM)
    if rest:
        found += (_aligned(item + rest * _POINTER) if rest > 1 else item) + _ITEM
    return found, full + (rest > 0)


def _aligned(size: float) -> float:
    return math.ceil(size / 8) * 8
