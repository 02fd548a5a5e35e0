"""The context of all pages: runs, reports, settings and templates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from uncork import __version__
from uncork.analysis.runs.comparable_series import ComparableSeries
from uncork.model.units import format_bytes, format_count, format_duration
from uncork.report.draw.spark import SPARK_HEIGHT, spark_path
from uncork.report.runs.titles import run_title
from uncork.serve import access, assets
from uncork.serve.headlines import HeadlineCache
from uncork.serve.metrics import Metrics
from uncork.serve.named_figures import NamedFigures
from uncork.serve.report_cache import ReportCache
from uncork.serve.run_cache import RunCache
from uncork.serve.settings import Settings


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
