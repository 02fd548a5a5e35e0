"""Read points in time, ages and times of day, as options take them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from uncork.errors import UsageError
from uncork.requests.option import Kind

_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24}
_AGE: Final = re.compile(r"(\d{1,6})\s*([hdw])")
_RANGE: Final = re.compile(
    r"(?P<from>\d{1,2}:\d{2})\s*-\s*(?P<to>\d{1,2}:\d{2})\s*(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?"
)


def age_of(text: str) -> timedelta | None:
    """Return an age such as ``12h``, ``30d`` or ``8w``; None if the text is none."""
    found = _AGE.fullmatch(text.strip())
    return None if found is None else timedelta(hours=int(found[1]) * _HOURS[found[2]])


def moment_of(text: str) -> datetime | None:
    """Return a point in time in ISO form, in UTC unless it has an offset; None if the text is none."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def since_of(text: str | None, option: str, now: datetime) -> datetime | None:
    """Return the beginning of a period that ends now: a date, a time, or an age before `now`.

    Raises UsageError if the text is neither, or lies before the year 1.
    """
    if text is None:
        return None
    try:
        age = age_of(text)
        found = moment_of(text) if age is None else now - age
    except OverflowError:
        found = None
    if found is None:
        raise UsageError(
            f'{option} "{text}" is neither a date nor an age; write it as 2026-05-31, 2026-05-31T08:30, 12h, '
            "30d or 8w"
        )
    return found


def time_of_day() -> Kind:
    """Take a range such as 08:00-17:00, in UTC unless an offset follows; return its text.

    The text that is returned is in UTC. A range may span midnight.
    """

    def check(value: Any, option: str) -> str:
        found = _RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
        minutes = None if found is None else (_minutes(found["from"]), _minutes(found["to"]))
        if found is None or minutes is None or None in minutes:
            raise UsageError(
                f'{option} "{value}": expecting a range of hours and minutes, such as 08:00-17:00 or '
                "22:00-06:00+02:00"
            )
        begin, end = (((minute or 0) - _offset(found["zone"])) % 1440 for minute in minutes)
        if begin == end and minutes[0] == minutes[1]:
            raise UsageError(f'{option} "{value}": the range is empty; write 00:00-24:00 for the whole day')
        return f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"

    return Kind(check, check)


def _minutes(text: str) -> int | None:
    """Return the minutes since midnight; None if there is no such time. 24:00 is the end of the day."""
    hours, minutes = map(int, text.split(":"))
    total = hours * 60 + minutes
    return total if minutes < 60 and total <= 1440 else None


def _offset(zone: str | None) -> int:
    """Return the minutes that a zone is ahead of UTC."""
    if zone in (None, "Z"):
        return 0
    digits = str(zone)[1:].replace(":", "").ljust(4, "0")
    total = int(digits[:2]) * 60 + int(digits[2:])
    return -total if str(zone).startswith("-") else total
