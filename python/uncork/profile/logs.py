"""Read PostgreSQL's logs into tables, at once or while the logs grow."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from uncork import _native
from uncork.errors import UsageError
from uncork.model.records import Record
from uncork.profile.objects.address import LogObject

if TYPE_CHECKING:
    import pyarrow as pa

    from uncork.profile.objects.reading import ObjectReader


class EventFile(Protocol):
    """Where the entries of one part go."""

    def write(self, table: object, /) -> None:
        """Write a table: any object with `__arrow_c_stream__`."""

    def close(self) -> None:
        """Complete the file."""


class EventFiles(Protocol):
    """Where all entries of logs go: see `store.event_files`. The core's threads call it."""

    @property
    def folder(self) -> Path:
        """Return the folder of the files."""

    def create(self, part: int, empty: object, /) -> EventFile:
        """Begin the file of one part. `empty` is a table with the columns of its tables."""

    def write_names(self, statements: pa.Table, files: Sequence[str], /) -> None:
        """Write the names of the numbers in the tables: statement templates and files."""


class LogFilter(Record):
    """The entries to count. Empty tuples test nothing.

    Names are patterns: `*` stands for any text, and `!` before a pattern excludes names. `time_of_day` are
    ranges in UTC such as 08:00-17:00; a range may span midnight.
    """

    database: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    application: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    time_of_day: tuple[str, ...] = ()


