"""Report which failed runs the word ``last`` skips."""

from __future__ import annotations

from pathlib import Path

from uncork.cli import console
from uncork.model.units import count_words
from uncork.store.layout import LAST, failed_since, failure_reason


def note_skipped(root: Path, *words: str | None) -> None:
    """Print a note if one of the words is ``last`` and newer runs failed, so that nobody takes them for it.

    Raises UncorkError if the runs cannot be listed.
    """
    skipped = failed_since(root) if LAST in words else []
    if not skipped:
        return
    newest = skipped[0]
    which = (
        newest.id if len(skipped) == 1 else f"{count_words(len(skipped), 'newer run')}, such as {newest.id}"
    )
    console.note(
        f'"{LAST}" skips {which}, which failed{failure_reason(newest)}; '
        f"`uncork report {newest.id}` shows what failed"
    )
