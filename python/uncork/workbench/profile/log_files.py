"""Resolve log paths (files, globs and folders) and the time range."""

from __future__ import annotations

import glob
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from uncork.errors import UsageError
from uncork.profile.logs import LogFilter, LogRequest
from uncork.requests.profile_options import LogOptions

__all__ = ["could_be_log", "expand", "is_log", "log_filter", "log_request", "not_logs"]

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
    files: list[Path],
    prefix: str | None,
    period: tuple[str | None, str | None],
    jobs: int,
    names: tuple[str, str] = ("-b", "-e"),
) -> LogRequest:
    """Return the logs to read, and how; messages call the ends of the time range `names`.

    Raises:
        UsageError: if a time is not valid, or the end is not after the beginning.
    """
    begin, end = (_instant(text, option) for text, option in zip(period, names, strict=True))
    if begin is not None and end is not None and begin >= end:
        raise UsageError(f"the end ({period[1]}) is not after the beginning ({period[0]})")
    return LogRequest(tuple(files), prefix, begin, end, jobs)


def log_filter(options: LogOptions) -> LogFilter | None:
    """Return which entries count; None for all."""
    names = (options.database, options.user, options.application, options.host, options.time_of_day)
    return LogFilter(*(tuple(one or ()) for one in names)) if any(names) else None


def expand(files: list[Path]) -> list[Path]:
    """Expand folders to their logs by name, and globs that the shell left unexpanded to their matches.

    Raises:
        UsageError: if a folder has no logs, or no file matches a glob.
    """
    found: list[Path] = []
    for path in files:
        if path.is_dir():
            logs = sorted(one for one in path.iterdir() if is_log(one))
            if not logs:
                others = not_logs([path])
                names = ", ".join(one.name for one in others[:3]) + (" and more" if len(others) > 3 else "")
                raise UsageError(
                    f"{path}: the folder has no logs, only {names}; to read a file anyway, name it"
                    if others
                    else f"{path}: the folder is empty"
                )
            found += logs
        elif not path.exists() and glob.has_magic(str(path)):
            matched = sorted(Path(name) for name in glob.iglob(str(path), recursive=True))  # noqa: PTH207 -- absolute ones too
            if not matched:
                raise UsageError(f"{path}: no file matches")
            found += [one for one in matched if one.is_file()]
        else:
            found.append(path)
    return found


def not_logs(files: list[Path]) -> list[Path]:
    """Return the files in folders that `expand` leaves out because they cannot be logs; hidden ones not."""
    folders = [path for path in files if path.is_dir()]
    return [one for path in folders for one in sorted(path.iterdir()) if _is_shown(one) and not is_log(one)]


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
