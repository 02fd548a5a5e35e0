"""Metrics, and JSON that is read strictly, for the parsers of several tools."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from uncork.model.records import Record
from uncork.model.results.figure import Direction, Figure, FigureUnit

_UNITS: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9, "h": 3600e9}
_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def time_ns(text: str) -> float:
    """Parse a time as load generators write it: ``63us``, ``1.34ms``.

    Raises ValueError if it is not a time.
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


def share(name: str, count: int, of: int, better: Direction = "lower", *, subject: str = "") -> list[Figure]:
    """Return a metric for a share of a count; an empty list if the count is 0."""
    return [Figure(subject, name, count / of, "share", better, "share", count=count, of=of)] if of else []


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


# ---- JSON of other tools, read strictly: a wrong value is reported with its place ----

_SHOWN: Final = 40


def shown(found: object) -> str:
    """Return a value as JSON, shortened, for a message."""
    text = json.dumps(found, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class Value(Record):
    """A value of a JSON document, and the path to it, such as ``results[2].mean``.

    It is false if it is missing or null. All methods raise ValueError if the value has another type; the
    message names the path.
    """

    found: Any
    path: str = ""

    def __bool__(self) -> bool:
        return self.found is not None

    def __getitem__(self, key: str) -> Value:
        """Return a member of an object; raises ValueError if it is missing."""
        members = self._members()
        if key not in members:
            raise ValueError(f'"{self._at(key)}" is missing')
        return Value(members[key], self._at(key))

    def get(self, key: str) -> Value:
        """Return a member of an object; a missing one has no members either."""
        return Value(self._members().get(key) if self else None, self._at(key))

    def items(self) -> Iterator[tuple[str, Value]]:
        """Yield the members of an object."""
        return ((key, Value(found, self._at(key))) for key, found in self._members().items())

    def elements(self) -> list[Value]:
        """Return the elements of a list."""
        if not isinstance(self.found, list):
            raise self.wrong("a list")
        return [Value(found, f"{self.path}[{place}]") for place, found in enumerate(self.found)]

    def number(self, least: float = -math.inf) -> float:
        """Return a finite number of at least `least`."""
        found = self.found
        if isinstance(found, bool) or not isinstance(found, int | float):
            raise self.wrong("a number")
        try:
            number = float(found)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            raise self.wrong("a finite number")
        if number < least:
            raise self.wrong(f"a number of at least {least:g}")
        return number

    def count(self) -> int:
        """Return a whole number of at least 0."""
        number = self.number(0.0)
        if number != int(number):
            raise self.wrong("a whole number")
        return int(number)

    def number_of(self, key: str) -> float:
        """Return a member that is a number of at least 0; 0 if it is missing or null."""
        found = self.get(key)
        return found.number(0.0) if found else 0.0

    def count_of(self, key: str) -> int:
        """Return a member that is a whole number of at least 0; 0 if it is missing or null."""
        found = self.get(key)
        return found.count() if found else 0

    def text(self) -> str:
        """Return a text."""
        if not isinstance(self.found, str):
            raise self.wrong("a text")
        return self.found

    def wrong(self, expected: str) -> ValueError:
        """Return the error that something else was expected here."""
        return ValueError(f'"{self.path or "the document"}" is {shown(self.found)}; expecting {expected}')

    def _members(self) -> dict[str, Any]:
        if not isinstance(self.found, dict):
            raise self.wrong("an object")
        return self.found

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key
