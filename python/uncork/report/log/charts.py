"""The charts of a log: executions a second and statements at once, by template, application and server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from uncork.model.results.log import OTHERS, LogResult, Point
from uncork.model.template_words import short_template
from uncork.model.units import count_words, format_count
from uncork.report.blocks import Layer, Line, LineChart, StackChart
from uncork.report.draw.charts import clock_title
from uncork.report.log.tables import template_id
from uncork.report.words import instant_text, step_text

EXECUTIONS: Final = "executions"
_LEAST_STEPS: Final = 3
_LAYERS: Final = 7
"""Most templates or applications with their own layer: as many as the page has colours."""
_WIDTH: Final = 100


@dataclass(frozen=True, slots=True)
class _Part:
    """A template or application with its executions over time; `link` is the id of its section."""

    name: str
    points: Sequence[Point]
    link: str = ""


@dataclass(frozen=True, slots=True)
class _Quantity:
    """A quantity over time: the sum of what `read` returns, divided by `scale`."""

    title: str
    what: str
    read: Callable[[Point], int]
    scale: int
    note: str = ""


_BUSY: Final = _Quantity(
    "Statements at once",
    "seconds of statement time a second",
    lambda one: one.sum_ns,
    1_000_000_000,
    "; a statement counts when it ends",
)
_RATE: Final = _Quantity("Executions a second", "executions", lambda one: one.count, 1)


def executions_chart(result: LogResult) -> LineChart | None:
    """Return executions per second over time; None when the log is too short."""
    if len(result.series) < _LEAST_STEPS:
        return None
    begin, step = result.series[0].start_us, result.bucket_s * 1_000_000
    steps = (result.series[-1].start_us - begin) // step + 1
    counts = _sums(result.series, begin, step, steps, lambda one: one.count)
    points = tuple(
        (float(place * result.bucket_s), count / result.bucket_s) for place, count in enumerate(counts)
    )
    busiest = max(points, key=lambda point: point[1])
    at = instant_text(begin + round(busiest[0]) * 1_000_000)
    start_s = begin // 1_000_000
    return LineChart(
        title="Executions a second",
        description=f"At most {format_count(busiest[1])} a second, at {at} UTC",
        axis="clock",
        x_title=clock_title(start_s, points[-1][0]),
        y_title=f"executions, in steps of {step_text(result.bucket_s)}",
        unit="number",
        lines=(Line(EXECUTIONS, points),),
        variants=(EXECUTIONS,),
        wide=True,
        from_zero=True,
        start_s=start_s,
    )


def busy_charts(result: LogResult) -> Iterator[StackChart]:
    """Yield concurrent statements over time, by template, application and server, if there are several."""
    yield from _stacks(result, _BUSY)


def rate_charts(result: LogResult) -> Iterator[StackChart]:
    """Yield executions per second over time, by template, application and server, like `busy_charts`."""
    yield from _stacks(result, _RATE)


def _stacks(result: LogResult, quantity: _Quantity) -> Iterator[StackChart]:
    if result.timeline_us is None or _steps(result) < _LEAST_STEPS:
        return
    templates = [
        _Part(short_template(template.text, _WIDTH), template.series, template_id(template))
        for template in result.templates[:_LAYERS]
        if template.series
    ]
    left = len(result.templates) + result.templates_more - len(templates)
    yield _stack(result, quantity, "template", templates, count_words(left, "other template"))
    if len(result.application_series) > 1:
        applications = [
            _Part(series.name or "(unknown)", series.points)
            for series in result.application_series
            if series.name != OTHERS
        ]
        yield _stack(result, quantity, "application", applications[:_LAYERS], "other applications")
    if len(result.server_series) > 1:
        servers = [_Part(series.name or "(unnamed)", series.points) for series in result.server_series]
        yield _stack(result, quantity, "server", servers[:_LAYERS], "other servers")


def _stack(result: LogResult, quantity: _Quantity, by: str, parts: Sequence[_Part], rest: str) -> StackChart:
    begin, step_s = result.timeline_us or 0, result.template_bucket_s
    step, steps = step_s * 1_000_000, _steps(result)
    unit = step_s * quantity.scale

    def a_second(sums: Sequence[int]) -> tuple[float, ...]:
        return tuple(value / unit for value in sums)

    whole = _sums(result.series, begin, step, steps, quantity.read)
    named = [_sums(part.points, begin, step, steps, quantity.read) for part in parts]
    others = [max(0, total - sum(of_one)) for total, *of_one in zip(whole, *named, strict=True)]
    layers = [Layer(part.name, a_second(sums), part.link) for part, sums in zip(parts, named, strict=True)]
    if any(others) or not layers:
        layers.append(Layer(rest, a_second(others), rest=True))
    most = max(whole)
    at = instant_text(begin + whole.index(most) * step)
    return StackChart(
        title=f"{quantity.title}, by {by}",
        description=f"At most {format_count(most / unit)}, at {at} UTC",
        y_title=f"{quantity.what}, in steps of {step_text(step_s)}{quantity.note}",
        start_s=begin // 1_000_000,
        step_s=step_s,
        layers=tuple(layers),
    )


def _steps(result: LogResult) -> int:
    return max((len(template.timeline) for template in result.templates), default=0)


def _sums(
    points: Sequence[Point], begin: int, step: int, steps: int, read: Callable[[Point], int]
) -> list[int]:
    """Return the sum of the points' values per step of time; points outside the steps are ignored."""
    sums = [0] * steps
    for point in points:
        place = (point.start_us - begin) // step
        if 0 <= place < steps:
            sums[place] += read(point)
    return sums
