"""Traces of arrivals: the start times of operations in an open loop that replays a recording. Pure."""

from __future__ import annotations

import math

from uncork.errors import UsageError

_LONGEST_S = 10 * 365 * 86_400


def parse_trace(text: str, file: str) -> tuple[int, ...]:
    """Return the offsets in a trace, in nanoseconds from its beginning.

    Each line has one offset in seconds (``12``, ``0.25``, ``1e-3``), in rising order. Empty lines and lines
    that start with ``#`` are ignored. Raises UsageError if a line is invalid, with file and line, or if
    there are no offsets.
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
                f'{where}: expected seconds since the start of the trace, such as 0.25, but found "{word}"'
            )
        offset = round(seconds * 1e9)
        if offsets and offset < offsets[-1]:
            raise UsageError(
                f"{where}: {word} s is earlier than the line before; sort the file by time (sort -g)"
            )
        offsets.append(offset)
    if not offsets:
        raise UsageError(f"{file}: the trace has no arrivals; write one offset in seconds per line")
    return tuple(offsets)
