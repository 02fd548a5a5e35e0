"""Resolve logs (files, globs, folders and addresses of objects) and the time range."""

from __future__ import annotations

import glob
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.profile.logs import LogFilter, LogRequest, log_begins, log_name
from uncork.profile.objects.address import LogObject, parse_object_address
from uncork.profile.objects.layouts import can_be_within
from uncork.requests.profile_options import LogOptions
from uncork.workbench.profile.log_servers import LogServers

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

    Folders, globs and addresses are resolved, unless the logs are followed. `servers` says which server wrote
    each log; logs are ordered by server, and the files of one by the time of their first entries. `earlier`
    logs are compared with others.

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
            f"none of the {len(objects)} objects can hold entries of the time range, by their names and "
            "times; times are in UTC unless an offset follows"
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

    `wrote` has the server of each log by its name. The logs that the request lacks are outside its time
    range.
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
            f"none of the {len(outside)} objects of {', '.join(sorted(wanted))} can hold entries of the time "
            "range, by their names and times; times are in UTC unless an offset follows"
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

    Raises:
        UsageError: if one of them is an address, which `option` cannot read.
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

    Raises:
        UsageError: if a folder has no logs, or no file matches a glob.
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

    Streams, and logs whose first entries have no time, keep their places. Only the beginning of each log is
    read, and only if its server has several. Of objects whose names say when they begin, nothing is read.

    Raises:
        UsageError: if the prefix is not a valid log_line_prefix.
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
