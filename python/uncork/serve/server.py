"""Serve the dashboard until it is interrupted."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import uvicorn

from uncork.errors import SetupError, UsageError
from uncork.serve.app import create_app
from uncork.serve.settings import Settings

__all__ = ["is_loopback", "serve"]

_HEADERS_BYTES = 16 * 1024
_LEAST_TOKEN = 16


def serve(
    root: Path,
    *,
    host: str,
    port: int,
    names: frozenset[str],
    token: str | None,
    started: Callable[[str], None],
) -> None:
    """Serve until interrupted; `started` is told the address once connections are taken.

    Raises:
        UsageError: if it would be open to others without a token, or the token is too short.
        SetupError: if the folder cannot be read, or the address cannot be had.
    """
    if token is not None and (len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageError(f"the token must have {_LEAST_TOKEN} or more characters, printable ASCII all")
    if token is None and not is_loopback(host):
        raise UsageError(
            f"--host {host}: others could read every run here; give them a token: --token-file FILE, such as "
            "one made by: openssl rand -hex 16 > FILE"
        )
    if not root.is_dir():
        raise SetupError(f"there is no folder {root}; --runs names another, and `uncork run FILE` makes runs")
    listener = _listener(host, port)
    bound = listener.getsockname()[1]
    own = {socket.gethostname().lower(), socket.getfqdn().lower()} if not is_loopback(host) else set()
    settings = Settings(root, names | own | {host.lower()}, token, bound)
    configuration = uvicorn.Config(
        create_app(settings, lambda: started(f"http://{_shown(host)}:{bound}/")),
        http="h11",
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=_HEADERS_BYTES,
        limit_concurrency=1000,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    # It shuts down at a signal, then raises it once more: that is how a dashboard is meant to end.
    with listener, contextlib.suppress(KeyboardInterrupt):
        _Server(configuration, settings.ending).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Tells that it ends as soon as it knows; what is answered then has a moment before it is broken off."""

    def __init__(self, configuration: uvicorn.Config, ending: threading.Event) -> None:
        super().__init__(configuration)
        self._ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._ending.set()
        super().handle_exit(sig, frame)


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _listener(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(1024)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise SetupError(
            f"cannot listen on {_shown(host)}:{port}: {error.strerror}; --port takes another"
        ) from error
    return listener


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
