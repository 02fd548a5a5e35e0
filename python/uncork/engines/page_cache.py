"""Drop a folder's files from the kernel's page cache, and see how much of them stayed there."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PIECE: Final = 1 << 30
"""Bytes of a file whose pages are looked up at once."""


def emptied(folder: Path) -> float:
    """Write a folder's files to disk and drop them from the page cache; return the fraction that stayed.

    Needs no privileges, but files that others have mapped or that live in memory (tmpfs) stay. Caches of a
    hypervisor or a disk are out of reach. See posix_fadvise(2), POSIX_FADV_DONTNEED, and mincore(2).

    Raises:
        OSError: if a file cannot be read.
    """
    pages = stayed = 0
    for path in _files(folder):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            many, left = _dropped(file.fileno())
            if left:  # the kernel drops only pages that are on disk
                os.fsync(file.fileno())
                many, left = _dropped(file.fileno())
            pages += many
            stayed += left
    return stayed / pages if pages else 0.0


def _dropped(file: int) -> tuple[int, int]:
    """Drop the pages of a file; return how many pages it has, and how many are still in the page cache."""
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    found = list(_resident(file))
    return sum(many for many, _ in found), sum(many for _, many in found)


def _files(folder: Path) -> Iterator[Path]:
    for base, _, names in os.walk(folder):
        for name in names:
            path = Path(base, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _resident(file: int) -> Iterator[tuple[int, int]]:
    """Yield the number of pages of each piece of an open file, and how many of them are in memory."""
    size = os.fstat(file).st_size
    mincore = ctypes.CDLL(None, use_errno=True).mincore
    mincore.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p)
    for start in range(0, size, _PIECE):
        length = min(_PIECE, size - start)
        with mmap.mmap(
            file, length, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE, offset=start
        ) as piece:
            many = -(-length // mmap.PAGESIZE)
            states = ctypes.create_string_buffer(many)
            first = ctypes.c_char.from_buffer(piece)
            try:
                if mincore(ctypes.addressof(first), length, states) != 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            finally:
                del first  # else the piece could not be closed
            yield many, sum(state & 1 for state in states.raw)
