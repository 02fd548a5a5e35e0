"""Follow logs: read them while they grow, and say now and then what they tell so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from uncork import __version__
from uncork.analysis.log.result import log_result
from uncork.model.results.log import LogResult, LogRunFacts
from uncork.profile.logs import LogFollower, LogReading, LogRequest
from uncork.report.log.answer import answer_log
from uncork.workbench.signals import uninterrupted

__all__ = ["Glance", "follow_logs"]

_PAUSE_S = 0.5
"""How long nothing is done when nobody has written. What was written before a pause counts as whole."""
_SHARE = 4
"""Telling may take one part in so many of the time."""


@dataclass(frozen=True, slots=True)
class Glance:
    """What followed logs have told so far, and how far reading has come in how many seconds."""

    result: LogResult
    seconds: float
    bytes: int
    behind: bool


def follow_logs(
    request: LogRequest,
    *,
    find: Callable[[], Iterable[Path]],
    every_s: float,
    end_s: float | None,
    show: Callable[[Glance], None],
) -> LogReading:
    """Read logs while they grow, until Ctrl-C or for `end_s` seconds.

    `find` says which files there are by now. `show` is told every `every_s` seconds what they have told so
    far, once there is anything; less often where that takes long.

    Raises:
        SetupError: if events cannot be written.
        UsageError: if the prefix is none that a server takes.
    """
    follower = LogFollower(request)
    begun = time.monotonic()
    due = begun + every_s
    try:
        while end_s is None or time.monotonic() < begun + end_s:
            for path in find():
                follower.add(path)
            behind = follower.poll()
            now = time.monotonic()
            read, entries = follower.progress()
            if now >= due and entries:
                show(Glance(_told(follower.reading(), read, now - begun), now - begun, read, behind))
                due = max(now + every_s, now + _SHARE * (time.monotonic() - now))
            if not behind:
                time.sleep(_PAUSE_S)
    except KeyboardInterrupt:
        pass
    reading: LogReading | None = None
    while reading is None:
        with suppress(KeyboardInterrupt), uninterrupted():  # it ends already
            follower.poll()
            reading = follower.finish()
    return reading


def _told(reading: LogReading, read: int, seconds: float) -> LogResult:
    run = LogRunFacts(
        id="",
        status="running",
        started_at="",
        elapsed_ns=round(seconds * 1e9),
        bytes=read,
        reproduce="",
        uncork_version=__version__,
    )
    return answer_log(log_result(run, reading.facts, reading.tables))
