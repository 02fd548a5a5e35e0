"""The context of all pages: runs, reports, settings and templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from uncork import __version__
from uncork.analysis.runs.comparable_runs import ComparableSeries
from uncork.analysis.runs.figures import FIGURED, remembered_figures
from uncork.errors import UncorkError
from uncork.model.results.figure import RunFigures
from uncork.model.stored_run import StoredRun
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.draw.spark import SPARK_HEIGHT, spark_path
from uncork.report.headline import split_answer
from uncork.report.runs.titles import run_title
from uncork.serve import access, answers
from uncork.serve.access import Settings
from uncork.serve.metrics import Metrics
from uncork.serve.report_cache import ReportCache, RunCache, ValueCache
from uncork.store.layout import read_answer
from uncork.store.remote.mirrors import fetched

# ---- the metrics of named runs, such as the baseline, for Prometheus; each run is read once ----


_MOST: Final = 50
"""Named runs whose metrics are served, the newest first."""


async def named_figures(
    cache: ValueCache[RunFigures | None], runs: Sequence[StoredRun]
) -> list[tuple[str, RunFigures]]:
    """Return each name with its run's metrics, in order; runs without any are left out."""
    named = [run for run in runs if run.names and run.kind in FIGURED and run.status == "complete"]
    named = sorted(named, key=lambda run: run.started_at, reverse=True)[:_MOST]
    figures = await cache.of(named)
    pairs = ((name, figures[run.id]) for run in named for name in run.names)
    return sorted(((name, found) for name, found in pairs if found is not None), key=lambda pair: pair[0])


def read_figures(runs: Sequence[StoredRun]) -> dict[str, RunFigures | None]:
    """Return the metrics of each run, by its id; None for a run without any."""
    found: dict[str, RunFigures | None] = dict.fromkeys(run.id for run in runs)
    by_folder = {run.folder: run for run in runs}
    with suppress(UncorkError):  # the address cannot be reached: what was read so far is served
        for folder in fetched(list(by_folder)):
            with suppress(UncorkError):  # damaged
                found[by_folder[folder].id] = remembered_figures(folder)
    return found


def read_headlines(runs: Sequence[StoredRun]) -> dict[str, str]:
    """Return what each run found, in one sentence, by its id; empty for runs without a report."""
    return {run.id: split_answer(read_answer(run.folder))[0] for run in runs}


# ---- the context of all pages: runs, reports, settings and templates ----


@dataclass(slots=True)
class SeriesSeen:
    """The series of comparable runs, found when the run cache had this `number`."""

    number: int = -1
    found: tuple[ComparableSeries, ...] = ()


@dataclass(frozen=True, slots=True)
class AppContext:
    """The state that all pages of one dashboard share."""

    settings: Settings
    cache: RunCache
    reports: ReportCache
    metrics: Metrics
    series: SeriesSeen = field(default_factory=SeriesSeen)
    headlines: ValueCache[str] = field(default_factory=lambda: ValueCache(read_headlines))
    figures: ValueCache[RunFigures | None] = field(default_factory=lambda: ValueCache(read_figures))


def context_of(request: Request) -> AppContext:
    """Return the context of the dashboard that received a request."""
    context: AppContext = request.app.state.context
    return context


def show(request: Request, template: str, status: int = 200, **values: object) -> HTMLResponse:
    """Return a page rendered from a template. All text is escaped; no template contains a script."""
    return HTMLResponse(fragment(request, template, **values), status)


def fragment(request: Request, template: str, **values: object) -> str:
    """Return a part of a page rendered from a template, with all text escaped."""
    context = context_of(request)
    key = access.form_key(context.settings.secret, request.state.visitor)
    return (
        _environment()
        .get_template(template)
        .render(
            values,
            form_key=key,
            version=__version__,
            assets=answers.ADDRESSES,
            now=datetime.now(UTC),
            here=request.url.path,
        )
    )


def message(
    request: Request, status: int, heading: str, text: str, steps: Mapping[str, str] | None = None
) -> HTMLResponse:
    """Return a page with a message and, as links, the next steps."""
    return show(
        request, "message.html.j2", status, heading=heading, text=text, steps=steps or {"All runs": "/"}
    )


class PageError(Exception):
    """A page cannot be shown. Its arguments are those of `message` after the request."""


@contextmanager
def refusing(status: int, heading: str, steps: Mapping[str, str] | None = None) -> Iterator[None]:
    """Show a page with a message if an `UncorkError` is raised within."""
    try:
        yield
    except UncorkError as error:
        raise PageError(status, heading, str(error), steps) from error


@cache
def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("uncork.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {
        "duration": format_duration,
        "bytes": format_bytes,
        "count": format_count,
        "ago": _ago,
        "minute": lambda at: "unknown" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}",
        "spark_path": spark_path,
        "title": run_title,
        "clock": lambda text: text[:16].replace("T", " "),
    }
    found.globals["spark_height"] = SPARK_HEIGHT
    return found


def _ago(seconds: Any) -> str:
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        number = int(seconds // size)
        if number >= 2 or (number == 1 and size > 1):
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "just now"
