"""Put the logs of each server in the order of time, in which a log must be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from uncork.profile.logs import LogRequest, log_begins
from uncork.profile.objects.address import LogObject


def in_order_of_time(request: LogRequest) -> LogRequest:
    """Return the request with the logs of each server in the order of their first entries.

    Streams, and logs whose first entries have no time, keep their places. Only the beginning of each log is
    read, and only if its server has several. Of objects whose names say when they begin, nothing is read.

    Raises:
        UsageError: if the prefix is not a valid log_line_prefix.
    """
    servers = request.servers or [""] * len(request.paths)
    logs = defaultdict(list)
    for place, (path, server) in enumerate(zip(request.paths, servers, strict=True)):
        if isinstance(path, LogObject) or path.is_file():
            logs[server].append(place)
    several = [place for places in logs.values() if len(places) > 1 for place in places]
    begins = dict(zip(several, log_begins(request, several), strict=True))
    known = [begins.get(place) for place in range(len(request.paths))]
    return replace(request, paths=tuple(request.paths[place] for place in in_order(servers, known)))


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
