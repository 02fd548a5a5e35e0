"""Find the objects of an address, which is the name of one object, a prefix, or a glob."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Final

from uncork.errors import SetupError
from uncork.model.records import Record
from uncork.profile.objects.address import LogObject, ObjectAddress, parse_object_address
from uncork.profile.objects.client import Absent, Changed, Client
from uncork.profile.objects.clients import open_client
from uncork.profile.objects.layouts import is_named_as_log
from uncork.profile.objects.loop import LoopThread
from uncork.profile.objects.ssh import SshClient

_HEAD: Final = 64 << 10
"""How many bytes of an object show whether it can be a log."""
_AT_ONCE: Final = 16
_MAGIC: Final = re.compile(r"[*?[]")


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
            if isinstance(client, SshClient):
                return loop.run(_find_files(client, address, can_be_log))
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
    client: Client, address: ObjectAddress, can_be_log: Callable[[str, bytes], bool]
) -> FoundObjects:
    key = address.key
    if address.backend == "http":
        found = await client.find(key)
        return FoundObjects(_some([found] if found else [], address, "the server has no such file"), ())
    if magic := _MAGIC.search(key):
        begin = key[: magic.start()]
        pattern = glob_pattern(key)
        matching = [
            log_object
            for log_object in await _beginning_with(client, begin)
            if pattern.fullmatch(log_object.key)
        ]
        return FoundObjects(_some(matching, address, "no object matches"), ())
    if key and not key.endswith("/") and (exact := await client.find(key)) is not None:
        return FoundObjects((exact,), ())
    folder = key.rstrip("/")
    below = [log_object async for log_object in client.find_below(folder)]
    if not below and key and not key.endswith("/"):
        below = await _beginning_with(client, key)
    shown = [file for file in _files(below) if not _is_hidden(file.key.removeprefix(key))]
    logs, others = await _judged(client, shown, can_be_log)
    if shown and not logs:
        names = ", ".join(log_object.key for log_object in others[:3]) + (
            " and more" if len(others) > 3 else ""
        )
        raise SetupError(
            f"{address.shown}: no object with this prefix is a log, only {names}; to read one anyway, name it"
        )
    problem = "no object has this name or prefix" if key else "the bucket is empty"
    return FoundObjects(_some(logs, address, problem), tuple(log_object.name for log_object in others))


async def _find_files(
    client: SshClient, address: ObjectAddress, can_be_log: Callable[[str, bytes], bool]
) -> FoundObjects:
    """Return the file, the files that match a glob, or the logs in a folder: the same as on this machine."""
    key = address.key
    if not _MAGIC.search(key) and (exact := await client.find(key)) is not None:
        return FoundObjects((exact,), ())
    if magic := _MAGIC.search(key):
        folder, _, _ = key[: magic.start()].rpartition("/")
        depth = 64 if "**" in key else key.count("/") - folder.count("/") + (not folder)
        pattern = glob_pattern(key)
        matching = [
            log_object
            for log_object in await client.find_in(folder, depth)
            if pattern.fullmatch(log_object.key)
        ]
        return FoundObjects(_some(matching, address, "no file matches"), ())
    below = [
        log_object
        for log_object in await client.find_in(key, 1)
        if not _is_hidden(log_object.key.rpartition("/")[2])
    ]
    logs, others = await _judged(client, below, can_be_log)
    problem = "the folder has no logs" if below else "the machine has no such file, or the folder is empty"
    return FoundObjects(_some(logs, address, problem), tuple(log_object.name for log_object in others))


async def _beginning_with(client: Client, text: str) -> list[LogObject]:
    """Return the objects whose keys begin with a text, in their order."""
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
    logs = [log_object for log_object, answer in zip(objects, answers, strict=True) if answer]
    others = [log_object for log_object, answer in zip(objects, answers, strict=True) if not answer]
    return logs, others


def _some(found: Sequence[LogObject], address: ObjectAddress, problem: str) -> tuple[LogObject, ...]:
    if not found:
        raise SetupError(f"{address.shown}: {problem}")
    return tuple(sorted(found, key=lambda one: one.key))


def _files(found: Sequence[LogObject]) -> list[LogObject]:
    """Return the objects without placeholders of folders, which are empty and have a folder's name."""
    folders = {
        log_object.key[:at] for log_object in found for at, sign in enumerate(log_object.key) if sign == "/"
    }
    return [log_object for log_object in found if log_object.size or log_object.key not in folders]


def _is_hidden(key: str) -> bool:
    return any(part.startswith(".") for part in key.split("/") if part)
