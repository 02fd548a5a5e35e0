"""Resolve log paths (files, globs and folders) and the time range."""

from __future__ import annotations

import glob
import time
from datetime import UTC, datetime
from pathlib import Path

from uncork.errors import UsageError
from uncork.profile.logs import LogFilter, LogRequest
from uncork.requests.profile_options import LogOptions

__all__ = ["expand", "is_log", "log_filter", "log_request"]


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
    """Expand folders to their files by name, and globs that the shell left unexpanded to their matches."""
    found: list[Path] = []
    for path in files:
        if path.is_dir():
            inside = sorted(one for one in path.iterdir() if is_log(one))
            if not inside:
                raise UsageError(f"{path}: the folder is empty")
            found += inside
        elif not path.exists() and glob.has_magic(str(path)):
            matched = sorted(Path(name) for name in glob.iglob(str(path), recursive=True))  # noqa: PTH207 -- absolute ones too
            if not matched:
                raise UsageError(f"{path}: no file matches")
            found += [one for one in matched if one.is_file()]
        else:
            found.append(path)
    return found


def is_log(path: Path) -> bool:
    """Return whether a path in a folder is a log: a file that is not hidden."""
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
