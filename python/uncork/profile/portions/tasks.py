"""Divide logs into tasks: a file, an object, or a range of a large plain file. Any process can do a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from uncork import _native
from uncork.errors import SetupError, UsageError
from uncork.model.records import Record
from uncork.profile.logs import LogRequest, core_request, log_name, object_reader
from uncork.profile.objects.address import LogObject

PART_BYTES: Final = 256 << 20
"""Size of the parts of a large plain file. Others are read as a whole."""


class LogTask(Record):
    """A part of logs to read: it can be read again, by any process, with the same result.

    `number` is its place in the order of the logs. `request` has one path. `version` is the object's etag, or
    size and time of change of the file. `span` is the range of bytes; None for all. `servers` are the names
    of all servers, in the order of their numbers.
    """

    number: int
    request: LogRequest
    servers: tuple[str, ...]
    version: str
    span: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """Return how messages name what is read."""
        name = log_name(self.request.paths[0])
        return name if self.span is None else f"{name} from byte {self.span[0]}"


def log_tasks(
    request: LogRequest, before: tuple[str, ...] = (), part_bytes: int = PART_BYTES
) -> tuple[LogTask, ...]:
    """Return the tasks of a request, in the order of the logs.

    `before` are the names of servers that have numbers already.

    Raises:
        SetupError: if a file cannot be read.
        UsageError: if a log can only be read once, such as standard input.
    """
    new = sorted(set(request.servers) - set(before)) if request.servers else [""]
    servers = (*before, *(name for name in new if name not in before))
    whole = replace(request, events=None, skipped=(), other_servers=(), outside=0, threads=1)
    return tuple(
        LogTask(number, log_request, servers, version, span)
        for number, (log_request, version, span) in enumerate(_parts(whole, part_bytes))
    )


def _parts(request: LogRequest, part_bytes: int) -> Iterator[tuple[LogRequest, str, tuple[int, int] | None]]:
    for place, path in enumerate(request.paths):
        one = replace(request, paths=(path,), servers=request.servers[place : place + 1])
        if isinstance(path, LogObject):
            yield one, path.etag or "", None
            continue
        if str(path) != "-" and not path.exists():
            raise SetupError(f"{path}: No such file or directory")
        if not path.is_file():
            raise UsageError(f"{path}: only files and objects can be shared out among processes")
        status = path.stat()
        version = f"{status.st_size} {status.st_mtime_ns}"
        # A time range skips parts of a file: then its core finds the part to read.
        ranged = request.begin_us is not None or request.end_us is not None
        try:
            points, prefix = ([], None) if ranged else _native.cut_log(str(path), one.prefix, part_bytes)
        except OSError as error:
            raise SetupError(f"{path}: {error}") from error
        if not points:
            yield one, version, None
            continue
        one = replace(one, prefix=prefix or one.prefix)
        for span in zip([0, *points], [*points, status.st_size], strict=True):
            yield one, version, span


def gather_task(task: LogTask) -> bytes:
    """Read the logs of a task; return what was gathered, for `uncork.profile.portions.joining`.

    Raises SetupError if the file cannot be opened.
    """
    options = core_request(task.request, all_servers=task.servers, span=task.span)
    objects = [path for path in task.request.paths if isinstance(path, LogObject)]
    if not objects:
        return _native.gather_logs(options)
    with object_reader(objects) as reader:
        return _native.gather_logs(options, reader)
