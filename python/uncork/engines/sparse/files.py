"""Give the files of an empty relation the size of a full one, without writing rows.

The planner asks the file system how many pages a relation has. A file that is extended by truncate(2) has
holes, so it takes no space. A page of zeros counts as a new page, which the server accepts.

The planner also reads the height of a B-tree from its metapage, and may look up the smallest and the largest
key in the index. So a B-tree gets one empty page for each level, each with a link to the next one.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Final

_PAGE: Final = 8192
_SEGMENT_PAGES: Final = 131_072
"""Pages of a file: a relation of more than 1 GiB has several."""
_HEADER: Final = struct.Struct("<QHHHHHHI")
_META: Final = struct.Struct("<6I")
_MAGIC: Final = 0x053162
_OF_TREE: Final = struct.Struct("<IIIHH")
_TUPLE: Final = struct.Struct("<HHHH")
_LEAF, _ROOT = 1, 2
_NO_KEY: Final = 8 | 0x2000
"""The size and the flag of a tuple without keys: the first one of an inner page."""
_LAYOUT: Final = _PAGE | 4
_SPECIAL: Final = _PAGE - 16


def extend(path: Path, pages: int) -> None:
    """Extend the files of a relation to so many pages; never shorten them.

    Raises:
        OSError: if a file cannot be extended.
    """
    owner = path.stat()
    for segment in range(-(-pages // _SEGMENT_PAGES)):
        part = path if segment == 0 else path.with_name(f"{path.name}.{segment}")
        size = min(pages - segment * _SEGMENT_PAGES, _SEGMENT_PAGES) * _PAGE
        if not part.exists():
            part.touch(mode=0o600)
            if os.geteuid() == 0:
                os.chown(part, owner.st_uid, owner.st_gid)
        if part.stat().st_size < size:
            os.truncate(part, size)


def btree_levels(path: Path, height: int) -> None:
    """Give an empty B-tree so many levels above the leaves. The server must not have read it yet.

    Raises:
        OSError: if the file cannot be written.
        ValueError: if it is no empty B-tree.
    """
    if height < 1:
        return
    with path.open("r+b") as file:
        meta = bytearray(file.read(_PAGE))
        magic, version, root, *_ = _META.unpack_from(meta, _HEADER.size) if len(meta) == _PAGE else (0, 0, 0)
        if magic != _MAGIC or root != 0:
            raise ValueError(f"{path.name} is not an empty B-tree")
        _META.pack_into(meta, _HEADER.size, magic, version, 1, height, 1, height)
        file.seek(0)
        file.write(meta)
        for level in range(height, -1, -1):
            file.write(_tree_page(level, height))


def _tree_page(level: int, height: int) -> bytes:
    """Return the only page of a level: block 1 is the root, block height + 1 the leaf."""
    page = bytearray(_PAGE)
    upper, lower = _SPECIAL, _HEADER.size
    if level:
        upper -= _TUPLE.size
        below = height - level + 2
        struct.pack_into("<I", page, lower, upper | 1 << 15 | _TUPLE.size << 17)
        _TUPLE.pack_into(page, upper, below >> 16, below & 0xFFFF, 0, _NO_KEY)
        lower += 4
    _HEADER.pack_into(page, 0, 0, 0, 0, lower, upper, _SPECIAL, _LAYOUT, 0)
    flags = (_ROOT if level == height else 0) | (0 if level else _LEAF)
    _OF_TREE.pack_into(page, _SPECIAL, 0, 0, level, flags, 0)
    return bytes(page)
