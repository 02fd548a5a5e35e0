"""The dashboard's forms: set and remove tags, and sign in. Each needs POST and the form's own key."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response

from uncork.errors import StoreError, UsageError
from uncork.serve import access
from uncork.serve.app_context import PageError, context_of, show
from uncork.store.catalogue import set_tag

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
    """Return a valid form: small, and with the key that this visitor was given. Raises PageError if not."""
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
