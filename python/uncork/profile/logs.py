"""Logs of PostgreSQL: files in, tables of what they tell out."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from uncork import _native
from uncork.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from uncork.profile.grammar import Grouping

__all__ = ["LogFollower", "LogReading", "LogRequest", "read_logs"]


@dataclass(frozen=True, slots=True)
class LogRequest:
    """Which logs to read.

    `paths` are in the order in which they were written; ``-`` is standard input. `prefix` is the server's
    log_line_prefix; without it, it is found out. `begin_us` and `end_us` bound the entries that count, in
    microseconds since 1970 in UTC; the end does not belong. `threads` is 0 for one a processor. `events` is
    an empty folder for all entries as Parquet files. `anonymous` keeps data out: no literals, parameters and
    details, and pseudonyms for users and hosts.
    """

    paths: tuple[Path, ...]
    prefix: str | None = None
    begin_us: int | None = None
    end_us: int | None = None
    threads: int = 0
    events: Path | None = None
    anonymous: bool = False


@dataclass(frozen=True, slots=True)
class LogReading:
    """What logs tell: `facts` counts and names what was read, `tables` are those of `model.tables.log`.

    `statements` gives the template of each statement_id in events.
    """

    facts: Mapping[str, Any]
    tables: Mapping[str, pa.Table]
    statements: pa.Table


def read_logs(request: LogRequest, progress: Callable[[int, int], None] | None = None) -> LogReading:
    """Read logs. On Ctrl-C, what has been read until then is the answer, and ``facts["stopped"]`` is true.

    `progress` is called several times a second with bytes read (as they stand in the files) and entries.

    Raises:
        SetupError: if one of the files cannot be opened (then none is read), or events cannot be written.
        UsageError: if the prefix is none that a server takes.
    """
    with _prefix_refused(request):
        profile = _native.read_logs(_asked(request), progress)
    return _reading(profile, request)


class LogFollower:
    """Logs that are read while they grow and are rotated. Paths may come to life later.

    Raises:
        SetupError: if events cannot be written.
        UsageError: if the prefix is none that a server takes.
    """

    def __init__(self, request: LogRequest) -> None:
        self._request = request
        with _prefix_refused(request):
            self._follower = _native.LogFollower(_asked(request))

    def add(self, path: Path) -> None:
        """Follow another path too; one that is followed already makes no difference."""
        self._follower.add(str(path))

    def poll(self) -> bool:
        """Read what has been written since, up to some amount. Return whether there may be more."""
        return self._follower.poll()

    def progress(self) -> tuple[int, int]:
        """Return bytes read and entries gathered so far."""
        return self._follower.progress()

    def reading(self) -> LogReading:
        """Return what the logs have told so far."""
        return _reading(self._follower.profile(), self._request)

    def finish(self) -> LogReading:
        """End: return what the logs have told.

        Raises:
            SetupError: if events could not be written.
        """
        return _reading(self._follower.finish(), self._request)


def _asked(request: LogRequest) -> bytes:
    asked = {
        "paths": [str(path) for path in request.paths],
        "prefix": request.prefix,
        "threads": request.threads,
        "from_us": request.begin_us,
        "until_us": request.end_us,
        "events": None if request.events is None else str(request.events),
        "salt": secrets.randbits(63) if request.anonymous else None,
    }
    return json.dumps(asked).encode()


@contextmanager
def _prefix_refused(request: LogRequest) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UsageError(f'log_line_prefix "{request.prefix}": {error}') from error


def _reading(profile: _native.LogProfile, request: LogRequest) -> LogReading:
    """Let the grammar join templates, and return what they tell."""
    import pyarrow as pa  # noqa: PLC0415 -- is loaded while the core reads

    from uncork.profile.grammar import group  # noqa: PLC0415

    grouping = group(profile.statements())
    statements = _statements(profile.statement_ids(), grouping)
    profile.join(grouping.groups)
    tables = {name: pa.table(table) for name, table in profile.tables().items()}
    identities = pa.array(grouping.identities, pa.string())
    tables["log_templates"] = tables["log_templates"].append_column("identity", identities)
    facts = json.loads(profile.facts())
    facts["anonymous"] = request.anonymous
    facts["events"] = None if request.events is None else str(request.events.absolute())
    return LogReading(facts, tables, statements)


def _statements(ids: Sequence[int], grouping: Grouping) -> pa.Table:
    """Return each statement's template: templates are numbered in the order of their first statements."""
    import pyarrow as pa  # noqa: PLC0415

    numbers: dict[int, int] = {}
    templates = [numbers.setdefault(first, len(numbers)) for first in grouping.groups]
    return pa.table(
        {"statement_id": pa.array(ids, pa.uint64()), "template": pa.array(templates, pa.uint32())}
    )
