"""Limits that refuse requests or connections. Each shows as an error of its own kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from uncork.model.bottleneck import Bottleneck, Component, DatabaseUse, Seen

_REFUSAL_WEIGHT: Final = 2.0
"""Weight of a limit: above every saturated resource. The share of errors is added."""
_NEAR: Final = 0.98
"""Fraction of the limit of open files that counts as reached: a few files are always being opened or
closed."""
_OVERFLOWS: Final = 0.01
"""Fraction of connections that must overflow the backlog. Below it, the backlog overflows only
occasionally."""
_SHARE_CONNECTIONS: Final = (
    "share connections through a pool (PgBouncer, or the service's own); raise max_connections only if "
    "memory and processors can serve that many active sessions"
)


def ephemeral_ports(seen: Seen) -> Bottleneck | None:
    """Report that the generator's machine has no port left to connect from."""
    failed = _errors(seen, ("EADDRNOTAVAIL", "no local port"), "cannot assign requested address")
    if not failed:
        return None
    return Bottleneck(
        "ephemeral ports",
        f"the generator's machine ran out of local ports to connect from ({failed} times): a closed "
        "connection occupies its port for a minute",
        "keep connections open, or widen net.ipv4.ip_local_port_range",
        _refusing(seen, failed),
    )


def file_descriptors(seen: Seen) -> Bottleneck | None:
    """Report that a component reached its limit of open files. Each connection takes one."""
    own = _errors(seen, ("too many files",))
    if own:
        return Bottleneck(
            "file descriptors",
            f"the generator reached its limit of open files, and each connection takes one: {own} could not "
            "be opened",
            "raise the generator's limit of open files (ulimit -n)",
            _refusing(seen, own),
        )
    failed = _errors(seen, ("EMFILE", "ENFILE", "53000"), "too many open files")
    for name, component in (("service", seen.service), ("database", seen.database)):
        if component is not None and _full(component):
            return Bottleneck(
                "file descriptors",
                f"a process of the {name} has {component.descriptors} of at most "
                f"{component.descriptor_limit} files open, and each connection takes one",
                f"raise the {name}'s limit of open files (ulimit -n, LimitNOFILE)",
                _refusing(seen, failed),
            )
    if not failed:
        return None
    return Bottleneck(
        "file descriptors",
        f"{failed} requests failed at a limit of open files, and each connection takes one",
        "raise the limit of open files (ulimit -n, LimitNOFILE) of the process that reported the error",
        _refusing(seen, failed),
    )


def connection_limit(seen: Seen) -> Bottleneck | None:
    """Report that the database accepts no more connections.

    The evidence is the database's own error, or failures of the service while all connections are taken.
    """
    words = ("too many clients", "too many connections", "remaining connection slots")
    failed = _errors(seen, ("53300",), *words)
    sessions = seen.sessions
    if not failed and sessions is not None and _has_no_room(sessions):
        failed = sum(many for code, many in seen.load.errors.items() if code.startswith("status 5"))
        if failed:
            return Bottleneck(
                "connection limit",
                f"the database has no connection left: {sessions.connections} of "
                f"{sessions.max_connections} were open{_reserved(sessions)}, and the service failed "
                f"{failed} requests meanwhile",
                _SHARE_CONNECTIONS,
                _refusing(seen, failed),
            )
    if not failed:
        return None
    most = (
        ""
        if sessions is None or not sessions.max_connections
        else f" (max_connections = {sessions.max_connections})"
    )
    return Bottleneck(
        "connection limit",
        f"the database accepts no more connections{most}: it refused {failed}",
        _SHARE_CONNECTIONS,
        _refusing(seen, failed),
    )


def listen_backlog(seen: Seen) -> Bottleneck | None:
    """Report that connections arrive faster than the service accepts them."""
    overflows, came = seen.machine.overflows or 0, _came(seen)
    if not overflows or not came or overflows < _OVERFLOWS * came:
        return None
    most = "" if seen.machine.backlog is None else f" (at most {seen.machine.backlog} waited in it)"
    return Bottleneck(
        "listen backlog",
        f"the queue of connections waiting to be accepted overflowed {overflows} times{most}: each client "
        "turned away waits a second or more before it retries",
        "raise the service's backlog and net.core.somaxconn, accept faster, or keep connections open",
        _REFUSAL_WEIGHT,
    )


def _came(seen: Seen) -> int:
    """Count the connections that were opened or refused while the load was measured."""
    load = seen.load
    refused = sum(load.errors.get(code, 0) for code in ("connect timeout", "refused"))
    return load.opened + refused


def _has_no_room(sessions: DatabaseUse) -> bool:
    """Return whether every connection is taken, except one that may be changing clients."""
    if sessions.connections is None or sessions.max_connections is None:
        return False
    return sessions.connections >= sessions.max_connections - sessions.reserved - 1


def _reserved(sessions: DatabaseUse) -> str:
    return f" ({sessions.reserved} of them reserved for administrators)" if sessions.reserved else ""


def _full(component: Component) -> bool:
    known = component.descriptors is not None and bool(component.descriptor_limit)
    return known and (component.descriptors or 0) >= _NEAR * (component.descriptor_limit or 0)


def _errors(seen: Seen, codes: Iterable[str], *words: str) -> int:
    """Count the errors with one of the codes; without any, all errors if the first message has the words."""
    found = sum(seen.load.errors.get(code, 0) for code in codes)
    if not found and any(word in seen.load.message.lower() for word in words):
        return max(1, sum(seen.load.errors.values()))
    return found


def _refusing(seen: Seen, failed: int) -> float:
    total = sum(seen.load.errors.values())
    return _REFUSAL_WEIGHT + (failed / total if total else 0.0)
