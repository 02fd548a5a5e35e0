"""Follow logs: read them while they grow, and report regularly what they show so far."""

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

_PAUSE_S = 0.5
"""The pause when no file has grown. A line written before a pause counts as complete."""
_SHARE = 4
"""At most one part in this many of the time is spent on reporting."""


@dataclass(frozen=True, slots=True)
class ProgressSnapshot:
    """What followed logs show so far, and how far reading has come after `seconds`."""

    result: LogResult
    seconds: float
    bytes: int
    behind: bool


def follow_logs(
    request: LogRequest,
    *,
    find: Callable[[], Iterable[tuple[Path, str]]],
    every_s: float,
    end_s: float | None,
    show: Callable[[ProgressSnapshot], None],
) -> LogReading:
    """Read logs while they grow, until Ctrl-C or for `end_s` seconds.

    `find` returns the files that exist by now, each with its server. `show` is called every `every_s` seconds
    with the result so far, once there are entries; less often if computing the result is slow.

    Raises:
        StoreError: if events cannot be written.
        UsageError: if the log_line_prefix is not valid.
    """
    follower = LogFollower(request)
    begun = time.monotonic()
    due = begun + every_s
    try:
        while end_s is None or time.monotonic() < begun + end_s:
            for path, server in find():
                follower.add(path, server)
            behind = follower.poll()
            now = time.monotonic()
            read, entries = follower.progress()
            if now >= due and entries:
                show(
                    ProgressSnapshot(
                        _result(follower.reading(), read, now - begun), now - begun, read, behind
                    )
                )
                due = max(now + every_s, now + _SHARE * (time.monotonic() - now))
            if not behind:
                time.sleep(_PAUSE_S)
    except KeyboardInterrupt:
        pass
    reading: LogReading | None = None
    while reading is None:
        with suppress(KeyboardInterrupt), uninterrupted():  # it is ending already
            follower.poll()
            reading = follower.finish()
    return reading


def _result(reading: LogReading, read: int, seconds: float) -> LogResult:
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
