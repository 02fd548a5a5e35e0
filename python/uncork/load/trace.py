"""Traces of arrivals: when operations start in an open loop that repeats a recording. Pure."""

from __future__ import annotations

import math

from uncork.errors import UsageError

__all__ = ["parse_trace"]

_LONGEST_S = 10 * 365 * 86_400


def parse_trace(text: str, file: str) -> tuple[int, ...]:
    """Return the offsets in a trace, in nanoseconds from its beginning.

    A line holds one offset in seconds (``12``, ``0.25``, ``1e-3``), none below the one before it; empty lines
    and those that start with ``#`` are passed over.

    Raises:
        UsageError: with file and line, if one cannot be read, or there is none at all.
    """
    offsets: list[int] = []
    for number, line in enumerate(text.splitlines(), start=1):
        word = line.strip()
        if not word or word.startswith("#"):
            continue
        where = f"{file}:{number}"
        try:
            seconds = float(word)
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds <= _LONGEST_S:
            raise UsageError(
                f'{where}: expected seconds from the beginning of the trace, such as 0.25; found "{word}"'
            )
        offset = round(seconds * 1e9)
        if offsets and offset < offsets[-1]:
            raise UsageError(
                f"{where}: {word} s is before the line above it; sort the file by time (sort -g)"
            )
        offsets.append(offset)
    if not offsets:
        raise UsageError(f"{file}: the trace holds no arrivals; write one offset in seconds a line")
    return tuple(offsets)
