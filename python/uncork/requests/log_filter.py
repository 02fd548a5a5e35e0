"""Read the filters of `uncork profile logs`: names of databases and clients, and times of day."""

from __future__ import annotations

import re
from typing import Any, Final

from uncork.errors import UsageError
from uncork.requests.option import Kind

__all__ = ["DAY_US", "name_pattern", "time_of_day"]

DAY_US: Final = 86_400_000_000
_RANGE: Final = re.compile(
    r"(?P<from>\d{1,2}:\d{2})\s*-\s*(?P<to>\d{1,2}:\d{2})\s*(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?"
)


def name_pattern() -> Kind:
    """Take a name, or a pattern with `*`; `!` before it excludes names."""

    def check(value: Any, option: str) -> str:
        if not isinstance(value, str) or not value.removeprefix("!"):
            raise UsageError(f'{option} "{value}": expecting a name, such as shop, shop_* or "!shop"')
        return value

    return Kind(check, check)


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
