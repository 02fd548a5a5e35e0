"""Pages about runs: the list, a report, its details and exports, and a run in progress."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import (
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

from uncork.analysis.runs.comparable_runs import comparable_series, ordered_figures
from uncork.analysis.runs.figures import FIGURED
from uncork.errors import UncorkError
from uncork.model.stored_run import BASELINE, RunFilter, StoredRun, select
from uncork.report.words import figure_value
from uncork.report.write.exports import FORMS, exports
from uncork.serve.answers import MEDIA, file_of, packed, page_of
from uncork.serve.app_context import PageError, context_of, fragment, message, refusing, show
from uncork.serve.progress import RunProgress, has_progress, run_progress
from uncork.serve.report_cache import Drawn, HistoryWanted, NoSuchRunError, compared_query, document_of
from uncork.store.remote.mirrors import shown

_A_PAGE: Final = 100
_LONGEST_TEXT: Final = 200
_POLL_S: Final = 1.0
_LONGEST_STREAM_S: Final = 600.0
"""Longest time a stream stays open. The browser reopens it automatically."""
_MOST_STREAMS: Final = 50


async def all_runs(request: Request) -> Response:
    """Return the list of runs, filtered by the query."""
    return packed(request, show(request, "runs.html.j2", **await _listed(request)))


async def rows(request: Request) -> Response:
    """Return the rows of the list for the page to replace; 204 if the page already has them.

    A page that updates itself sends what it has in `have`. Filters do not: their response has the new
    address.
    """
    listed = await _listed(request)
    have = request.query_params.get("have")
    if have == listed["have"]:
        return Response(status_code=204)
    answer = show(request, "list.html.j2", **listed)
    if have is None:
        answer.headers["hx-replace-url"] = listed["address"]
    return packed(request, answer)


async def first(request: Request) -> Response:
    """Make the page that waits for the first run reload once there is one."""
    there = bool((await context_of(request).cache.seen()).runs)
    return Response(status_code=204, headers={"hx-refresh": "true"} if there else {})


async def _listed(request: Request) -> dict[str, Any]:
    query = request.query_params
    wanted = RunFilter(
        text=query.get("q", "")[:_LONGEST_TEXT],
        kind=query.get("kind", ""),
        status=query.get("status", ""),
        tag=query.get("tag", ""),
        case=query.get("case", ""),
    )
    seen = await context_of(request).cache.seen()
    found = select(seen.runs, wanted)
    pages = max(1, -(-len(found) // _A_PAGE))
    number = query.get("page", "1")
    page = min(pages, max(1, int(number))) if number.isascii() and number.isdigit() and len(number) < 7 else 1
    chosen = {name: getattr(wanted, name) for name in ("kind", "status", "tag", "case")} | {"q": wanted.text}
    chosen = {name: value for name, value in chosen.items() if value}
    on_page = found[(page - 1) * _A_PAGE : page * _A_PAGE]
    inside = fragment(
        request,
        "rows.html.j2",
        seen=seen,
        found=len(found),
        shown=on_page,
        results=await context_of(request).headlines.of(on_page),
        page=page,
        pages=pages,
        to_page=lambda number: "/?" + urlencode({**chosen, "page": number}),
        to_tag=lambda tag: "/?" + urlencode({"tag": tag}),
        chosen=chosen,
    )
    have = hashlib.sha256(inside.encode()).hexdigest()[:16]
    here = chosen | ({"page": str(page)} if page > 1 else {})
    return {
        "wanted": wanted,
        "seen": seen,
        "rows": inside,
        "have": have,
        "again": "/rows?" + urlencode({**here, "have": have}),
        "address": "/?" + urlencode(here) if here else "/",
        "root": shown(context_of(request).cache.root),
    }


async def report(request: Request) -> Response:
    """Return a run's report; redirect to its live page while there is nothing to report yet."""
    run = await _run(request)
    try:
        drawn = await context_of(request).reports.report(run)
    except UncorkError as error:
        if run.status == "running" or has_progress(run):
            return RedirectResponse(f"/runs/{run.id}/live", 303)
        return message(
            request,
            422,
            f"There is no report on {run.id}",
            str(error),
            {"About this run, and its tags": f"/runs/{run.id}/details", "All runs": "/"},
        )
    return page_of(drawn.html)


