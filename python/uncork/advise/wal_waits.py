"""Which wait events are waits for the write-ahead log. Pure."""

from __future__ import annotations

from typing import Final

from uncork.advise.evidence import Piece

__all__ = ["waits_for_wal"]

_LOCKS: Final = frozenset({"walwrite", "walbufmapping", "walinsert"})
_FILES: Final = ("walwrite", "walsync", "walinit")


def waits_for_wal(piece: Piece) -> bool:
    """Return whether a piece of time is spent waiting until WAL is inserted, written or flushed.

    PostgreSQL 17 renamed the events: WALSync became WalSync.
    """
    event = piece.wait_event.lower()
    if piece.wait_class == "LWLock":
        return event in _LOCKS
    return piece.wait_class == "IO" and event.startswith(_FILES)