class LogRequest(Record):
    """The logs to read, and how.

    `paths` are in the order in which they were written: files, objects, or ``-`` for standard input. `prefix`
    is the server's log_line_prefix; if None, it is detected. Only entries from `begin_us` until before
    `end_us` count, in microseconds since 1970 in UTC. `threads` 0 means one per processor. `events` receives
    all entries, as tables. `anonymous` drops literals, parameters and details, and replaces
    users and hosts by pseudonyms. `filter` says which entries count. `skipped` names files that are not read
    because they cannot be logs. `outside` is the number of objects that are not read because they cannot hold
    entries of the time range. `servers` has the server that wrote each path; it is empty if servers are not
    named. `other_servers` are those whose logs are not read.
    """

    paths: tuple[Path | LogObject, ...]
    prefix: str | None = None
    begin_us: int | None = None
    end_us: int | None = None
    threads: int = 0
    events: EventFiles | None = None
    anonymous: bool = False
    filter: LogFilter | None = None
    skipped: tuple[str, ...] = ()
    outside: int = 0
    servers: tuple[str, ...] = ()
    other_servers: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the files and objects."""
        return tuple(map(log_name, self.paths))


def log_name(log: Path | LogObject) -> str:
    """Return the name of a file or an object."""
    return log.name if isinstance(log, LogObject) else str(log)


class LogReading(Record):
    """The contents of logs: `facts` describe what was read; `tables` are the tables of `model.tables.log`.

    `statements` has the template of each statement_id in events. `beginnings` has the first bytes of objects,
    in pieces: some 32 MB in all. `stored` is what a later reading can follow, if that was asked for.
    `forget` deletes what was kept in case reading is interrupted: call it once the reading is stored.
    """

    facts: Mapping[str, Any]
    tables: Mapping[str, pa.Table]
    statements: pa.Table
    beginnings: Mapping[str, Sequence[memoryview]] = field(default_factory=dict, repr=False)
    stored: bytes | None = field(default=None, repr=False)
    forget: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)


def read_logs(request: LogRequest, progress: Callable[[int, int], None] | None = None) -> LogReading:
    """Read logs. Ctrl-C ends it early: the result covers what was read, and ``facts["stopped"]`` is true.

    `progress` is called several times a second with the bytes read so far (before decompression) and the
    number of entries.

    Raises:
        SetupError: if a file cannot be opened (then none is read).
        StoreError: if events cannot be written.
        UsageError: if the prefix is not a valid log_line_prefix.
    """
    objects = [path for path in request.paths if isinstance(path, LogObject)]
    with _prefix_errors(request), ExitStack() as stack:
        reader = stack.enter_context(object_reader(objects)) if objects else None
        profile = _native.read_logs(core_request(request), progress, request.events, reader)
    reading = log_reading(profile, request)
    return reading if reader is None else replace(reading, beginnings=reader.beginnings())


def object_reader(objects: Sequence[LogObject]) -> ObjectReader:
    """Return what fetches objects for the core."""
    from uncork.profile.objects.reading import ObjectReader  # noqa: PLC0415 -- few logs are objects

    return ObjectReader(objects)


def log_begins(request: LogRequest, places: Sequence[int]) -> tuple[int | None, ...]:
    """Return when the first entries of files and objects of a request were logged, in microseconds.

    None where it is unknown. Raises UsageError if the prefix is not a valid log_line_prefix.
    """
    logs = {place: request.paths[place] for place in places}
    objects = {place: log for place, log in logs.items() if isinstance(log, LogObject)}
    with _prefix_errors(request):
        begins: dict[int, int | None] = {}
        for place in logs.keys() - objects.keys():
            with suppress(OSError):  # reading it reports why
                begins[place] = _native.begin_of_log(str(logs[place]), request.prefix)
        if objects:
            from uncork.profile.objects.finding import object_begins  # noqa: PLC0415 -- few logs are objects

            begins |= zip(objects, object_begins(tuple(objects.values()), request.prefix), strict=True)
    return tuple(map(begins.get, places))


class LogFollower:
    """Read logs while they grow and are rotated. Files need not exist yet.

    Raises:
        StoreError: if events cannot be written.
        UsageError: if the prefix is not a valid log_line_prefix.
    """

    def __init__(self, request: LogRequest) -> None:
        self._request = request
        with _prefix_errors(request):
            self._follower = _native.LogFollower(core_request(request), request.events)

    def add(self, path: Path, server: str = "") -> None:
        """Follow another path, which `server` writes. Does nothing if it is already followed."""
        self._follower.add(str(path), server)

    def poll(self) -> bool:
        """Read a limited amount of new entries. Return whether there may be more."""
        return self._follower.poll()

    def progress(self) -> tuple[int, int]:
        """Return the bytes and the entries read so far."""
        return self._follower.progress()

    def reading(self) -> LogReading:
        """Return the contents of the logs so far."""
        return log_reading(self._follower.profile(), self._request)

    def finish(self) -> LogReading:
        """Stop following, and return the contents of the logs.

        Raises StoreError if events could not be written.
        """
        return log_reading(self._follower.finish(), self._request)


def core_request(
    request: LogRequest, *, all_servers: Sequence[str] = (), span: tuple[int, int] | None = None
) -> bytes:
    """Return a request as the core reads it.

    `all_servers` are the names of all servers by number, if there are more than those of the request. `span`
    is the part of the only file to read.
    """
    accepted = None if request.filter is None else asdict(request.filter)
    if accepted is not None:
        accepted["time_of_day"] = [_range_us(text) for text in accepted["time_of_day"]]
    options = {
        "paths": request.names,
        "servers": request.servers or [""] * (len(request.paths) if all_servers else 0),
        "all_servers": all_servers,
        "range": span,
        "prefix": request.prefix,
        "threads": request.threads,
        "from_us": request.begin_us,
        "until_us": request.end_us,
        "filter": accepted,
        "salt": secrets.randbits(63) if request.anonymous else None,
    }
    return json.dumps(options).encode()


def _range_us(text: str) -> list[int]:
    """Return the beginning and the end of a range such as 08:00-17:00, in microseconds since midnight."""
    hours = (time.split(":") for time in text.split("-"))
    return [(int(hour) * 60 + int(minute)) * 60_000_000 for hour, minute in hours]


@contextmanager
def _prefix_errors(request: LogRequest) -> Iterator[None]:
    try:
        yield
    except ValueError as error:
        raise UsageError(f'log_line_prefix "{request.prefix}": {error}') from error


def log_reading(profile: _native.LogProfile, request: LogRequest) -> LogReading:
    """Group the templates of what the core has read by the grammar, and return the tables."""
    import pyarrow as pa  # noqa: PLC0415 -- loaded while the core reads

    from uncork.profile.grammar import group  # noqa: PLC0415

    grouping = group(profile.statements())
    # Templates are numbered in the order of their first statements.
    numbers: dict[int, int] = {}
    templates = [numbers.setdefault(first, len(numbers)) for first in grouping.groups]
    ids = pa.array(profile.statement_ids(), pa.uint64())
    statements = pa.table({"statement_id": ids, "template": pa.array(templates, pa.uint32())})
    profile.join(grouping.groups)
    tables = {name: pa.table(table) for name, table in profile.tables().items()}
    identities = pa.array(grouping.identities, pa.string())
    tables["log_templates"] = tables["log_templates"].append_column("identity", identities)
    facts = {
        **json.loads(profile.facts()),
        "anonymous": request.anonymous,
        "skipped": list(request.skipped),
        "other_servers": list(request.other_servers),
        "filter": None if request.filter is None else asdict(request.filter),
        "events": None if request.events is None else str(request.events.folder.absolute()),
    }
    return LogReading(facts, tables, statements)
