"""Pages other than those of runs: cases, metrics, and error pages."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from uncork.errors import UncorkError
from uncork.serve.app_context import context_of, message, named_figures, show
from uncork.serve.metrics import exposition
from uncork.serve.report_cache import document_of
from uncork.workbench.experiment.case_list import all_cases, case_page


async def cases(request: Request) -> Response:
    """Return the page that lists the published cases."""
    seen = await context_of(request).cache.seen()
    latest = {
        case.name: next((run for run in seen.runs if run.case == case.name), None) for case in all_cases()
    }
    return show(request, "cases.html.j2", cases=all_cases(), latest=latest)


async def case(request: Request) -> Response:
    """Return the page of a case: question, source, published numbers, commands, and its runs here."""
    try:
        found = case_page(request.path_params["name"])
    except KeyError:
        return message(request, 404, "There is no such case", "Choose one of the cases.", {"Cases": "/cases"})
    context = context_of(request)
    runs = [run for run in (await context.cache.seen()).runs if run.case == found.name]
    answer = ""
    ended = next((run for run in runs if run.status != "running"), None)
    if ended is not None:
        try:
            answer = document_of(await context.reports.report(ended)).answer
        except UncorkError as error:
            answer = f"Its report cannot be drawn: {error}"
    return show(request, "case.html.j2", case=found, runs=runs[:20], ended=ended, answer=answer)


async def metrics(request: Request) -> Response:
    """Return the dashboard's metrics in Prometheus's format."""
    context = context_of(request)
    seen = await context.cache.seen()
    named = await named_figures(context.figures, seen.runs)
    text = await asyncio.to_thread(
        exposition, context.metrics, seen.runs, len(seen.damaged), datetime.now(UTC), named
    )
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def refused(request: Request, error: Exception) -> Response:
    """Return the page with the message of a `PageError`."""
    return message(request, *error.args)


async def not_found(request: Request, _: Exception) -> Response:
    """Return the page for an unknown address."""
    return message(request, 404, "There is no such page", "The address may be mistyped or incomplete.")


async def not_allowed(request: Request, _: Exception) -> Response:
    """Return the page for an HTTP method that an address does not support."""
    return message(request, 405, "That cannot be done here", f"This page does not support {request.method}.")


async def still_drawing(request: Request, error: Exception) -> Response:
    """Return a page that the browser reloads until the wanted page has been drawn."""
    here = str(request.url.replace(scheme="", netloc=""))
    text = f"This takes a while: {error}. This page reloads by itself until it is ready."
    answer = message(request, 202, "The page is being drawn", text, {"Reload": here, "All runs": "/"})
    answer.headers["refresh"] = "3"
    return answer


async def broken(request: Request, error: Exception) -> Response:
    """Return the page for an internal error. Only the terminal that serves shows its details."""
    if isinstance(error, UncorkError):
        return message(request, 500, "The runs cannot be read", str(error))
    return message(
        request,
        500,
        "This page could not be made",
        "The terminal that runs uncork serve shows the error. The stored runs are not affected.",
        {"Try again": request.url.path, "All runs": "/"},
    )
