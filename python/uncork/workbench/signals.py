"""Signals while something must not be left half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

__all__ = ["uninterrupted"]

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let cleaning up finish: a second Ctrl-C must not leave a server behind.

    What comes meanwhile is postponed: after the block it has the effect that it would have had. Blocks may
    lie within each other; then it is after the outermost.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    postponed: dict[signal.Signals, None] = {}

    def postpone(number: int, _frame: FrameType | None) -> None:
        postponed[signal.Signals(number)] = None

    before: dict[signal.Signals, Any] = {}
    try:
        for number in _NUMBERS:
            before[number] = signal.signal(number, postpone)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in postponed:
            signal.raise_signal(number)
