"""Serve the dashboard until it is interrupted."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route

from uncork.errors import SetupError, UsageError
from uncork.serve import answers, pages, runs
from uncork.serve.access import Settings
from uncork.serve.app_context import AppContext, PageError
from uncork.serve.metrics import Metrics
from uncork.serve.middleware import App, Guard
from uncork.serve.report_cache import NoSuchRunError, ReportCache, RunCache, StillDrawingError, TooBusyError

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
    """Serve until interrupted; call `started` with the address once connections are accepted.

    Raises UsageError if other machines could connect without a token, or the token is too short. Raises
    SetupError if the folder does not exist, or the address is not available.
    """
    if token is not None and (len(token) < _LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        raise UsageError(
            f"the token must have at least {_LEAST_TOKEN} characters, all of them printable ASCII"
        )
    if token is None and not is_loopback(host):
        raise UsageError(
            f"--host {host}: other machines could read every run; require a token with --token-file FILE "
            "(create one with: openssl rand -hex 16 > FILE)"
        )
    if not root.is_dir():
        raise SetupError(
            f"there is no folder {root}; name another with --runs, or create runs with `uncork run FILE`"
        )
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
    # uvicorn shuts down at a signal, then raises it again: the normal end of a dashboard.
    with listener, contextlib.suppress(KeyboardInterrupt):
        _Server(configuration, settings.ending).run(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that sets `ending` at a signal, so that open streams can finish before they are cut off."""

    def __init__(self, configuration: uvicorn.Config, ending: threading.Event) -> None:
        super().__init__(configuration)
        self._ending = ending

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._ending.set()
        super().handle_exit(sig, frame)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
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
            f"cannot listen on {_shown(host)}:{port}: {error.strerror}; choose another port with --port"
        ) from error
    return listener


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host


# ---- the routes of the dashboard, and its ASGI application ----


def create_app(settings: Settings, started: Callable[[], None] = lambda: None) -> App:
    """Return the dashboard as an ASGI application; it calls `started` once it has read the runs."""
    context = AppContext(settings, RunCache(settings.root), ReportCache(), Metrics())

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await context.cache.seen()
        started()
        yield

    application = Starlette(
        routes=[
            Route("/", runs.all_runs),
            Route("/rows", runs.rows),
            Route("/first", runs.first),
            Route("/runs/{id}", runs.report),
            Route("/runs/{id}/details", runs.details),
            Route("/runs/{id}/live", runs.live),
            Route("/runs/{id}/events", runs.events),
            Route("/runs/{id}/exports/{number:int}.{form}", runs.exported),
            Route("/runs/{id}/report.md", runs.markdown),
            Route("/runs/{id}/result.json", runs.result),
            Route("/runs/{id}/otlp.jsonl", runs.telemetry),
            Route("/runs/{id}/tags", pages.tag, methods=["POST"]),
            Route("/compare", runs.compared),
            Route("/compare/exports/{number:int}.{form}", runs.compared_exported),
            Route("/history", runs.histories),
            Route("/history/exports/{number:int}.{form}", runs.history_exported),
            Route("/cases", pages.cases),
            Route("/cases/{name}", pages.case),
            Route("/metrics", pages.metrics),
            Route("/sign-in", pages.sign_in, methods=["GET", "POST"]),
            Route("/static/{name}", answers.static),
        ],
        exception_handlers={
            404: pages.not_found,
            405: pages.not_allowed,
            PageError: pages.refused,
            NoSuchRunError: runs.no_such_run,
            StillDrawingError: pages.still_drawing,
            TooBusyError: runs.too_busy,
            Exception: pages.broken,
        },
        lifespan=lifespan,
    )
    application.state.context = context
    return Guard(application, settings, context.metrics)
