"""The progress of a load that ends after a number of operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from uncork.cli import console
from uncork.model.load import LoadProgress
from uncork.model.units import format_count


@contextmanager
def counted_progress(total: int | None, noun: str) -> Iterator[Callable[[LoadProgress], None] | None]:
    """Show how many of `total` operations have ended, until the block ends; None if their number is open."""
    if total is None:
        yield None
        return
    ended = 0

    def show(progress: LoadProgress) -> None:
        nonlocal ended
        ended += progress.succeeded + progress.failed + progress.skipped
        share = f"{100 * min(ended, total) // total} %"
        rate = progress.succeeded / progress.seconds if progress.seconds else 0.0
        text = f"{format_count(ended)} of {format_count(total)} {noun} ({share}), {rate:.1f} {noun}/s"
        console.show_live(text, progress.elapsed_ns)

    try:
        yield show
    finally:
        console.end_live()
