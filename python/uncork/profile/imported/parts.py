"""Helpers that the parsers of several tools share."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from uncork.model.results.figure import Direction, Figure, FigureUnit

_UNITS: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def time_ns(text: str) -> float:
    """Parse a time as load generators write it: ``63us``, ``1.34ms``.

    Raises:
        ValueError: if it is not a time.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(f'"{text}" is not a time')
    return float(found[1]) * _UNITS[found[2]]


def time(name: str, nanoseconds: float, subject: str = "") -> Figure:
    """Return a metric that is a time, for which lower is better."""
    return Figure(subject, name, nanoseconds, "ns", "lower")


def is_known(quantile: float, count: int) -> bool:
    """Say whether any of `count` values lies beyond a quantile; otherwise it is just the largest."""
    return count * (1.0 - quantile) >= 1.0 - 1e-9


def throughput(value: float) -> Figure:
    """Return the metric for operations per second."""
    return Figure("", "throughput", value, "/s", "higher")


def share(name: str, count: int, of: int, better: Direction = "lower") -> list[Figure]:
    """Return a metric for a share of a count; an empty list if the count is 0."""
    return [Figure("", name, count / of, "share", better, "share", count=count, of=of)] if of else []


def mean_figure(
    subject: str, name: str, values: Sequence[float], unit: FigureUnit, better: Direction
) -> Figure:
    """Return the mean of samples; if there are several, all positive, with the standard error of its log."""
    mean, within = math.fsum(values) / len(values), None
    if len(values) > 1 and min(values) > 0:
        logs = [math.log(value) for value in values]
        middle = math.fsum(logs) / len(logs)
        squares = math.fsum((log - middle) ** 2 for log in logs)
        within = math.sqrt(squares / (len(logs) - 1) / len(logs))
    return Figure(subject, name, mean, unit, better, within=within)
