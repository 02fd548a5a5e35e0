"""A service beside the database: what to start, and where it answers.

A *service* is a program that an experiment starts and stops, such as the application in front of the
database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from uncork.model.records import Record

LOOPBACK = "127.0.0.1"
"""Where services listen: no other machine can reach them."""


class ServiceJob(Record):
    """One service to start; two equal jobs with the same data are one process.

    `command` and `environment` are filled in except for ``{python}``, ``{port}``, ``{host}`` and
    ``{folder}``, which are known when it starts. `ready` is a path that answers 200 to 399 once it is ready;
    None: its port accepts connections. `after` names the services that it depends on. `files` are put into
    its folder, by name; `digest` distinguishes them from other files. With `tls` its port expects TLS. With
    `udp` it must also listen on the UDP port of that number, because requests go there by HTTP/3.
    """

    name: str
    command: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    ready: str | None = None
    timeout_ns: int = 20 * 10**9
    after: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict, hash=False, compare=False)
    digest: str = ""
    tls: bool = False
    udp: bool = False


class Served(Record):
    """A service that answers at a port of this machine.

    `pids` are the processes that were started for it: first its own, then those of services that it depends
    on. Each leads a session, to which everything that it started belongs.
    """

    name: str
    port: int
    pids: tuple[int, ...] = ()
    host: str = LOOPBACK
    tls: bool = False
