"""Choose the client of an address: obstore's for stores and web servers, ssh for other machines."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from uncork.profile.objects.address import LogObject, ObjectAddress
from uncork.profile.objects.client import Client
from uncork.profile.objects.ssh import SshClient


def open_client(address: ObjectAddress) -> Client | SshClient:
    """Return a client for an address; `close` ends it.

    Raises UsageError if a package or program is missing, or the endpoint is not allowed.
    """
    return SshClient(address) if address.backend == "ssh" else Client(address)


class Clients:
    """The clients that fetch objects: one for each bucket, web address or machine, opened when needed."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], Client | SshClient] = {}

    def of(self, wanted: LogObject) -> Client | SshClient:
        """Return the client that fetches an object. Raises UsageError as `open_client`."""
        address = wanted.address
        key = (address.bucket, wanted.name if address.backend == "http" else address.account)
        if key not in self._clients:
            self._clients[key] = open_client(address)
        return self._clients[key]

    def close(self) -> None:
        """End all clients."""
        for client in self._clients.values():
            client.close()


# ---- an event loop in a thread, for requests while the calling thread waits or works ----

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
