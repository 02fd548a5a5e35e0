"""Which objects can hold entries of a time range, from their names and times. Pure.

The name of an object says when its entries were written, if one of these services wrote it:

- Amazon RDS and Aurora: ``error/postgresql.log.2026-11-27-04``, also with minutes; from that time on, in UTC;
- Cloud SQL's exports: ``postgres.log/2026/11/27/04:00:00_04:59:59_S0.json``, in UTC;
- Azure's diagnostic settings: ``y=2026/m=11/d=27/h=04/m=00/PT1H.json``, one hour in UTC;
- PostgreSQL's own log_filename: ``postgresql-2026-11-27_040000.log``, from that time on, in the server's time
  zone, which the name does not give.

A date without a time is not used: log rotation also names files by the day on which it ends them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from uncork.model.records import Record
from uncork.profile.objects.address import LogObject

_PACKED: Final = r"(?:\.(?:gz|zst|bz2|xz|lz4))?$"
_RDS: Final = re.compile(r"postgresql\.log\.(\d{4})-(\d\d)-(\d\d)-(\d\d)(\d\d)?(?:\.(?:csv|json))?" + _PACKED)
_CLOUD_SQL: Final = re.compile(
    r"(\d{4})/(\d\d)/(\d\d)/(\d\d):(\d\d):(\d\d)_(\d\d):(\d\d):(\d\d)_[A-Z]\d+\.json" + _PACKED
)
_AZURE: Final = re.compile(r"y=(\d{4})/m=(\d\d)/d=(\d\d)/h=(\d\d)/m=(\d\d)/PT1H\.json" + _PACKED)
_SERVER: Final = re.compile(
    r"postgresql[-_](\d{4})[-_](\d\d)[-_](\d\d)[_T-](\d\d)[-_:]?(\d\d)[-_:]?(\d\d)(?:\.(?:log|csv|json))+"
    + _PACKED
)
_DATED: Final = re.compile(
    r"(?:/(?:[a-z]+=)?\d{4}-\d\d(?:-\d\d)?(?:/(?:[a-z]+=)?\d\d)?"
    r"|/(?:[a-z]+=)?\d{4}(?:/(?:[a-z]+=)?\d\d){1,4})$"
)
"""Folders of a date at the end of a path: ``2026-05-31``, ``dt=2026-05-31/08`` or ``2026/05``."""
CLOSE: Final = timedelta(minutes=5)
"""How much an entry's time may differ from the name or from the time at which the object was written."""
_ZONES: Final = timedelta(hours=14)
"""The largest offset of a time zone from UTC."""
FIRST: Final = datetime(1970, 1, 1, tzinfo=UTC)


class NamedTimes(Record):
    """When the entries of an object were written, from its name, in UTC.

    `end` is None if the name does not give it. Then the entries end where the next object of the same
    `series` begins. Both times are right up to `slack`.
    """

    begin: datetime
    end: datetime | None
    slack: timedelta
    series: str


def named_times(key: str) -> NamedTimes | None:
    """Return when the entries of an object were written, from its name; None if the name does not say it."""
    for pattern, slack in ((_RDS, CLOSE), (_CLOUD_SQL, CLOSE), (_AZURE, CLOSE), (_SERVER, _ZONES)):
        match = pattern.search(key)
        if match is None:
            continue
        numbers = [int(text) for text in match.groups() if text is not None]
        try:
            begin = _time(numbers[:3], numbers[3:6])
            end = None
            if pattern is _CLOUD_SQL:
                end = _time(numbers[:3], numbers[6:9]) + timedelta(seconds=1)
        except ValueError:
            return None
        if pattern is _AZURE:
            end = begin + timedelta(hours=1)
        series = key[: match.start()] + re.sub(r"\d", "0", match[0])
        return NamedTimes(begin, end, slack, series)
    return None


def _time(date: Sequence[int], time: Sequence[int]) -> datetime:
    year, month, day = date
    hour, minute, second = (*time, 0, 0)[:3]
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


def undated(name: str) -> str:
    """Return a log's path or key up to the folders and the name that say when its entries were written."""
    matches = (pattern.search(name) for pattern in (_RDS, _CLOUD_SQL, _AZURE, _SERVER))
    match = next(filter(None, matches), None)
    name = name if match is None else name[: match.start()]
    folder, slash, file = name.rpartition("/")
    return _DATED.sub("", folder) + slash + file


def is_named_as_log(key: str) -> bool:
    """Return whether the name says that an object holds a log, so that its content need not be looked at."""
    return named_times(key) is not None or "log" in key.rpartition("/")[2].lower()


def can_be_within(
    objects: Sequence[LogObject], begin_us: int | None, end_us: int | None
) -> tuple[LogObject, ...]:
    """Return the objects that can hold entries of a time range, in microseconds since 1970; None is open.

    An object that was last written before the range cannot; neither can one whose name excludes it.
    """
    begin, end = (None if us is None else FIRST + timedelta(microseconds=us) for us in (begin_us, end_us))
    named = {log_object.name: named_times(log_object.key) for log_object in objects}
    ends = _ends([times for times in named.values() if times is not None])
    kept = []
    for log_object in objects:
        times = named[log_object.name]
        written = FIRST + timedelta(seconds=log_object.modified_s)
        if begin is not None and written + CLOSE < begin:
            continue
        if times is not None:
            last = times.end or ends.get((times.series, times.begin))
            if end is not None and times.begin - times.slack >= end:
                continue
            if begin is not None and last is not None and last + times.slack <= begin:
                continue
        kept.append(log_object)
    return tuple(kept)


def _ends(named: Sequence[NamedTimes]) -> dict[tuple[str, datetime], datetime]:
    """Return when the next object of the same series begins, by series and beginning."""
    begins: dict[str, set[datetime]] = {}
    for times in named:
        begins.setdefault(times.series, set()).add(times.begin)
    pairs = ((series, pair) for series, some in begins.items() for pair in pairwise(sorted(some)))
    return {(series, earlier): later for series, (earlier, later) in pairs}
