"""The time series of a run as metrics in OpenTelemetry's sense."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from uncork.model.records import Record

Attribute = str | int | float | bool


class Point(Record):
    """One value for the time from `start_ns` to `time_ns`, both since 1970; a whole number is exact."""

    value: float
    start_ns: int
    time_ns: int
    attributes: Mapping[str, Attribute]


class HistogramPoint(Point):
    """A histogram of values; `value` is their sum.

    ``counts[n]`` values are above ``bounds[n - 1]`` and at most ``bounds[n]``, so there is one count more
    than there are bounds. Identity: the sum of `counts` is the number of values.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    least: float
    most: float


class Metric(Record):
    """The values of one metric. `unit` is a UCUM code: ``s``, ``By``, ``1/s``.

    `kind` says whether values are observations (a gauge), counts for each period (deltas of a monotonic sum),
    or histograms of each period, of which all points are `HistogramPoint`.
    """

    name: str
    description: str
    unit: str
    kind: Literal["gauge", "delta", "histogram"]
    points: tuple[Point, ...]


class Telemetry(Record):
    """All time series of a run. `resource` describes their origin: service, run, commit, environment."""

    resource: Mapping[str, Attribute]
    metrics: tuple[Metric, ...]
    version: str
