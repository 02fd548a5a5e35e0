"""Free TCP ports of this machine for servers that uncork starts."""

from __future__ import annotations

import random
import socket
from pathlib import Path
from typing import Final

from uncork.model.service import LOOPBACK

_FROM: Final = 20_000


def free_port() -> int:
    """Return a free port of this machine, outside the kernel's range for outgoing connections if possible.

    A port inside that range can become the near end of somebody's connection before the server listens on it.
    """
    try:
        ephemeral = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        ephemeral = 0
    for port in random.sample(range(_FROM, ephemeral), 50) if ephemeral > _FROM + 50 else ():
        if _is_free(port):
            return port
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
