"""Requests to object stores and web servers through obstore; the only module that imports it.

Every request is repeated after a pause if it may succeed later: if the connection fails, the server answers
429 or 5xx, or the answer is cut short. An object is identified by its etag, or else by its size and time: the
bytes of another version are never returned.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar

from uncork.errors import ConnectError, UncorkError, UsageError
from uncork.model.extras import install_extra
from uncork.profile.objects.address import LogObject, ObjectAddress
from uncork.profile.objects.problems import problem_of
from uncork.profile.objects.settings import Settings, settings_of

if TYPE_CHECKING:
    from obstore import Bytes, ObjectMeta
    from obstore.store import ClientConfig, ObjectStore

Answer = TypeVar("Answer")

_RANGE_ATTEMPTS: Final = 9
"""How often a range is requested, with pauses that add up to half a minute."""
_FIRST_ATTEMPTS: Final = 4
"""How often anything else is requested: a wrong endpoint is reported within two seconds."""
_FIRST_PAUSE_S: Final = 0.2
_LONGEST_PAUSE_S: Final = 15.0
_LISTED: Final = 1000


class Changed(Exception):
    """The object is not the version that was found."""


class Absent(Exception):
    """The object does not exist, or no longer."""


class _CutShort(Exception):
    """An answer has fewer bytes than were requested."""


def pause_s(attempt: int, chance: float) -> float:
    """Return the pause after a number of failed attempts; `chance` in [0, 1) spreads requests. Pure."""
    return min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0**attempt) * (0.5 + chance / 2)


class Client:
    """Requests to one bucket, container or web server.

    Raises:
        UsageError: if obstore is not installed, or the endpoint is unencrypted and not allowed.
    """

    def __init__(self, address: ObjectAddress) -> None:
        self.address = address
        settings = settings_of(address, os.environ)
        try:
            import obstore  # noqa: PLC0415 -- optional
        except ImportError as error:
            raise UsageError(f"{address.shown} needs obstore: {install_extra('objects')}") from error
        self._obstore = obstore
        try:
            self._store = _open(address, settings)
        except Exception as error:
            raise UsageError(f"{address.shown}: {problem_of(error, address).words}") from error

    def close(self) -> None:
        """Do nothing: obstore ends its connections itself."""

    async def find(self, key: str) -> LogObject | None:
        """Return an object; None if it does not exist.

        Raises:
            ConnectError: if the store does not answer, or refuses.
        """
        try:
            meta = await self._ask(
                self.address.name(key), _FIRST_ATTEMPTS, lambda: self._obstore.head_async(self._store, key)
            )
        except Absent:
            return None
        return self._object(meta, key)

    async def find_below(self, folder: str, after: str = "") -> AsyncIterator[LogObject]:
        """Yield the objects whose keys begin with `folder` and a slash, and come after a key, in their order.

        Raises:
            ConnectError: if the store does not answer, or refuses.
        """
        last, failed = after, 0
        while True:
            pages = self._obstore.list(
                self._store, folder or None, offset=last or None, chunk_size=_LISTED
            ).__aiter__()
            while True:
                try:
                    page = await anext(pages)
                except StopAsyncIteration:
                    return
                except Exception as error:  # noqa: BLE001 -- the store's type of error says little
                    await self._pause_after(error, self.address.shown, failed, _FIRST_ATTEMPTS)
                    failed += 1
                    break
                failed = 0
                for meta in page:
                    last = meta["path"]
                    yield self._object(meta, last)

    async def fetch(self, wanted: LogObject, begin: int, end: int, *, patient: bool = True) -> Bytes:
        """Return the bytes of an object from `begin` until before `end`.

        Unless `patient`, a server that fails is given up after two seconds instead of half a minute.

        Raises:
            Changed: if the object is another version now.
            Absent: if it no longer exists.
            ConnectError: if the store does not answer, or refuses.
        """
        attempts = _RANGE_ATTEMPTS if patient else _FIRST_ATTEMPTS
        return await self._ask(wanted.name, attempts, lambda: self._range(wanted, begin, end))

    # ---- steps ----

    async def _range(self, wanted: LogObject, begin: int, end: int) -> Bytes:
        options: dict[str, Any] = {"range": (begin, end)}
        if wanted.etag is not None and not wanted.etag.startswith("W/"):
            options["if_match"] = f'"{_plain(wanted.etag)}"'
        found = await self._obstore.get_async(self._store, wanted.key, options=options)  # type: ignore[arg-type]
        if not _is_same(wanted, found.meta):
            raise Changed
        content = await found.bytes_async()
        if len(content) != end - begin:
            raise _CutShort
        return content

    async def _ask(self, shown: str, attempts: int, request: Callable[[], Awaitable[Answer]]) -> Answer:
        attempt = 0
        while True:
            try:
                return await request()
            except Changed:
                raise
            except Exception as error:  # noqa: BLE001 -- as above
                await self._pause_after(error, shown, attempt, attempts)
            attempt += 1

    async def _pause_after(self, error: Exception, shown: str, attempt: int, attempts: int) -> None:
        """Wait before the request is repeated, or raise what its failure means."""
        if isinstance(error, UncorkError):
            raise error
        problem = problem_of(error, self.address)
        if problem.kind == "changed":
            raise Changed from error
        if problem.kind == "absent":
            raise Absent from error
        if problem.kind == "final":
            raise ConnectError(f"{shown}: {problem.words}") from error
        if attempt + 1 >= attempts:
            raise ConnectError(f"{shown}: {problem.words}, {attempts} times in a row") from error
        await asyncio.sleep(pause_s(attempt, random.random()))

    def _object(self, meta: ObjectMeta, key: str) -> LogObject:
        modified_s = int(meta["last_modified"].timestamp())
        return LogObject(self.address.name(key), self.address, key, meta["size"], modified_s, meta["e_tag"])


def _open(address: ObjectAddress, settings: Settings) -> ObjectStore:
    from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store  # noqa: PLC0415 -- optional

    client: ClientConfig = {
        "allow_http": settings.allow_http,
        "connect_timeout": timedelta(seconds=10),
        "read_timeout": timedelta(seconds=30),
        "timeout": timedelta(minutes=10),
        "user_agent": "uncork",
    }
    if settings.headers:
        client["default_headers"] = settings.headers
    shared: dict[str, Any] = {"client_options": client, "retry_config": {"max_retries": 0}}
    if address.backend == "http":
        query = f"?{address.query}" if address.query else ""
        return HTTPStore(f"{address.bucket}/{query}", **shared)
    shared["config"] = settings.config
    if address.backend == "s3":
        return S3Store(address.bucket, **shared)
    kind = GCSStore if address.backend == "gs" else AzureStore
    return kind(address.bucket, **shared)


def _is_same(wanted: LogObject, found: ObjectMeta) -> bool:
    etag = found["e_tag"]
    if wanted.etag is not None and etag is not None:
        return _plain(wanted.etag) == _plain(etag)
    return wanted.size == found["size"] and wanted.modified_s == int(found["last_modified"].timestamp())


def _plain(etag: str) -> str:
    """Return an etag without quotes, which lists of some stores leave out."""
    return etag.removeprefix("W/").strip('"')
