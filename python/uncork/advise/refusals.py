"""Limits that refuse: each shows as an error of its own kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from uncork.model.bottleneck import Bottleneck, Party, Seen

__all__ = ["connection_limit", "ephemeral_ports", "file_descriptors", "listen_backlog"]

_REFUSES: Final = 2.0
"""The weight of what refuses: above all that only holds up. The share of errors is added."""
_NEAR: Final = 0.98
"""A limit of files or connections is reached from this part on: a few are always between two states."""


def ephemeral_ports(seen: Seen) -> Bottleneck | None:
    """The generator's machine has no port left to connect from."""
    failed = _errors(seen, ("EADDRNOTAVAIL",), "cannot assign requested address")
    if not failed:
        return None
    return Bottleneck(
        "ephemeral ports",
        f"the generator's machine ran out of ports to connect from ({failed} times): closed connections keep "
        "theirs for a minute",
        "keep connections open, or widen net.ipv4.ip_local_port_range",
        _refusing(seen, failed),
    )


def file_descriptors(seen: Seen) -> Bottleneck | None:
    """A party may open no more files, and each connection is one."""
    failed = _errors(seen, ("EMFILE", "ENFILE", "53000"), "too many open files")
    for name, party in (("service", seen.service), ("database", seen.database)):
        if party is not None and _full(party):
            return Bottleneck(
                "file descriptors",
                f"a process of the {name} has {party.descriptors} files open of the "
                f"{party.descriptor_limit} that it may, and each connection takes one",
                f"raise the limit of open files of the {name} (ulimit -n, LimitNOFILE)",
                _refusing(seen, failed),
            )
    if not failed:
        return None
    return Bottleneck(
        "file descriptors",
        f"{failed} requests failed because no more files may be opened, and each connection takes one",
        "raise the limit of open files (ulimit -n, LimitNOFILE) where the message comes from",
        _refusing(seen, failed),
    )


def connection_limit(seen: Seen) -> Bottleneck | None:
    """The database takes no more connections."""
    words = ("too many clients", "too many connections", "remaining connection slots")
    failed = _errors(seen, ("53300",), *words)
    if not failed:
        return None
    sessions = seen.sessions
    most = "" if sessions is None or not sessions.max_connections else f" of {sessions.max_connections}"
    return Bottleneck(
        "connection limit",
        f"the database takes no more connections{most}: it refused {failed}",
        "share connections by a pool (PgBouncer, or the service's own); raise max_connections only if memory "
        "and processors bear as many at work",
        _refusing(seen, failed),
    )


def listen_backlog(seen: Seen) -> Bottleneck | None:
    """Connections come faster than they are accepted."""
    overflows = seen.machine.overflows or 0
    if not overflows:
        return None
    return Bottleneck(
        "listen backlog",
        f"the queue of connections to be accepted overflowed {overflows} times: those clients wait a second "
        "or more before they try again",
        "raise the service's backlog and net.core.somaxconn, accept faster, or keep connections open",
        _REFUSES,
    )


def _full(party: Party) -> bool:
    known = party.descriptors is not None and bool(party.descriptor_limit)
    return known and (party.descriptors or 0) >= _NEAR * (party.descriptor_limit or 0)


def _errors(seen: Seen, codes: Iterable[str], *words: str) -> int:
    """Count errors of some codes; where the first message holds the words, all errors count."""
    found = sum(seen.load.errors.get(code, 0) for code in codes)
    if not found and any(word in seen.load.message.lower() for word in words):
        return max(1, sum(seen.load.errors.values()))
    return found


def _refusing(seen: Seen, failed: int) -> float:
    total = sum(seen.load.errors.values())
    return _REFUSES + (failed / total if total else 0.0)
