"""Logs of PostgreSQL: files in, tables of what they tell out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from uncork import _native
from uncork.errors import UsageError
from uncork.profile.grammar import group

__all__ = ["LogReading", "LogRequest", "read_logs"]


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which logs to read.

    `paths` are in the order in which they were written; ``-`` is standard input. `prefix` is the server's
    log_line_prefix; without it, it is found out. `begin_us` and `end_us` bound the entries that count, in
    microseconds since 1970 in UTC; the end does not belong. `threads` is 0 for one a processor.
    """

    paths: tuple[Path, ...]
    prefix: str | None = None
    begin_us: int | None = None
    end_us: int | None = None
    threads: int = 0


@dataclass(frozen=True, slots=True)
class LogReading:
    """What logs tell: `facts` counts and names what was read, `tables` are those of `uncork.model.tables`."""

    facts: Mapping[str, Any]
    tables: Mapping[str, pa.Table]


def read_logs(request: LogRequest, progress: Callable[[int, int], None] | None = None) -> LogReading:
    """Read logs. On Ctrl-C, what has been read until then is the answer, and ``facts["stopped"]`` is true.

    `progress` is called several times a second with bytes read (as they stand in the files) and entries.

    Raises:
        SetupError: if one of the files cannot be opened; then none is read.
        UsageError: if the prefix is none that a server takes.
    """
    asked = {
        "paths": [str(path) for path in request.paths],
        "prefix": request.prefix,
        "threads": request.threads,
        "from_us": request.begin_us,
        "until_us": request.end_us,
    }
    try:
        profile = _native.read_logs(json.dumps(asked).encode(), progress)
    except ValueError as error:
        raise UsageError(f'log_line_prefix "{request.prefix}": {error}') from error
    grouping = group(profile.statements())
    profile.join(grouping.groups)
    tables = {name: pa.table(table) for name, table in profile.tables().items()}
    identities = pa.array(grouping.identities, pa.string())
    tables["log_templates"] = tables["log_templates"].append_column("identity", identities)
    return LogReading(json.loads(profile.facts()), tables)