async def details(request: Request) -> Response:
    """Return a run's facts and tags, and its charts and tables as files."""
    run = await _run(request)
    try:
        drawn = await context_of(request).reports.report(run)
        files, answer, trouble = exports(document_of(drawn)), document_of(drawn).answer, ""
    except UncorkError as error:
        files, answer, trouble = (), "", str(error)
    return show(
        request,
        "details.html.j2",
        run=run,
        files=files,
        figured=run.kind in FIGURED,
        forms=FORMS,
        answer=answer,
        trouble=trouble,
    )


async def exported(request: Request) -> Response:
    """Return a chart or table of a report as a file."""
    run = await _run(request)
    drawing = partial(context_of(request).reports.report, run)
    return await _export(request, drawing, run.id, {"Exports": f"/runs/{run.id}/details"})


async def markdown(request: Request) -> Response:
    """Return a run's report as Markdown."""
    run = await _run(request)
    try:
        text = await context_of(request).reports.markdown(run)
    except UncorkError as error:
        return PlainTextResponse(f"{error}\n", 422)
    return file_of(text.encode(), f"{run.id}.md", "text/markdown; charset=utf-8")


async def result(request: Request) -> Response:
    """Return a run's result as JSON, as `uncork report --json` prints it."""
    run = await _run(request)
    try:
        drawn = await context_of(request).reports.report(run)
    except UncorkError as error:
        return JSONResponse({"error": str(error)}, 422)
    return file_of(drawn.json.encode(), f"{run.id}.json", "application/json")


async def telemetry(request: Request) -> Response:
    """Return a run's time series as OpenTelemetry metrics, with one line of JSON per export request."""
    run = await _run(request)
    with refusing(422, "There is nothing to export"):
        data = await context_of(request).reports.telemetry(run)
    return file_of(data, f"{run.id}.otlp.jsonl", "application/jsonl")


# ---- a run in progress ----


async def live(request: Request) -> Response:
    """Return what a run has stored so far. The page updates itself."""
    run = await _run(request)
    if run.status != "running" and not has_progress(run):
        return RedirectResponse(f"/runs/{run.id}", 303)
    return show(request, "live.html.j2", run=run, progress=await _progress(run))


async def events(request: Request) -> Response:
    """Return server-sent events: what a run has stored, whenever that changes, until the run ends."""
    run, context = await _run(request), context_of(request)
    if context.metrics.streams >= _MOST_STREAMS:
        return PlainTextResponse("Too many pages follow runs.\n", 503, headers={"retry-after": "30"})
    return StreamingResponse(_followed(request, run.id), media_type="text/event-stream")


async def _followed(request: Request, id: str) -> AsyncIterator[str]:
    context = context_of(request)
    context.metrics.streams += 1
    sent, until = "", time.monotonic() + _LONGEST_STREAM_S
    try:
        yield _event("following", "This page updates automatically.")
        while time.monotonic() < until and not context.settings.ending.is_set():
            run = (await context.cache.seen()).by_id.get(id)
            if run is None or run.status != "running":
                yield _event("ended", fragment(request, "ended.html.j2", run=run))
                return
            text = fragment(request, "progress.html.j2", run=run, progress=await _progress(run))
            if text != sent:
                sent = text
                yield _event("progress", text)
            else:
                yield ": nothing new\n\n"
            await asyncio.sleep(_POLL_S)
    finally:
        context.metrics.streams -= 1


async def _progress(run: StoredRun) -> RunProgress:
    try:
        return await asyncio.to_thread(run_progress, run)
    except (UncorkError, OSError) as error:
        return RunProgress(f"Its stored data cannot be read right now: {error}")


def _event(name: str, text: str) -> str:
    data = "".join(f"data: {line}\n" for line in re.split(r"\r\n|\r|\n", text))
    return f"event: {name}\n{data}\n"


async def _run(request: Request) -> StoredRun:
    return await context_of(request).cache.find(request.path_params["id"])


async def no_such_run(request: Request, _: Exception) -> Response:
    """Return the page for a run that is not stored."""
    return message(
        request,
        404,
        "There is no such run here",
        "It may have been pruned, or be stored in another folder. The list shows all runs of this folder.",
    )


async def too_busy(request: Request, error: Exception) -> Response:
    """Return the page for a request that came while too many reports waited to be drawn."""
    steps = {"Try again": str(request.url.replace(scheme="", netloc="")), "All runs": "/"}
    return message(request, 503, "The dashboard is too busy", f"{error}.", steps)


# ---- pages over several runs: comparisons, and histories of metrics ----


_MOST_COMPARED: Final = 10
_MOST_SERIES: Final = 200
_LONGEST: Final = 400


