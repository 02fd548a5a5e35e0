"""Find out which server wrote each log. Pure, but for the current folder, which relative names begin at."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Final

from uncork.errors import UsageError
from uncork.profile.objects.address import parse_object_address
from uncork.profile.objects.layouts import undated

_STDIN: Final = "-"
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class LogServers:
    """How logs are assigned to servers: the request for `of`.

    `patterns` are names of servers, each with a file, folder, glob or address of its logs. With `by_folder`,
    logs without such a pattern have the name of their folder. `only` selects servers by patterns in which `*`
    stands for any text and `!` excludes. Messages call the options `names`.
    """

    patterns: tuple[tuple[str, str], ...] = ()
    by_folder: bool = False
    only: tuple[str, ...] = ()
    names: tuple[str, str, str] = ("--server", "--servers by-folder", "--only-server")

    def __bool__(self) -> bool:
        """Return whether servers are named."""
        return bool(self.patterns) or self.by_folder

    def of(self, logs: Sequence[str], *, lenient: bool = False) -> tuple[str, ...]:
        """Return the server of each log; an empty tuple if servers are not named.

        Each pattern must match a log, unless `lenient`.

        Raises:
            UsageError: if a pattern matches no log, or a log matches the patterns of several servers or of
                none.
        """
        if not self:
            if self.only:
                raise UsageError(f"{self.names[2]} requires {self.names[0]} or {self.names[1]}")
            return ()
        found: dict[str, str] = {}
        for server, pattern in self.patterns:
            matching = _matching(pattern, logs)
            if not matching and not lenient:
                raise UsageError(f'{self.names[0]} {server}={pattern}: no log matches "{pattern}"')
            for log in matching:
                if found.setdefault(log, server) != server:
                    raise UsageError(
                        f"{self.names[0]}: {log} matches the patterns of two servers, {found[log]} and "
                        f"{server}; make one of them narrower"
                    )
        rest = [log for log in logs if log not in found]
        if self.by_folder:
            found.update(_by_folder(rest))
        elif rest:
            listed = ", ".join(rest[:_SHOWN]) + (" and more" if len(rest) > _SHOWN else "")
            raise UsageError(
                f"{self.names[0]}: no pattern matches {listed}; name the server of each log, or add "
                f"{self.names[1]}"
            )
        return tuple(found[log] for log in logs)

    def selected(self, servers: Sequence[str]) -> frozenset[str]:
        """Return the servers among these whose logs are to be read.

        Raises:
            UsageError: if none is.
        """
        known = sorted(set(servers))
        kept = [text for text in known if self.selects(text)]
        if self.only and not kept:
            raise UsageError(
                f"{self.names[2]} {', '.join(self.only)}: no server is left; the servers are "
                f"{', '.join(known)}"
            )
        return frozenset(kept)

    def selects(self, server: str) -> bool:
        """Return whether the logs of a server are to be read."""
        wanted = [text for text in self.only if not text.startswith("!")] or ["*"]
        unwanted = [text[1:] for text in self.only if text.startswith("!")]
        return _fits(server, wanted) and not _fits(server, unwanted)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    # Only * is special, as in the other filters.
    return any(fnmatchcase(name, re.sub(r"([?[])", r"[\1]", pattern)) for pattern in patterns)


def _matching(pattern: str, logs: Sequence[str]) -> list[str]:
    """Return the logs that a file, folder, glob or address names; also those in folders that it names."""
    if pattern == _STDIN:
        return [log for log in logs if log == _STDIN]
    whole = _whole(pattern)
    names = {log: _whole(log) for log in logs if log != _STDIN}
    if re.search(r"[*?[]", whole):
        from uncork.profile.objects.finding import glob_pattern  # noqa: PLC0415 -- loads what objects need

        regex = re.compile(rf"(?s:{glob_pattern(whole).pattern})(?:/.*)?", re.DOTALL)
        return [log for log, name in names.items() if regex.fullmatch(name)]
    folder = whole.rstrip("/") + "/"
    found = [log for log, name in names.items() if name == whole or name.startswith(folder)]
    if found or "://" not in whole or whole.endswith("/"):
        return found
    return [log for log, name in names.items() if name.startswith(whole)]


def _whole(name: str) -> str:
    """Return the name of a log so that names of the same log are equal."""
    if "://" in name:
        return parse_object_address(name).shown
    return os.path.abspath(name) + ("/" if name.endswith("/") else "")  # noqa: PTH100 -- a glob is no path


def _by_folder(logs: Sequence[str]) -> Mapping[str, str]:
    """Return the name of each log's server: what its folder's path does not share with the others' paths.

    Folders of dates are left out. If all logs are in one folder, its name is the server's.
    """
    folders = {log: undated(_whole(log)).rpartition("/")[0] if log != _STDIN else "stdin" for log in logs}
    paths = {folder: [part for part in folder.split("/") if part] for folder in folders.values()}
    begin = _shared(list(paths.values()))
    end = _shared([path[begin:][::-1] for path in paths.values()])
    names = {
        folder: "/".join(path[begin : len(path) - end]) or "/".join(path[-1:]) or "/"
        for folder, path in paths.items()
    }
    if len(set(names.values())) < len(names):  # a folder within another of the same name
        names = {folder: folder for folder in names}
    return {log: names[folder] for log, folder in folders.items()}


def _shared(paths: Sequence[Sequence[str]]) -> int:
    """Return the number of parts with which all paths begin."""
    return sum(1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*paths, strict=False)))
