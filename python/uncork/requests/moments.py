"""Read points in time and ages, as options take them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from uncork.errors import UsageError

__all__ = ["age_of", "moment_of", "since_of"]

_HOURS: Final = {"h": 1, "d": 24, "w": 7 * 24}
_AGE: Final = re.compile(r"(\d{1,6})\s*([hdw])")


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

    Raises:
        UsageError: if the text is neither, or lies before the year 1.
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
