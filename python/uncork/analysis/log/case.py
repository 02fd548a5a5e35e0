"""Build the result of a case's log half from its two logs. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import pyarrow as pa

from uncork.analysis.log.comparison import compare_logs
from uncork.analysis.log.half import LogHalf
from uncork.model.results.case_logs import CaseLogs, LogFigure, SentBatch
from uncork.model.results.log import LogResult
from uncork.model.results.log_comparison import Part, Period

__all__ = ["MEASURES", "case_logs_result", "compared_periods"]

Bounds = tuple[int, int]
"""A beginning and an exclusive end, in microseconds since 1970."""


def compared_periods(before: SentBatch, after: SentBatch) -> tuple[Bounds, Bounds]:
    """Return the compared period of each log: from its batch's beginning, as long as the longer batch took.

    No period extends beyond the end of its background. Logs truncate times to milliseconds, so beginnings are
    truncated too.
    """
    length = max(before.length_us, after.length_us)

    def bounds(sent: SentBatch) -> Bounds:
        return sent.begin_us // 1000 * 1000, min(sent.begin_us + length, sent.until_us) + 1

    return bounds(before), bounds(after)


def case_logs_result(
    half: LogHalf,
    levels: tuple[tuple[str, str], ...],
    rows: int,
    *,
    sent: tuple[SentBatch, SentBatch],
    idle: pa.Table,
    logs: tuple[LogResult, LogResult],
) -> CaseLogs:
    """Build the result of both logs for batches of `rows` rows, with `levels` of the experiment's factors.

    `idle` are the origins of the executions before the batch; `logs` cover the periods of `compared_periods`.
    """
    lengths = [(end - begin) / 1e6 for begin, end in compared_periods(*sent)]
    result = CaseLogs(
        case=half.case,
        question=half.question,
        source=half.source,
        levels=levels,
        rows=rows,
        updater=half.updater,
        background=half.background,
        before=sent[0],
        after=sent[1],
        idle_mean_ns=_mean_ns(idle, half.background),
        answer="",
        figures=(),
        comparison=compare_logs(*logs, seconds=(lengths[0], lengths[1])),
    )
    figures = tuple(_figure(result, entry) for entry in half.figures)
    return replace(result, figures=figures)


def _mean_ns(origins: pa.Table, application: str) -> float | None:
    rows = [row for row in origins.to_pylist() if row["application"] == application]
    count = sum(row["executions"] for row in rows)
    return sum(row["sum_us"] for row in rows) * 1000 / count if count else None


# ---- published figures ----


@dataclass(frozen=True, slots=True)
class _Measure:
    unit: Literal["ns", "share", "count"]
    read: Callable[[CaseLogs], tuple[float | None, float | None]]


def _of_both(read: Callable[[Period], float | None]) -> Callable[[CaseLogs], Any]:
    return lambda result: (read(result.comparison.before), read(result.comparison.after))


def _of_updater(read: Callable[[Part], float | None]) -> Callable[[CaseLogs], Any]:
    def pair(result: CaseLogs) -> tuple[float | None, float | None]:
        found = result.comparison.application(result.updater)
        return (None, None) if found is None else (read(found.before), read(found.after))

    return pair


def _of_background(result: CaseLogs) -> tuple[float | None, float | None]:
    found = result.comparison.application(result.background)
    return result.idle_mean_ns, None if found is None else found.before.mean_ns


MEASURES: Final[Mapping[str, _Measure]] = {
    "executions": _Measure("count", _of_both(lambda period: float(period.executions))),
    "mean": _Measure("ns", _of_both(lambda period: period.mean_ns)),
    "executions of the updater": _Measure("count", _of_updater(lambda part: float(part.executions))),
    "share of executions": _Measure("share", _of_updater(lambda part: part.of_executions)),
    "mean of the background, idle and in the spike": _Measure("ns", _of_background),
}
"""Metrics of the logs that may stand beside a published number: before and after, except for the last."""


def _figure(result: CaseLogs, entry: Mapping[str, Any]) -> LogFigure:
    measure = MEASURES[entry["measure"]]
    return LogFigure(
        name=entry["name"],
        before=entry["before"],
        after=entry["after"],
        unit=measure.unit,
        measured=measure.read(result),
        note=entry["note"],
    )
