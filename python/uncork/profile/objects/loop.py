"""An event loop in a thread of its own, for requests while the calling thread waits or works."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self, TypeVar

Answer = TypeVar("Answer")

_PATIENCE_S: Final = 5.0


class LoopThread:
    """Runs coroutines; a context that ends all of them."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="uncork-objects", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(TimeoutError):
            self.begin(self._cancel_all()).result(_PATIENCE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE_S)
        if not self._thread.is_alive():
            self._loop.close()

    def begin(self, work: Coroutine[Any, Any, Answer]) -> Future[Answer]:
        """Begin a coroutine, and return its future. Any thread may call it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Wait for a coroutine, and return what it returns."""
        return self.begin(work).result()

    async def _cancel_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
