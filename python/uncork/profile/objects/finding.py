"""Find the objects of an address (the name of one, a prefix, or a glob), and when their logs begin."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from uncork import _native
from uncork.errors import ConnectError, SetupError
from uncork.model.records import Record
from uncork.profile.objects.address import LogObject, ObjectAddress, parse_object_address
from uncork.profile.objects.client import Absent, Changed, Client
from uncork.profile.objects.layouts import CLOSE, FIRST, is_named_as_log, named_times
from uncork.profile.objects.reading import Clients, LoopThread, open_client
from uncork.profile.objects.ssh import SshClient

_HEAD: Final = 64 << 10
"""How many bytes of an object show whether it can be a log."""
_AT_ONCE: Final = 16
_MAGIC: Final = re.compile(r"[*?[]")
_NO_FILE: Final = "the machine has no such file, or the folder is empty"


class FoundObjects(Record):
    """The logs at an address, sorted by name, and the names of other objects there."""

    objects: tuple[LogObject, ...]
    skipped: tuple[str, ...]


def find_objects(text: str, can_be_log: Callable[[str, bytes], bool]) -> FoundObjects:
    """Return the objects of an address.

    `can_be_log` judges an object below a prefix by its name and its first 64 KiB, unless its name says that
    it is a log. An object that is named itself, or by a glob, is not judged.

    Raises:
        UsageError: if the address is not valid, or obstore is not installed.
        SetupError: if no object is found.
        ConnectError: if the store does not answer, or refuses.
    """
    address = parse_object_address(text)
    client = open_client(address)
    try:
        with LoopThread() as loop:
            return loop.run(_find(client, address, can_be_log))
    finally:
        client.close()


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Return the pattern of a glob: * and ? stay within a folder, ** crosses folders. Pure."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?[^\]]+\])", glob)
    signs = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    words = (
        signs.get(part) or (f"[^{part[2:]}" if part.startswith("[!") else part)
        if part in signs or (part.startswith("[") and part.endswith("]") and len(part) > 2)
        else re.escape(part)
        for part in parts
    )
    return re.compile("".join(words), re.DOTALL)


async def _find(
    client: Client | SshClient, address: ObjectAddress, can_be_log: Callable[[str, bytes], bool]
) -> FoundObjects:
    """Return one object, all objects that match a glob, or the logs with a prefix or in a folder."""
    key, files = address.key, isinstance(client, SshClient)
    magic = _MAGIC.search(key)
    if address.backend == "http":
        found = await client.find(key)
        return FoundObjects(_some([found] if found else [], address, "the server has no such file"), ())
    if magic:
        among = await _below_glob(client, key, magic.start())
        matching = [each for each in among if glob_pattern(key).fullmatch(each.key)]
        problem = f"no {'file' if files else 'object'} matches"
        return FoundObjects(_some(matching, address, problem), ())
    named = files or (key and not key.endswith("/"))
    if named and (exact := await client.find(key)) is not None:
        return FoundObjects((exact,), ())
    if isinstance(client, SshClient):
        inside = await client.find_in(key, 1)
        shown = [each for each in inside if not _is_hidden(each.key.rpartition("/")[2])]
        problem = "the folder has no logs" if shown else _NO_FILE
    else:
        below = [each async for each in client.find_below(key.rstrip("/"))]
        if not below and named:
            below = await _beginning_with(client, key)
        shown = [each for each in _files(below) if not _is_hidden(each.key.removeprefix(key))]
        problem = "no object has this name or prefix" if key else "the bucket is empty"
    logs, others = await _judged(client, shown, can_be_log)
    if shown and not logs and not files:
        names = ", ".join(each.key for each in others[:3]) + (" and more" if len(others) > 3 else "")
        raise SetupError(
            f"{address.shown}: no object with this prefix is a log, only {names}; to read one anyway, name it"
        )
    return FoundObjects(_some(logs, address, problem), tuple(each.name for each in others))


async def _below_glob(client: Client | SshClient, key: str, magic: int) -> list[LogObject]:
    """Return the objects that may match a glob, whose first sign is at `magic`."""
    if not isinstance(client, SshClient):
        return await _beginning_with(client, key[:magic])
    folder = key[:magic].rpartition("/")[0]
    depth = 64 if "**" in key else key.count("/") - folder.count("/") + (not folder)
    return await client.find_in(folder, depth)


async def _beginning_with(client: Client, text: str) -> list[LogObject]:
    folder, _, rest = text.rpartition("/")
    found = []
    async for log_object in client.find_below(folder, after=text[:-1] if rest else ""):
        if log_object.key.startswith(text):
            found.append(log_object)
        elif log_object.key > text:
            break
    return found


async def _judged(
    client: Client | SshClient, objects: Sequence[LogObject], can_be_log: Callable[[str, bytes], bool]
) -> tuple[list[LogObject], list[LogObject]]:
    """Divide objects into logs and others; read the beginning of those whose names do not say it."""
    turns = asyncio.Semaphore(_AT_ONCE)

    async def is_log(log_object: LogObject) -> bool:
        if not can_be_log(log_object.key, b""):
            return False
        if is_named_as_log(log_object.key) or not log_object.size:
            return True
        async with turns:
            try:
                head = await client.fetch(log_object, 0, min(_HEAD, log_object.size))
            except (Changed, Absent):
                return True
        return can_be_log(log_object.key, bytes(head))

    answers = await asyncio.gather(*map(is_log, objects))
    pairs = list(zip(objects, answers, strict=True))
    return [each for each, answer in pairs if answer], [each for each, answer in pairs if not answer]


def _some(found: Sequence[LogObject], address: ObjectAddress, problem: str) -> tuple[LogObject, ...]:
    if not found:
        raise SetupError(f"{address.shown}: {problem}")
    return tuple(sorted(found, key=lambda each: each.key))


def _files(found: Sequence[LogObject]) -> list[LogObject]:
    """Return the objects without placeholders of folders, which are empty and have a folder's name."""
    folders = {each.key[:at] for each in found for at, sign in enumerate(each.key) if sign == "/"}
    return [each for each in found if each.size or each.key not in folders]


def _is_hidden(key: str) -> bool:
    return any(part.startswith(".") for part in key.split("/") if part)


# ---- when logs begin: from their names, or from their first bytes ----

_HEADS: Final = (64 << 10, 1 << 20)
"""How many bytes of an object are fetched; the second number if the first shows no entry, as with bzip2."""
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
