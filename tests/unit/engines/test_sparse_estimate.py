"""Sizes of indexes that were not built, against sizes that PostgreSQL 18 built."""

import struct

import pytest

from uncork.engines.sparse.copy import btree_levels, extend
from uncork.engines.sparse.estimate import (
    Entries,
    KeyColumn,
    btree_height,
    btree_pages,
    entries_of,
    other_pages,
)

INT = KeyColumn(4, 4, 4, distinct=1e9)
MD5 = KeyColumn(33, -1, 4, distinct=1e9, sizes=(33,))


@pytest.mark.parametrize(("rows", "columns", "unique", "built"), [
    (100_000, [INT], True, 276),
    (600_000, [KeyColumn(4, 4, 4, distinct=1000)], False, 505),
    (100_000, [KeyColumn(4, 4, 4, distinct=20_000)], False, 144),
    (60_000, [MD5], True, 435),
    (150_000, [KeyColumn(8, -1, 4, distinct=150_000, merged=False, sizes=(9, 9, 9, 9, 8))], False, 568),
    (60_000, [KeyColumn(4, 4, 4, distinct=3), KeyColumn(4, 4, 4, included=True)], False, 166),
    (60_000, [KeyColumn(4, 4, 4, distinct=3), KeyColumn(8, 8, 8, distinct=1e9)], False, 234),
    (60_000, [KeyColumn(33, -1, 4, null_fraction=0.5, distinct=30_000, sizes=(33,))], False, 245),
    (10, [INT], True, 2),
    (0, [INT], True, 1),
])  # fmt: skip
def test_pages_of_a_btree_are_within_a_tenth(rows, columns, unique, built):
    assert btree_pages(rows, columns, unique=unique) == pytest.approx(built, rel=0.1)


@pytest.mark.parametrize(
    ("pages", "columns", "height"), [(2, [INT], 0), (276, [INT], 1), (1650, [INT, INT], 2)]
)
def test_the_height_of_a_btree_follows_from_its_pages(pages, columns, height):
    assert btree_height(pages, columns) == height


def test_entries_grow_with_the_sample_up_to_all_of_them():
    few = entries_of([{"a", "b"}, {"b", "c"}, {"a", "c"}, {"a", "b"}], 1000, 1.0)
    assert (few.many, few.different) == (2000, 3.0)
    new = entries_of([{str(number)} for number in range(100)], 1000, 1.0)
    assert new.different == pytest.approx(1000) and new.frequency == 0.001
    assert entries_of([], 1000, 3.0).many == 3000
    arrays = Entries.of_array(60_000, 2.0, [0.14] * 7 + [1 / 300] * 300)
    assert arrays.many == 120_000 and arrays.different == pytest.approx(307, rel=0.1)


def test_a_block_range_index_is_small_and_a_hash_index_has_a_power_of_two_of_buckets():
    assert other_pages("brin", 1e6, [INT], 10_000, []) == 4
    assert other_pages("hash", 1e5, [INT], 1000, []) == 3 + 512


def test_a_file_of_more_than_a_gibibyte_has_segments_and_takes_no_space(tmp_path):
    path = tmp_path / "16384"
    path.touch()
    extend(path, 131_072 + 3)
    second = tmp_path / "16384.1"
    assert (path.stat().st_size, second.stat().st_size) == (1 << 30, 3 * 8192)
    assert path.stat().st_blocks + second.stat().st_blocks < 100
    extend(path, 5)
    assert path.stat().st_size == 1 << 30


def test_only_an_empty_btree_gets_levels(tmp_path):
    path = tmp_path / "16385"
    meta = bytearray(8192)
    struct.pack_into("<II", meta, 24, 0x053162, 4)
    path.write_bytes(meta)
    btree_levels(path, 2)
    assert path.stat().st_size == 4 * 8192
    assert struct.unpack_from("<6I", path.read_bytes(), 24) == (0x053162, 4, 1, 2, 1, 2)
    with pytest.raises(ValueError, match="16385 is not an empty B-tree"):
        btree_levels(path, 1)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="not an empty B-tree"):
        btree_levels(path, 1)
