"""Divide logs into tasks that any process can do, and join their results.

A task is a file, an object, or a range of a large plain file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final, Protocol

from uncork import _native
from uncork.errors import SetupError, UsageError
from uncork.model.records import Record
from uncork.profile.logs import LogReading, LogRequest, core_request, log_name, log_reading, object_reader
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
    """Read the logs of a task; return what was gathered, for `uncork.profile.portions.tasks`.

    Raises SetupError if the file cannot be opened.
    """
    options = core_request(task.request, all_servers=task.servers, span=task.span)
    objects = [path for path in task.request.paths if isinstance(path, LogObject)]
    if not objects:
        return _native.gather_logs(options)
    with object_reader(objects) as reader:
        return _native.gather_logs(options, reader)


# ---- join what tasks gathered, in the order of the logs, each exactly once ----


Done = Callable[[LogTask, bytes], None]
"""Takes what a task has gathered as soon as it has, in any order and from any thread."""


class CarryOut(Protocol):
    """Carries out tasks, and yields what each has gathered, in their order.

    It may do a task again whose process ended; it yields each once. `done` takes each result earlier: results
    may wait for the one of an earlier task.
    """

    def __call__(self, tasks: Sequence[LogTask], *, done: Done = ...) -> Iterator[bytes]:
        """Carry out tasks."""


def is_complete(portion: bytes) -> bool:
    """Return whether the logs of a task were read to their ends: otherwise it may succeed later."""
    return _native.is_complete_portion(portion)


def ignore(_task: LogTask, _portion: bytes) -> None:
    """Do nothing with a result that will be yielded anyway."""


def read_in_tasks(
    request: LogRequest,
    carry_out: CarryOut,
    *,
    before: bytes | None = None,
    keep: bool = False,
    part_bytes: int = PART_BYTES,
) -> LogReading:
    """Read logs in tasks; the result is that of reading them in one process.

    Ctrl-C ends it early: the result covers the first tasks, and ``facts["stopped"]`` is true. `before` is
    what an earlier reading stored: the logs follow those. With `keep`, the result has what a later reading
    can follow.

    Raises:
        SetupError: if a log cannot be read, or a process ends again and again.
        UsageError: if `before` cannot be read, or a log can only be read once.
    """
    joined = _native.LogPortions(core_request(request))
    if before is not None:
        try:
            joined.add(before)
        except ValueError as error:
            raise UsageError(f"what was stored of the earlier logs cannot be used: {error}") from error
    tasks = log_tasks(request, tuple(joined.servers()), part_bytes)
    stopped = False
    try:
        with closing(carry_out(tasks)) as portions:  # type: ignore[type-var]
            for task, portion in zip(tasks, portions, strict=True):
                try:
                    joined.add(portion)
                except ValueError as error:
                    raise SetupError(f"what was gathered from {task.name} cannot be used: {error}") from error
    except KeyboardInterrupt:
        stopped = True
    stored = joined.store() if keep and not stopped else None
    reading = log_reading(joined.profile(), request)
    facts = {**reading.facts, "stopped": True} if stopped else reading.facts
    return replace(reading, facts=facts, stored=stored)
