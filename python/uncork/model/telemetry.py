"""The series of a run as measurements of metrics, as OpenTelemetry understands the word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["HistogramPoint", "Metric", "Point", "Telemetry"]

Attribute = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Point:
    """One value, of the time from `start_ns` to `time_ns`, both since 1970; a whole number is exact."""

    value: float
    start_ns: int
    time_ns: int
    attributes: Mapping[str, Attribute]


@dataclass(frozen=True, slots=True)
class HistogramPoint(Point):
    """How often values came to lie where; `value` is their sum.

    ``counts[n]`` values lie above ``bounds[n - 1]`` and not above ``bounds[n]``, so that there is one count
    more than there are bounds. Identity: the sum of `counts` is how many values there were.
    """

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Metric:
    """Values of one thing. `unit` is of UCUM: ``s``, ``By``, ``1/s``.

    `kind` says whether values are as they were seen (a gauge), counts of the time each is of (deltas of a sum
    that only rises), or histograms of that time, of which all points are `HistogramPoint`.
    """

    name: str
    description: str
    unit: str
    kind: Literal["gauge", "delta", "histogram"]
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Telemetry:
    """All series of a run. `resource` says what they are of: service, run, commit, environment."""

    resource: Mapping[str, Attribute]
    metrics: tuple[Metric, ...]
    version: str
