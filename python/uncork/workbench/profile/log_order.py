"""Put the files of each server in the order of time, in which a log must be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from uncork.profile.logs import LogRequest, log_begin

__all__ = ["in_order", "in_order_of_time"]


def in_order_of_time(request: LogRequest) -> LogRequest:
    """Return the request with the files of each server in the order of their first entries.

    Objects, streams, and files whose first entries have no time keep their places. Only the beginning of each
    file is read, and only if its server has several.

    Raises:
        UsageError: if the prefix is not a valid log_line_prefix.
    """
    servers = request.servers or [""] * len(request.paths)
    files = defaultdict(list)
    for place, (path, server) in enumerate(zip(request.paths, servers, strict=True)):
        if isinstance(path, Path) and path.is_file():
            files[server].append(place)
    begins: list[int | None] = [None] * len(request.paths)
    for places in files.values():
        for place in places if len(places) > 1 else ():
            begins[place] = log_begin(request, place)
    return replace(request, paths=tuple(request.paths[place] for place in in_order(servers, begins)))


def in_order(servers: Sequence[str], begins: Sequence[int | None]) -> tuple[int, ...]:
    """Return the order in which to read logs of servers that begin at these times. Pure.

    The logs of a server take each other's places; logs without a time keep their own.
    """
    order = list(range(len(servers)))
    for server in set(servers):
        places = [at for at, of in enumerate(servers) if of == server and begins[at] is not None]
        for place, log in zip(places, sorted(places, key=lambda at: begins[at] or 0), strict=True):
            order[place] = log
    return tuple(order)
