"""Resolve logs (files, globs, folders and addresses of objects) and the time range."""

from __future__ import annotations

import glob
import os
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.model.units import format_bytes, format_count
from uncork.profile.logs import LogFilter, LogRequest, log_begins, log_name
from uncork.profile.objects.address import LogObject, parse_object_address
from uncork.profile.objects.layouts import can_be_within, undated
from uncork.requests.profile_options import LogOptions

_HEAD: Final = 64 << 10
"""How many bytes of a file show whether it can be a log."""

_OTHERS: Final = frozenset(
    (".cfg", ".conf", ".htm", ".html", ".ini", ".md", ".py", ".rst", ".sh", ".sql", ".toml", ".yaml", ".yml")
)
"""Suffixes of texts that can quote a log but are none."""

_PACKED: Final = (
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"PK",
    b"7z",
    b"Rar!",
)
"""First bytes of compressed files and archives. The core unpacks them, or says what to do."""

_TAR: Final = (b"ustar", 257)
"""What a tar archive has at an offset."""

_SEVERITY: Final = re.compile(
    rb"\b(?:LOG|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG[1-5]?|DETAIL|HINT|STATEMENT)\b"
)
"""Every entry of PostgreSQL and PgBouncer has a severity, in every format."""


def log_request(
    files: Sequence[str],
    prefix: str | None,
    period: tuple[str | None, str | None],
    jobs: int,
    names: tuple[str, str] = ("-b", "-e"),
    *,
    follow: bool = False,
    servers: LogServers | None = None,
    earlier: bool = False,
) -> LogRequest:
    """Return the logs to read, and how; messages call the ends of the time range `names`.

    Folders, globs and addresses are resolved, unless the logs are followed. `servers` says which
    server wrote each log; logs are ordered by server, and the files of one by the time of their
    first entries. `earlier` logs are compared with others.

    Raises:
        UsageError: if a time or the prefix is not valid, the end is not after the beginning, or nothing is
            found; or if the server of a log is unknown.
        ConnectError: if a store of objects does not answer, or refuses.
    """
    begin, end = (_instant(text, option) for text, option in zip(period, names, strict=True))
    if begin is not None and end is not None and begin >= end:
        raise UsageError(f"the end ({period[1]}) is not after the beginning ({period[0]})")
    if follow:
        return LogRequest(tuple(local_paths(files, "--follow")), prefix, begin, end, jobs)
    found: list[Path | LogObject] = []
    skipped: list[str] = []
    for text in files:
        if "://" in text:
            from uncork.profile.objects.finding import find_objects  # noqa: PLC0415 -- few logs are objects

            listed = find_objects(text, could_be_log)
            found += listed.objects
            skipped += listed.skipped
        else:
            found += expand([Path(text)])
            skipped += map(str, _not_logs(Path(text)))
    objects = list({source.name: source for source in found if isinstance(source, LogObject)}.values())
    within = can_be_within(objects, begin, end)
    if objects and not within and len(objects) == len(found):
        raise UsageError(
            "no object can hold entries of the time range, by its name and time "
            f"({len(objects)} listed); times are in UTC unless an offset follows"
        )
    kept = {log_object.name for log_object in within}
    unique = {
        source.name if isinstance(source, LogObject) else number: source
        for number, source in enumerate(found)
    }
    read = [source for source in unique.values() if not isinstance(source, LogObject) or source.name in kept]
    request = LogRequest(
        tuple(read), prefix, begin, end, jobs, skipped=tuple(skipped), outside=len(objects) - len(within)
    )
    if servers is None:
        return in_order_of_time(request)
    logs = [log_name(source) for source in unique.values()]
    wrote = dict(zip(logs, servers.of(logs, lenient=earlier), strict=False))
    return in_order_of_time(_of_servers(request, wrote, servers))


def _of_servers(request: LogRequest, wrote: Mapping[str, str], servers: LogServers) -> LogRequest:
    """Return a request with the server of each log, without the servers that are not selected.

    `wrote` has the server of each log by its name. The logs that the request lacks are outside its
    time range.
    """
    if not wrote:
        return request
    wanted = servers.selected(list(wrote.values()))
    read = sorted(
        (path for path in request.paths if wrote[log_name(path)] in wanted),
        key=lambda path: wrote[log_name(path)],
    )
    outside = [name for name in wrote if wrote[name] in wanted and name not in request.names]
    if not read:
        raise UsageError(
            f"no object of {', '.join(sorted(wanted))} can hold entries of the time range, by its name and "
            f"time ({len(outside)} listed); times are in UTC unless an offset follows"
        )
    return replace(
        request,
        paths=tuple(read),
        servers=tuple(wrote[log_name(source)] for source in read),
        other_servers=tuple(sorted(set(wrote.values()) - wanted)),
        outside=len(outside),
    )


def local_paths(files: Sequence[str], option: str) -> list[Path]:
    """Return files as paths.

    Raises UsageError if one of them is an address, which `option` cannot read.
    """
    for text in files:
        if "://" in text:
            raise UsageError(f"{option} reads files and folders, not objects such as {_shown(text)}")
    return [Path(text) for text in files]


def bytes_of(request: LogRequest) -> int | None:
    """Return how many bytes the files and objects have; None if standard input is among them."""
    if "-" in request.names:
        return None
    return sum(
        path.size if isinstance(path, LogObject) else path.stat().st_size if path.is_file() else 0
        for path in request.paths
    )


