"""Fetch objects by ranges, several at once, and hand them to the core in their order."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeVar

from uncork.errors import ConnectError
from uncork.model.records import Record
from uncork.profile.objects.address import LogObject, ObjectAddress
from uncork.profile.objects.client import Absent, Changed, Client
from uncork.profile.objects.ssh import SshClient

if TYPE_CHECKING:
    from obstore import Bytes

_AT_ONCE: Final = 32
"""The most requests at once, if objects are small."""
_WAIT_S: Final = 0.1
_VERSIONS: Final = 3
"""How often an object may change before its first byte is read, as the log of the current hour does."""


class _Range(Record):
    """A range of an object, by its place in the order, while it is fetched."""

    place: int
    begin: int
    end: int
    answer: Future[Bytes | bytes]


class ObjectReader:
    """Fetches objects for the core, which reads them one after the other in the given order.

    An object that changes after its first bytes were handed over is not read on: the bytes of two versions
    never mix. If it changes before, the new version is read.

    `range_bytes` is the size of a range, and `ahead_bytes` the most bytes that are requested, or have
    arrived, before the core needs them. Reading begins with a quarter of that, and doubles it whenever the
    core waits: where objects arrive faster than they are scanned, less memory is touched, which saves a tenth
    of the processor time.
    """

    range_bytes: ClassVar[int] = 8 << 20
    ahead_bytes: ClassVar[int] = 96 << 20
    kept_bytes: ClassVar[int] = 32 << 20

    def __init__(self, objects: Sequence[LogObject]) -> None:
        self._objects = list(objects)
        self._places = {log_object.name: place for place, log_object in enumerate(objects)}
        self._clients = Clients()
        self._loop = LoopThread()
        self._queue: deque[_Range] = deque()
        self._plan = self._ranges(0)
        self._planned = True
        self._at = 0
        self._handed = 0
        self._versions = 1
        self._renewed: Future[LogObject | None] | None = None
        self._kept: dict[str, list[memoryview]] = {}
        self._rest = memoryview(b"")
        self._left = self.kept_bytes
        self._ahead = min(self.ahead_bytes, max(self.range_bytes, self.ahead_bytes // 4))

    def __enter__(self) -> Self:
        self._loop.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.__exit__(kind, error, trace)
        self._clients.close()

    def written_s(self, name: str) -> int | None:
        """Return when an object was written, in seconds since 1970; None if it is none of the objects."""
        place = self._places.get(name)
        return None if place is None else self._objects[place].modified_s

    def read(self, name: str, most: int) -> memoryview | None:
        """Return the next bytes of an object, at most `most`; empty at its end, None before they arrive.

        Raises ConnectError if the object cannot be read to its end. The message does not name it.
        """
        self._go_to(self._places[name])
        if not self._rest:
            piece = self._next_piece(name)
            if piece is None:
                return None
            self._rest = piece
        wanted, self._rest = self._rest[:most], self._rest[most:]
        return wanted

    def beginnings(self) -> Mapping[str, Sequence[memoryview]]:
        """Return the first pieces that were handed over, by object: `kept_bytes`, and the rest of a piece."""
        return self._kept

    # ---- steps ----

    def _next_piece(self, name: str) -> memoryview | None:
        if self._renewed is not None and not self._take_renewed():
            return None
        self._fill()
        if not self._queue or self._queue[0].place != self._at:
            return memoryview(b"")
        first = self._queue[0]
        if self._handed and not first.answer.done():
            self._ahead = min(self.ahead_bytes, 2 * self._ahead)
        try:
            piece = memoryview(first.answer.result(_WAIT_S))
        except TimeoutError:
            return None
        except (Changed, Absent) as error:
            if self._handed or self._versions >= _VERSIONS:
                raise ConnectError(self._gone(error)) from error
            self._renew()
            return None
        except ConnectError as error:
            shown = f"{self._objects[self._at].name}: "
            raise ConnectError(str(error).removeprefix(shown)) from error
        self._queue.popleft()
        self._handed = first.end
        self._fill()
        if self._left > 0:
            self._kept.setdefault(name, []).append(piece)
            self._left -= len(piece)
        return piece

    def _go_to(self, place: int) -> None:
        """Begin with an object: drop what was requested of the ones before, which the core has left."""
        if place == self._at:
            return
        self._at, self._handed, self._versions, self._renewed = place, 0, 1, None
        self._rest = memoryview(b"")
        while self._queue and self._queue[0].place < place:
            self._queue.popleft().answer.cancel()
        if not self._queue:
            self._plan, self._planned = self._ranges(place), True

    def _ranges(self, place: int) -> Iterator[tuple[int, int, int]]:
        """Yield all ranges from an object on: its place, the beginning and the end."""
        for number in range(place, len(self._objects)):
            size = self._objects[number].size
            for begin in range(0, size, self.range_bytes):
                yield number, begin, min(size, begin + self.range_bytes)

    def _fill(self) -> None:
        ahead = sum(piece.end - piece.begin for piece in self._queue)
        while self._planned and len(self._queue) < _AT_ONCE and ahead < self._ahead:
            following = next(self._plan, None)
            if following is None:
                self._planned = False
                return
            place, begin, end = following
            wanted = self._objects[place]
            fetching: Coroutine[Any, Any, Bytes | bytes] = self._clients.of(wanted).fetch(wanted, begin, end)
            answer = self._loop.begin(fetching)
            self._queue.append(_Range(place, begin, end, answer))
            ahead += end - begin

    def _renew(self) -> None:
        """Find the version that the object has now; what was requested is requested again."""
        for piece in self._queue:
            piece.answer.cancel()
        self._queue.clear()
        self._versions += 1
        wanted = self._objects[self._at]
        self._renewed = self._loop.begin(self._clients.of(wanted).find(wanted.key))

    def _take_renewed(self) -> bool:
        assert self._renewed is not None  # noqa: S101 -- the caller checks it
        try:
            found = self._renewed.result(_WAIT_S)
        except TimeoutError:
            return False
        self._renewed = None
        if found is None:
            raise ConnectError(self._gone(Absent()))
        before = self._objects[self._at]
        self._objects[self._at] = replace(
            before, size=found.size, modified_s=found.modified_s, etag=found.etag
        )
        self._plan, self._planned = self._ranges(self._at), True
        return True

    def _gone(self, error: Exception) -> str:
        what = "was deleted" if isinstance(error, Absent) else "changed"
        kept = f"its first {self._handed} bytes count" if self._handed else "nothing of it counts"
        return f"the object {what} while it was read: {kept}; read it again once it is complete"


# ---- clients of addresses: obstore's for stores and web servers, ssh for other machines ----


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
