"""Pages over several runs: comparisons, and histories of metrics over comparable runs."""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from uncork.analysis.runs.comparable_runs import comparable_series, figure_entries
from uncork.model.stored_run import BASELINE, StoredRun
from uncork.report.words import figure_value
from uncork.serve.answers import MEDIA, file_of, page_of
from uncork.serve.app_context import PageError, context_of, refusing, show
from uncork.serve.report_cache import Drawn, HistoryWanted, compared_query
from uncork.serve.run_cache import NoSuchRunError

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
    with refusing(404, "There is no such export", back):
        return await _export(request, await _comparison(request, found), "comparison")


async def _chosen(request: Request) -> list[StoredRun]:
    """Return the requested runs, starting with the run to compare with. Raises PageError without some."""
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
    with refusing(404, "There is no such export", {"Histories": "/history"}):
        return await _export(request, await _history(request), "history")


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
        entries = await asyncio.to_thread(figure_entries, run.folder)
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


async def _export(request: Request, drawn: Drawn, name: str) -> Response:
    number, form = request.path_params["number"], request.path_params["form"]
    if form not in MEDIA:
        raise NoSuchRunError
    data = await context_of(request).reports.export(drawn, number, form)
    return file_of(data, f"{name}-{number}.{form}", MEDIA[form])