def log_servers(
    options: LogOptions, names: tuple[str, str, str] = ("--server", "--servers by-folder", "--only-server")
) -> LogServers:
    """Return how logs are assigned to servers; messages call the options `names`."""
    return LogServers(
        patterns=tuple(options.server or ()),
        by_folder=options.servers == "by-folder",
        only=tuple(options.only_server or ()),
        names=names,
    )


def log_filter(options: LogOptions) -> LogFilter | None:
    """Return which entries count; None for all."""
    names = (options.database, options.user, options.application, options.host, options.time_of_day)
    return LogFilter(*(tuple(name or ()) for name in names)) if any(names) else None


def _instead_of_logs(folder: Path) -> str:
    """Return what a folder without logs has, and what to do."""
    others = _not_logs(folder)
    if others:
        names = ", ".join(path.name for path in others[:3]) + (" and more" if len(others) > 3 else "")
        return f"the folder has no logs, only {names}; to read a file anyway, name it"
    if any(path.is_dir() for path in folder.iterdir()):
        return f"the folder has no logs, only folders; name them: {folder / '*'}/"
    return "the folder is empty"


def expand(files: list[Path]) -> list[Path]:
    """Expand folders to their logs by name, and globs that the shell left unexpanded to their matches.

    Raises UsageError if a folder has no logs, or no file matches a glob.
    """
    found: list[Path] = []
    for path in files:
        if path.is_dir():
            logs = sorted(entry for entry in path.iterdir() if is_log(entry))
            if not logs:
                raise UsageError(f"{path}: {_instead_of_logs(path)}")
            found += logs
        elif not path.exists() and glob.has_magic(str(path)):
            matched = sorted(Path(name) for name in glob.iglob(str(path), recursive=True))  # noqa: PTH207 -- absolute ones too
            if not matched:
                raise UsageError(f"{path}: no file matches")
            found += [path for path in matched if path.is_file()]
        else:
            found.append(path)
    return found


def _not_logs(path: Path) -> list[Path]:
    """Return the files in a folder that `expand` leaves out because they cannot be logs; hidden ones not."""
    if not path.is_dir():
        return []
    return [entry for entry in sorted(path.iterdir()) if _is_shown(entry) and not is_log(entry)]


def _shown(text: str) -> str:
    return parse_object_address(text).shown


def is_log(path: Path) -> bool:
    """Return whether a path in a folder can be a log, from its name and beginning; a hidden file cannot."""
    if not _is_shown(path):
        return False
    try:
        with path.open("rb") as file:
            return could_be_log(path.name, file.read(_HEAD))
    except OSError:
        # The core reports why it cannot be opened.
        return True


def could_be_log(name: str, head: bytes) -> bool:
    """Return whether a file can be a log, from its name and first bytes; an empty file can. Pure."""
    suffixes = Path(name.lower()).suffixes
    if _OTHERS.intersection(suffixes[-2:]):
        return False
    mark, offset = _TAR
    if not head or head.startswith(_PACKED) or head[offset : offset + len(mark)] == mark:
        return True
    return b"\0" not in head and _SEVERITY.search(head) is not None


def _is_shown(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".")


def _instant(text: str | None, option: str) -> int | None:
    """Parse a time, in UTC unless it has an offset; return microseconds since 1970."""
    if text is None:
        return None
    if text == "now":
        return time.time_ns() // 1000
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f'{option} "{text}" is not a time; write it as 2026-05-31, 2026-05-31T08:30 or '
            '"2026-05-31 08:30:15+02:00"'
        ) from error
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return round(found.timestamp() * 1_000_000)


# ---- put the logs of each server in the order of time, in which a log must be read ----


def in_order_of_time(request: LogRequest) -> LogRequest:
    """Return the request with the logs of each server in the order of their first entries.

    Streams, and logs whose first entries have no time, keep their places. Only the beginning of
    each log is read, and only if its server has several. Of objects whose names say when they
    begin, nothing is read. Raises UsageError if the prefix is not a valid log_line_prefix.
    """
    servers = request.servers or [""] * len(request.paths)
    logs = defaultdict(list)
    for place, (path, server) in enumerate(zip(request.paths, servers, strict=True)):
        if isinstance(path, LogObject) or path.is_file():
            logs[server].append(place)
    several = [place for places in logs.values() if len(places) > 1 for place in places]
    begins = dict(zip(several, log_begins(request, several), strict=True))
    known = [begins.get(place) for place in range(len(request.paths))]
    return replace(request, paths=tuple(request.paths[place] for place in in_order(servers, known)))


def in_order(servers: Sequence[str], begins: Sequence[int | None]) -> tuple[int, ...]:
    """Return the order in which to read logs of servers that begin at these times. Pure.

    The logs of a server take each other's places; logs without a time keep their own.
    """
    order = list(range(len(servers)))
    for server in set(servers):
        places = [at for at, of in enumerate(servers) if of == server and begins[at] is not None]
        for place, log in zip(places, sorted(places, key=lambda at: begins[at] or 0), strict=True):
            order[place] = log
    return tuple(order)


# ---- which server wrote each log ----


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

        Each pattern must match a log, unless `lenient`. Raises UsageError if a pattern matches no
        log, or a log matches the patterns of several servers or of none.
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

        Raises UsageError if none is.
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


def reading_line(done: int, entries: int, size: int | None, seconds: float) -> str:
    """Return the progress of reading logs: `done` of `size` bytes (None if unknown) in `seconds`."""
    rate = done / seconds
    left = f", {max(0.0, (size - done) / rate):.0f} s left" if size else ""
    share = f"{100 * min(1.0, done / size):.0f} %, " if size else ""
    return f"{share}{format_count(entries)} entries, {format_bytes(rate)}/s{left}"
