"""A table of metrics as CSV: one row per value, with its time, and one run per time."""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from uncork.model.records import Record
from uncork.model.results.figure import Direction, Figure, FigureUnit, ImportedRun
from uncork.profile.imported.parts import mean_figure, shown

_REQUIRED: Final = ("time", "metric", "value")
COLUMNS: Final = (*_REQUIRED, "commit", "branch", "of", "unit", "better")
_SEPARATORS: Final = (",", ";", "\t")
_TIMES: Final = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
_SIZES: Final = {
    **{"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12},
    **{"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40},
}
_RATES: Final = ("/s", "ops/s", "req/s", "tx/s", "tps", "rps", "qps")
_UNITS: Final[Mapping[str, tuple[FigureUnit, float, Direction]]] = {
    "": ("", 1.0, ""),
    "%": ("share", 0.01, ""),
    **{name: ("ns", factor, "lower") for name, factor in _TIMES.items()},
    **{name: ("B", factor, "lower") for name, factor in _SIZES.items()},
    **{name: ("/s", 1.0, "higher") for name in _RATES},
}
"""The base unit of each unit, its factor, and which direction is better unless the row says so."""
_DIRECTIONS: Final[Mapping[str, Direction]] = {"lower": "lower", "higher": "higher", "": ""}
_QUANTILE: Final = re.compile(r"p\d{1,2}(?:\.\d+)?")
_EPOCH: Final = range(10**9, 10**10)


class _Row(Record):
    """One value, in the base unit `unit`."""

    time: datetime
    commit: str
    branch: str
    of: str
    metric: str
    value: float
    unit: FigureUnit
    better: Direction


def read(text: str) -> list[ImportedRun] | None:
    """Return a run for each time and commit of a table; None if the text is no table with these columns.

    Several values of one metric with the same time and commit are samples; their mean is the metric. Raises
    ValueError if a column or a value is wrong; the message names the line.
    """
    head = text.lstrip("\ufeff").partition("\n")[0]
    fitting = (each for each in _SEPARATORS if set(_REQUIRED) <= set(_names(head, each)))
    separator = next(fitting, None)
    if separator is None:
        return None
    columns = _names(head, separator)
    for name in columns:
        if name not in COLUMNS:
            raise ValueError(f"line 1: unknown column {shown(name)}; the columns are {', '.join(COLUMNS)}")
    groups: dict[tuple[datetime, str, str], list[_Row]] = {}
    for row in _rows(text, separator, columns):
        groups.setdefault((row.time, row.commit, row.branch), []).append(row)
    return [_run(rows) for rows in groups.values()]


def _names(head: str, separator: str) -> list[str]:
    return [name.strip().strip('"').lower() for name in head.strip().split(separator)]


def _rows(text: str, separator: str, columns: list[str]) -> Iterator[_Row]:
    reader = csv.reader(io.StringIO(text.lstrip("\ufeff")), delimiter=separator)
    next(reader)
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        place = f"line {reader.line_num}"
        if len(cells) != len(columns):
            raise ValueError(f"{place} has {len(cells)} columns, but the first line has {len(columns)}")
        row = {name: cell.strip() for name, cell in zip(columns, cells, strict=True)}
        try:
            yield _row(row)
        except ValueError as error:
            raise ValueError(f"{place}: {error}") from error


def _row(row: Mapping[str, str]) -> _Row:
    unit = row.get("unit", "")
    if unit not in _UNITS:
        known = ", ".join(filter(None, _UNITS))
        raise ValueError(f'"unit" is {shown(unit)}; expecting one of {known}, or nothing')
    base, factor, usual = _UNITS[unit]
    better = row.get("better", "")
    if better not in _DIRECTIONS:
        raise ValueError(f'"better" is {shown(better)}; expecting lower, higher, or nothing')
    if not row["metric"]:
        raise ValueError('"metric" is empty; expecting the name of a metric, such as p99')
    return _Row(
        time=_time(row["time"]),
        commit=row.get("commit", ""),
        branch=row.get("branch", ""),
        of=row.get("of", ""),
        metric=row["metric"],
        value=_number(row["value"]) * factor,
        unit=base,
        better=_DIRECTIONS[better] or usual or _by_name(row["metric"]),
    )


def _by_name(metric: str) -> Direction:
    """Return which direction is better for a name that says so; an empty text for others."""
    name = metric.lower()
    if _QUANTILE.fullmatch(name) or name.startswith(("latency", "duration")):
        return "lower"
    return "higher" if name == "throughput" or name in _RATES else ""


def _time(text: str) -> datetime:
    try:
        if text.isascii() and text.isdigit() and int(text) in _EPOCH:
            return datetime.fromtimestamp(int(text), UTC)
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(
            f'"time" is {shown(text)}; expecting a time such as 2026-05-31T08:30, or seconds since 1970'
        ) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _number(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f'"value" is {shown(text)}; expecting a number: leave out rows without one')
    return found


def _run(rows: list[_Row]) -> ImportedRun:
    samples: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        samples.setdefault((row.of, row.metric), []).append(row)
    first = rows[0]
    return ImportedRun(
        tool="CSV",
        question="CSV: metrics by time",
        figures=tuple(_figure(same) for same in samples.values()),
        started_at=first.time.isoformat(timespec="seconds"),
        commit=first.commit,
        branch=first.branch,
        digest=hashlib.sha256(repr(rows).encode()).hexdigest(),
    )


def _figure(rows: list[_Row]) -> Figure:
    first = rows[0]
    for row in rows:
        if (row.unit, row.better) != (first.unit, first.better):
            at = f"{first.time:%Y-%m-%d %H:%M}"
            raise ValueError(f"{shown(first.metric)} at {at} has rows in different units")
    return mean_figure(first.of, first.metric, [row.value for row in rows], first.unit, first.better)
