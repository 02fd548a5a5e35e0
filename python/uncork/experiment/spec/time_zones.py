"""Offsets of time zones as rows for set-up SQL: each zone's offset from UTC, with start and end.

From these ranges SQL can build any table of conversions (one row per day or hour). The zones' rules are
passed as arguments, so this module does not read the IANA database.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from uncork.experiment.spec.fields import Section

_STEP = datetime.timedelta(hours=6)
"""Changes of offset that are undone sooner are missed; the IANA database has had none since 1970."""
_SECOND = datetime.timedelta(seconds=1)


class TimeZones(Section):
    """Rows of the IANA time-zone database for set-up SQL: `VALUES :NAME` gives (zone, start, end, offset).

    Start and end are times in UTC. The offset, in seconds east of UTC, applies from start until before end.
    """

    zones: Annotated[tuple[str, ...], Field(strict=False, min_length=1)] = Field(
        description="Names of zones, such as Asia/Kolkata."
    )
    first_year: int = Field(ge=1970, le=2100, description="First year, in UTC.")
    last_year: int = Field(ge=1970, le=2100, description="Last year, inclusive.")

    @model_validator(mode="after")
    def _order(self) -> Self:
        if self.last_year < self.first_year:
            raise ValueError(f"last_year ({self.last_year}) is before first_year ({self.first_year})")
        return self


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """A zone is `offset_s` seconds east of UTC from `start` until before `end`, both in UTC."""

    start: datetime.datetime
    end: datetime.datetime
    offset_s: int


def offset_ranges(zone: datetime.tzinfo, first_year: int, last_year: int) -> Iterator[OffsetRange]:
    """Yield the ranges of a zone without gaps, from the first to the last of these years, in UTC."""
    start = datetime.datetime(first_year, 1, 1, tzinfo=datetime.UTC)
    end = datetime.datetime(last_year + 1, 1, 1, tzinfo=datetime.UTC)
    begun, moment = start, start
    while moment < end:
        later = min(moment + _STEP, end)
        if _offset_s(zone, later) != _offset_s(zone, moment) and later < end:
            change = _change(zone, moment, later)
            yield OffsetRange(begun, change, _offset_s(zone, moment))
            begun = change
        moment = later
    yield OffsetRange(begun, end, _offset_s(zone, begun))


def offset_values(zones: Mapping[str, datetime.tzinfo], first_year: int, last_year: int) -> str:
    """Return ranges as rows of VALUES: zone, start and end in UTC, offset in seconds; by zone and start."""
    rows = (
        f"('{name}', '{_text(offset_range.start)}', '{_text(offset_range.end)}', {offset_range.offset_s})"
        for name, zone in sorted(zones.items())
        for offset_range in offset_ranges(zone, first_year, last_year)
    )
    return ",\n".join(_checked(rows))


def _checked(rows: Iterable[str]) -> Iterator[str]:
    """Raise ValueError if a zone's name contains a quote; the IANA database has none."""
    for row in rows:
        if row.count("'") != 6:
            raise ValueError(f"a time zone's name must not contain quotes: {row}")
        yield row


def _change(zone: datetime.tzinfo, before: datetime.datetime, after: datetime.datetime) -> datetime.datetime:
    target = _offset_s(zone, after)
    while after - before > _SECOND:
        middle = before + datetime.timedelta(seconds=(after - before) // _SECOND // 2)
        before, after = (before, middle) if _offset_s(zone, middle) == target else (middle, after)
    return after


def _offset_s(zone: datetime.tzinfo, moment: datetime.datetime) -> int:
    offset = moment.astimezone(zone).utcoffset()
    assert offset is not None  # noqa: S101 -- the moment has a zone
    return offset // _SECOND


def _text(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")
