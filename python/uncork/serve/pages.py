"""Pages beside those of runs: cases, metrics, and what is said when something is not there or broke."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from uncork.errors import UncorkError
from uncork.serve.app_context import context_of, message, show
from uncork.serve.metrics import exposition
from uncork.serve.report_cache import document_of
from uncork.workbench.experiment.case_list import all_cases, case_page

__all__ = ["broken", "case", "cases", "metrics", "not_allowed", "not_found", "still_drawing"]


async def cases(request: Request) -> Response:
    """Answer with the list of the published cases."""
    seen = await context_of(request).cache.seen()
    latest = {
        case.name: next((run for run in seen.runs if run.case == case.name), None) for case in all_cases()
    }
    return show(request, "cases.html.j2", cases=all_cases(), latest=latest)


async def case(request: Request) -> Response:
    """Answer with a case: question, source, published figures, the commands, and its runs here."""
    try:
        found = case_page(request.path_params["name"])
    except KeyError:
        return message(request, 404, "There is no such case", "These are the cases.", {"Cases": "/cases"})
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
    """Answer with figures for Prometheus."""
    context = context_of(request)
    seen = await context.cache.seen()
    text = await asyncio.to_thread(
        exposition, context.metrics, seen.runs, len(seen.damaged), datetime.now(UTC)
    )
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")


async def not_found(request: Request, _: Exception) -> Response:
    """Answer that there is no such page."""
    return message(request, 404, "There is no such page", "The address may be mistyped, or cut off.")


async def not_allowed(request: Request, _: Exception) -> Response:
    """Answer that the page knows no such method."""
    return message(request, 405, "That cannot be done here", f"This page does not know {request.method}.")


async def still_drawing(request: Request, error: Exception) -> Response:
    """Answer that a page takes long; the browser asks for it again by itself."""
    here = str(request.url.replace(scheme="", netloc=""))
    text = f"It takes long: {error}. This page loads again by itself until it is there."
    answer = message(request, 202, "It is being drawn", text, {"Load again": here, "All runs": "/"})
    answer.headers["refresh"] = "3"
    return answer


async def broken(request: Request, error: Exception) -> Response:
    """Answer that something broke; what exactly is for the terminal that serves, not for the browser."""
    if isinstance(error, UncorkError):
        return message(request, 500, "The runs cannot be read", str(error))
    return message(
        request,
        500,
        "Something broke while this page was made",
        "The terminal in which uncork serve runs tells what. The runs themselves are not touched by it.",
        {"Try again": request.url.path, "All runs": "/"},
    )