async def compared(request: Request) -> Response:
    """Return the page that compares runs with the run `against`, the baseline, or the oldest."""
    found = await _chosen(request)
    steps = {run.id: f"/runs/{run.id}" for run in found} | {"All runs": "/"}
    with refusing(422, "These runs cannot be compared", steps):
        return page_of((await _comparison(request, found)).html)


async def compared_exported(request: Request) -> Response:
    """Return a chart or table of a comparison as a file."""
    found = await _chosen(request)
    back = {"The comparison": f"/compare?{compared_query(found[0], found[1:])}"}
    return await _export(request, partial(_comparison, request, found), "comparison", back)


async def _chosen(request: Request) -> list[StoredRun]:
    """Return the requested runs, first the one to compare with. Raises PageError."""
    context, query = context_of(request), request.query_params
    ids = list(dict.fromkeys([*query.getlist("against")[:1], *query.getlist("run")]))
    if len(ids) == 1 and "against" not in query:
        named = next((run for run in (await context.cache.seen()).runs if BASELINE in run.names), None)
        if named is not None and named.id != ids[0]:
            return [named, await context.cache.find(ids[0])]
        text = (
            f"A single run is compared with the run named {BASELINE}. Give a run that name with "
            f"`uncork runs name RUN {BASELINE}`, or select two runs in the list."
        )
        raise PageError(400, "There is no run to compare with", text)
    if not 1 < len(ids) <= _MOST_COMPARED:
        text = f"Select 2 to {_MOST_COMPARED} runs in the list, then compare them."
        raise PageError(400, "Select runs to compare", text)
    found = [await context.cache.find(id) for id in ids]
    if "against" not in query:
        found.sort(key=lambda run: (BASELINE not in run.names, run.started_at))
    return found


async def _comparison(request: Request, found: list[StoredRun]) -> Drawn:
    context = context_of(request)
    seen = await context.cache.seen()
    return await context.reports.comparison(context.cache.root, found[0], found[1:], seen.manifests())


async def histories(request: Request) -> Response:
    """Return the list of series, the metrics of one series, or the history of one metric."""
    query = request.query_params
    if "like" not in query:
        return await _series(request)
    run = await context_of(request).cache.find(query["like"])
    if "metric" not in query:
        return await _figures(request, run)
    steps = {"Its metrics": f"/history?{urlencode({'like': run.id})}", "All runs": "/"}
    with refusing(404, "There is no such history", steps):
        return page_of((await _history(request)).html)


async def history_exported(request: Request) -> Response:
    """Return a chart or table of a history as a file."""
    return await _export(request, partial(_history, request), "history", {"Histories": "/history"})


async def _series(request: Request) -> Response:
    context = context_of(request)
    seen = await context.cache.seen()
    if context.series.number != seen.number:
        found = await asyncio.to_thread(comparable_series, context.cache.root, seen.manifests())
        context.series.number, context.series.found = seen.number, found
    series = context.series.found
    return show(
        request,
        "series.html.j2",
        series=series[:_MOST_SERIES],
        total=len(series),
        to_series=lambda id: "/history?" + urlencode({"like": id}),
    )


async def _figures(request: Request, run: StoredRun) -> Response:
    with refusing(422, f"{run.id} has no history", {"Its report": f"/runs/{run.id}"}):
        entries = await asyncio.to_thread(ordered_figures, run.folder)
    return show(
        request,
        "figures.html.j2",
        run=run,
        entries=entries,
        subjects=any(entry.subject for entry in entries),
        value_text=lambda one: figure_value(one.value, one.unit),
        to_history=lambda one: "/history?" + HistoryWanted(one.name, one.subject, run.id).query,
    )


async def _history(request: Request) -> Drawn:
    context, query = context_of(request), request.query_params
    run = await context.cache.find(query.get("like", "")[:_LONGEST])
    wanted = HistoryWanted(query.get("metric", "")[:_LONGEST], query.get("of", "")[:_LONGEST], run.id)
    seen = await context.cache.seen()
    return await context.reports.history(context.cache.root, wanted, seen.manifests(), str(seen.number))


async def _export(
    request: Request, draw: Callable[[], Awaitable[Drawn]], name: str, back: dict[str, str]
) -> Response:
    number, form = request.path_params["number"], request.path_params["form"]
    if form not in MEDIA:
        raise NoSuchRunError
    with refusing(404, "There is no such export", back):
        data = await context_of(request).reports.export(await draw(), number, form)
    return file_of(data, f"{name}-{number}.{form}", MEDIA[form])
