"""The routes of the dashboard, and its ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.routing import Route

from uncork.serve import assets, forms, pages, runs, series
from uncork.serve.app_context import AppContext
from uncork.serve.metrics import Metrics
from uncork.serve.middleware import App, Guard
from uncork.serve.report_cache import ReportCache, StillDrawingError, TooBusyError
from uncork.serve.run_cache import NoSuchRunError, RunCache
from uncork.serve.settings import Settings


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
            Route("/runs/{id}/tags", forms.tag, methods=["POST"]),
            Route("/compare", series.compared),
            Route("/compare/exports/{number:int}.{form}", series.compared_exported),
            Route("/history", series.histories),
            Route("/history/exports/{number:int}.{form}", series.history_exported),
            Route("/cases", pages.cases),
            Route("/cases/{name}", pages.case),
            Route("/metrics", pages.metrics),
            Route("/sign-in", forms.sign_in, methods=["GET", "POST"]),
            Route("/static/{name}", assets.static),
        ],
        exception_handlers={
            404: pages.not_found,
            405: pages.not_allowed,
            NoSuchRunError: runs.no_such_run,
            StillDrawingError: pages.still_drawing,
            TooBusyError: runs.too_busy,
            Exception: pages.broken,
        },
        lifespan=lifespan,
    )
    application.state.context = context
    return Guard(application, settings, context.metrics)
