"""Find when the logs in objects begin: from their names, or from their first bytes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from uncork import _native
from uncork.errors import ConnectError
from uncork.profile.objects.address import LogObject
from uncork.profile.objects.client import Absent, Changed
from uncork.profile.objects.clients import Clients, LoopThread
from uncork.profile.objects.layouts import CLOSE, FIRST, named_times

_HEADS: Final = (64 << 10, 1 << 20)
"""How many bytes of an object are fetched; the second number if the first shows no entry, as with bzip2."""
_AT_ONCE: Final = 16
_PATIENCE_S: Final = 10.0


def object_begins(objects: Sequence[LogObject], prefix: str | None) -> tuple[int | None, ...]:
    """Return when the first entry of each object was logged, in microseconds since 1970; None if unknown.

    An object whose name says when its entries were written is not fetched, unless others must be and its name
    leaves the time zone open. An object that cannot be fetched has no time: reading it reports why. Raises
    ValueError if the prefix is not a valid log_line_prefix.
    """
    named = {each: times for each in objects if (times := named_times(each.key)) is not None}
    if any(each.size for each in objects if each not in named):
        named = {each: times for each, times in named.items() if times.slack <= CLOSE}
    microsecond = timedelta(microseconds=1)
    begins: dict[LogObject, int | None] = {
        each: (times.begin - FIRST) // microsecond for each, times in named.items()
    }
    rest = [each for each in objects if each.size and each not in named]
    if rest:
        with LoopThread() as loop:
            begins |= zip(rest, loop.run(_fetched(rest, prefix)), strict=True)
    return tuple(map(begins.get, objects))


async def _fetched(objects: Sequence[LogObject], prefix: str | None) -> tuple[int | None, ...]:
    clients = Clients()
    turns = asyncio.Semaphore(_AT_ONCE)

    async def begin(log_object: LogObject) -> int | None:
        for head, before in zip(_HEADS, (0, *_HEADS), strict=False):
            if log_object.size <= before:
                break
            async with turns:
                try:
                    async with asyncio.timeout(_PATIENCE_S):
                        client, end = clients.of(log_object), min(head, log_object.size)
                        beginning = await client.fetch(log_object, 0, end, patient=False)
                except (Changed, Absent, ConnectError, TimeoutError):
                    return None
            found = _native.begin_of_object(bytes(beginning), log_object.modified_s, prefix)
            if found is not None:
                return found
        return None

    try:
        return tuple(await asyncio.gather(*map(begin, objects)))
    finally:
        clients.close()
