"""Options of one part of a load from several machines: `--shard`, its start, its end and its lease. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

from uncork.errors import UsageError
from uncork.model.load import Arrivals, LoadPart
from uncork.requests.option import Kind, Opt, duration

if TYPE_CHECKING:
    from uncork.requests.http_options import HttpOptions
    from uncork.requests.sql_options import SqlOptions

__all__ = ["PART", "EndAfter", "LeaseFrom", "Shard", "StartAt", "part_given", "read_part"]

PART: Final = "Part of a load from several machines"
_MOST: Final = 100_000


def _shard(text: str, option: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if found is None:
        raise UsageError(f'{option} "{text}": write PART/PARTS, such as 2/4 for the second of four parts')
    number, count = int(found[1]), int(found[2])
    if not 1 <= number <= count <= _MOST:
        raise UsageError(f'{option} "{text}": parts are numbered from 1 to {max(1, min(count, _MOST))}')
    return number, count


def _start(text: str, option: str) -> int:
    """Return a time as Unix nanoseconds; without a time zone it is the local time of this machine."""
    if re.fullmatch(r"\d{9,11}(\.\d{1,9})?", text):
        whole, _, fraction = text.partition(".")
        return int(whole) * 10**9 + int(fraction.ljust(9, "0"))
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f'{option} "{text}" is not a time; write it as 2026-05-31T08:30:00Z, or in seconds since 1970'
        ) from error
    return round(found.timestamp() * 1e6) * 1000


def _taken_start(value: Any, option: str) -> int:
    return (
        round(value.timestamp() * 1e6) * 1000 if isinstance(value, datetime) else _start(str(value), option)
    )


def _taken_shard(value: Any, option: str) -> tuple[int, int]:
    return _shard("/".join(map(str, value)) if isinstance(value, tuple | list) else str(value), option)


Shard = Annotated[
    tuple[int, int] | None,
    Opt(
        "--shard PART/PARTS",
        "Send only this part of the load, such as 2/4. All parts have the same other options: -c, -R and "
        "counts of the whole load, and one --random-seed. `uncork merge` joins their runs.",
        Kind(_shard, _taken_shard),
        PART,
        python='Send only this part of the load, such as ``"2/4"``; `merge` joins the runs of all parts.',
    ),
]
StartAt = Annotated[
    int | None,
    Opt(
        "--start-at TIME",
        "Start at this time of the wall clock, at least 1 s ahead: 2026-05-31T08:30:00Z, or seconds "
        "since 1970.",
        Kind(_start, _taken_start),
        PART,
        python="When to start: a datetime, or text such as ``2026-05-31T08:30:00Z``.",
    ),
]
EndAfter = Annotated[
    int | None,
    Opt(
        "--end-after TIME",
        "Hard end: stop this long after the start, even if operations are left or in flight.",
        duration(),
        PART,
    ),
]
LeaseFrom = Annotated[
    str | None,
    Opt(
        "--lease FILE",
        "Stop 5 s after the last change of FILE (touch it every second to go on); - is any input from "
        "standard input.",
        None,
        PART,
        python="Stop 5 s after the last change of this file.",
    ),
]


def part_given(options: SqlOptions | HttpOptions) -> Iterator[str]:
    """Yield the given options of a part."""
    for name, value in (
        ("--shard", options.shard),
        ("--start-at", options.start_at),
        ("--end-after", options.end_after),
        ("--lease", options.lease),
    ):
        if value is not None:
            yield name


def read_part(
    options: SqlOptions | HttpOptions,
    *,
    clients: int,
    arrivals: Arrivals | None,
    operations: int | None,
    read_files: Iterable[str | None],
) -> LoadPart | None:
    """Return the part of the load that the options ask for; None for a load that is whole.

    `operations` is how many operations of all clients together end the load, None if something else does.
    `read_files` are the files that other options read.

    Raises:
        UsageError: if the load cannot be cut like that.
    """
    if not any(part_given(options)):
        return None
    number, count = options.shard or (1, 1)
    if options.shard is not None and not isinstance(options.random_seed, int):
        raise UsageError(
            "--shard requires --random-seed NUM, the same for all parts: they draw from one sequence"
        )
    if options.lease == "-" and "-" in read_files:
        raise UsageError("--lease - needs standard input, which another option reads: renew through a file")
    if clients < count:
        raise UsageError(
            f"--shard {number}/{count}: -c {clients} is too few, each part needs a client of its own"
        )
    if operations is not None and arrivals is None and options.sweep is None and operations < count:
        raise UsageError(
            f"--shard {number}/{count}: {operations} operations are too few, each part needs one"
        )
    return LoadPart(number, count, options.start_at, options.end_after, options.lease)
