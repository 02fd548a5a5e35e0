"""Postpone signals while cleaning up or writing results."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

_NUMBERS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Postpone SIGINT, SIGTERM and SIGHUP until the block has ended, so that cleaning up can finish.

    After the block, a postponed signal has its usual effect. Blocks can be nested; the signal then arrives
    after the outermost block. In other threads than the main thread, the block does nothing.
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
