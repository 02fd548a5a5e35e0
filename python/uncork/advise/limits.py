"""Limits that refuse: each shows as an error of its own kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from uncork.model.bottleneck import Bottleneck, Component, DatabaseUse, Seen

__all__ = ["connection_limit", "ephemeral_ports", "file_descriptors", "listen_backlog"]

_REFUSES: Final = 2.0
"""The weight of what refuses: above all that only holds up. The share of errors is added."""
_NEAR: Final = 0.98
"""A limit of files is reached from this part on: a few are always between two states."""
_OVERFLOWS: Final = 0.01
"""A backlog without room for a smaller part of the connections is no limit: it overflowed now and then."""
_SHARE_CONNECTIONS: Final = (
    "share connections by a pool (PgBouncer, or the service's own); raise max_connections only if memory and "
    "processors bear as many at work"
)


def ephemeral_ports(seen: Seen) -> Bottleneck | None:
    """The generator's machine has no port left to connect from."""
    failed = _errors(seen, ("EADDRNOTAVAIL", "no local port"), "cannot assign requested address")
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
    own = _errors(seen, ("too many files",))
    if own:
        return Bottleneck(
            "file descriptors",
            f"the generator may open no more files, and each connection takes one: {own} could not be opened",
            "raise the generator's limit of open files (ulimit -n)",
            _refusing(seen, own),
        )
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
    """The database takes no more connections, by its own word or by the service's failures beside it."""
    words = ("too many clients", "too many connections", "remaining connection slots")
    failed = _errors(seen, ("53300",), *words)
    sessions = seen.sessions
    if not failed and sessions is not None and _has_no_room(sessions):
        failed = sum(many for code, many in seen.load.errors.items() if code.startswith("status 5"))
        if failed:
            return Bottleneck(
                "connection limit",
                f"the database has no room for more connections: {sessions.connections} were open of the "
                f"{sessions.max_connections} that it takes{_kept(sessions)}, and the service failed "
                f"{failed} requests meanwhile",
                _SHARE_CONNECTIONS,
                _refusing(seen, failed),
            )
    if not failed:
        return None
    most = "" if sessions is None or not sessions.max_connections else f" of {sessions.max_connections}"
    return Bottleneck(
        "connection limit",
        f"the database takes no more connections{most}: it refused {failed}",
        _SHARE_CONNECTIONS,
        _refusing(seen, failed),
    )


def listen_backlog(seen: Seen) -> Bottleneck | None:
    """Connections come faster than they are accepted."""
    overflows, came = seen.machine.overflows or 0, _came(seen)
    if not overflows or not came or overflows < _OVERFLOWS * came:
        return None
    most = "" if seen.machine.backlog is None else f" ({seen.machine.backlog} waited in it at most)"
    return Bottleneck(
        "listen backlog",
        f"the queue of connections to be accepted overflowed {overflows} times{most}: those clients wait a "
        "second or more before they try again",
        "raise the service's backlog and net.core.somaxconn, accept faster, or keep connections open",
        _REFUSES,
    )


def _came(seen: Seen) -> int:
    """Count connections that were opened, or could not be, while it was measured."""
    load = seen.load
    refused = sum(load.errors.get(code, 0) for code in ("connect timeout", "refused"))
    return load.opened + refused


def _has_no_room(sessions: DatabaseUse) -> bool:
    """Say whether every connection is taken, but for one that may be between two clients."""
    if sessions.connections is None or sessions.max_connections is None:
        return False
    return sessions.connections >= sessions.max_connections - sessions.reserved - 1


def _kept(sessions: DatabaseUse) -> str:
    return f", {sessions.reserved} of them only from administrators" if sessions.reserved else ""


def _full(party: Component) -> bool:
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
