"""Join what tasks gathered, in the order of the logs, each exactly once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Protocol

from uncork import _native
from uncork.errors import SetupError, UsageError
from uncork.profile.logs import LogReading, LogRequest, core_request, log_reading
from uncork.profile.portions.tasks import PART_BYTES, LogTask, log_tasks

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
