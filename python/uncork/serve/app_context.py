"""The context of all pages: runs, reports, settings and templates."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
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
from uncork.report.runs.titles import run_title
from uncork.serve import access, assets
from uncork.serve.headlines import HeadlineCache
from uncork.serve.metrics import Metrics
from uncork.serve.report_cache import ReportCache
from uncork.serve.run_cache import RunCache
from uncork.serve.settings import Settings
from uncork.store.remote.mirrors import fetched

# ---- the metrics of named runs, such as the baseline, for Prometheus; each run is read once ----


_MOST: Final = 50
"""Named runs whose metrics are served, the newest first."""


class NamedFigures:
    """The metrics of named runs. Use it in one event loop only."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], RunFigures | None] = {}

    async def of(self, runs: Sequence[StoredRun]) -> list[tuple[str, RunFigures]]:
        """Return each name with its run's metrics, in the order of names; runs without any are left out."""
        named = sorted((run for run in runs if _counts(run)), key=lambda run: run.started_at, reverse=True)
        named = named[:_MOST]
        missing = [run for run in named if (run.id, run.stamp) not in self._kept]
        if missing:
            self._kept |= await asyncio.to_thread(_read, missing)
        keys = {(run.id, run.stamp) for run in named}
        self._kept = {key: kept for key, kept in self._kept.items() if key in keys}
        return sorted(_by_name(named, self._kept), key=lambda pair: pair[0])


def _by_name(
    runs: Sequence[StoredRun], kept: dict[tuple[str, str], RunFigures | None]
) -> Iterator[tuple[str, RunFigures]]:
    for run in runs:
        figures = kept[run.id, run.stamp]
        if figures is not None:
            yield from ((name, figures) for name in run.names)


def _counts(run: StoredRun) -> bool:
    return bool(run.names) and run.kind in FIGURED and run.status == "complete"


def _read(runs: Sequence[StoredRun]) -> dict[tuple[str, str], RunFigures | None]:
    found: dict[tuple[str, str], RunFigures | None] = dict.fromkeys((run.id, run.stamp) for run in runs)
    by_folder = {run.folder: run for run in runs}
    with suppress(UncorkError):  # the address cannot be reached: what was read so far is served
        for folder in fetched(list(by_folder)):
            with suppress(UncorkError):  # damaged
                run = by_folder[folder]
                found[run.id, run.stamp] = remembered_figures(folder)
    return found


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
    headlines: HeadlineCache = field(default_factory=HeadlineCache)
    named: NamedFigures = field(default_factory=NamedFigures)


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
            assets=assets.ADDRESSES,
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
        "minute": _minute,
        "spark_path": spark_path,
        "title": run_title,
        "clock": lambda text: text[:16].replace("T", " "),
    }
    found.globals["spark_height"] = SPARK_HEIGHT
    return found


def _minute(at: datetime | None) -> str:
    return "unknown" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _ago(seconds: Any) -> str:
    """Return in words how long ago something was."""
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second")):
        number = int(seconds // size)
        if number >= 2 or (number == 1 and size > 1):
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "just now"
