"""Pages other than those of runs: cases, metrics, and error pages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from uncork.errors import StoreError, UncorkError, UsageError
from uncork.serve import access
from uncork.serve.app_context import PageError, context_of, message, named_figures, show
from uncork.serve.metrics import exposition
from uncork.serve.report_cache import document_of
from uncork.store.catalogue import set_tag
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


# ---- the dashboard's forms, which need POST and the form's own key ----


_WRONG_S: Final = 0.5
"""Delay after a wrong token."""
_MOST_FIELDS: Final = 10


async def tag(request: Request) -> Response:
    """Set or remove a tag of a run."""
    form = await _form(request)
    context = context_of(request)
    run = await context.cache.find(request.path_params["id"])
    try:
        added = [word for word in form.get("add", "").replace(",", " ").split() if word]
        for word in added:
            await asyncio.to_thread(set_tag, run.folder, word, present=True)
        if form.get("remove", ""):
            await asyncio.to_thread(set_tag, run.folder, form.get("remove", ""), present=False)
    except (UsageError, StoreError) as error:
        status, back = 400 if isinstance(error, UsageError) else 500, {"Back": f"/runs/{run.id}/details"}
        raise PageError(status, "The tag was not set", str(error), back) from error
    await context.cache.seen(newest=True)
    return RedirectResponse(f"/runs/{run.id}/details#tags", 303)


async def sign_in(request: Request) -> Response:
    """Ask for the token, and set a cookie for a visitor who knows it."""
    settings = context_of(request).settings
    if settings.token is None:
        return RedirectResponse("/", 303)
    if request.method != "POST":
        return show(request, "sign_in.html.j2", to=_ours(request.query_params.get("to", "/")), wrong=False)
    form = await _form(request)
    to = _ours(form.get("to", ""))
    if not access.same(form.get("token", "").strip(), settings.token):
        context_of(request).metrics.refused["token"] += 1
        await asyncio.sleep(_WRONG_S)
        return show(request, "sign_in.html.j2", 401, to=to, wrong=True)
    answer = RedirectResponse(to, 303)
    answer.set_cookie(
        settings.cookie,
        access.signed_in_key(settings.token),
        max_age=30 * 86_400,
        httponly=True,
        samesite="lax",
    )
    return answer


async def _form(request: Request) -> Mapping[str, str]:
    """Return a valid form: small, and with this visitor's key. Raises PageError if not."""
    context, form = context_of(request), {}
    if request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        with suppress(ClientDisconnect, ValueError):
            body = (await request.body()).decode()
            form = dict(parse_qsl(body, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict"))
    key = access.form_key(context.settings.secret, request.state.visitor)
    if access.same(form.get("key", ""), key):
        return form
    context.metrics.refused["form"] += 1
    text = "The dashboard restarted since the form was opened, or another site sent it. Open the page again."
    raise PageError(403, "This form is no longer valid", text)


def _ours(address: str) -> str:
    """Return an address if it is on this site, else ``/``, so that nobody is redirected elsewhere."""
    plain = address.isascii() and address.isprintable() and "\\" not in address
    return address if plain and address.startswith("/") and not address.startswith("//") else "/"
