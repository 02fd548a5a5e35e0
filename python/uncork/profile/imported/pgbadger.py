"""The JSON output of pgBadger (-o FILE.json): the statements of a log, in total and by template."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import time
from uncork.profile.imported.strict import Value

__all__ = ["read"]

_MOST: Final = 20
_SHORT: Final = 80


def read(data: Any) -> ImportedRun | None:
    """Return the results of pgBadger; None if the data is not its output.

    Since version 12, values are nested under the name of an instance, "postgres"; before, they were not.

    Raises:
        ValueError: if a value is missing or wrong.
    """
    overall = data.get("overall_stat") if isinstance(data, dict) else None
    if not isinstance(overall, dict) or "normalyzed_info" not in data:
        return None
    document = Value(data)
    total, templates = document["overall_stat"], document.get("normalyzed_info")
    for name, value in document["overall_stat"].items():
        if isinstance(value.found, dict) and "queries_number" in value.found:
            total, templates = value, document["normalyzed_info"].get(name)
            break
    first, last = (_instant(total.get(key)) for key in ("first_query_ts", "last_query_ts"))
    seconds = (last - first).total_seconds() if first and last else 0.0
    return ImportedRun(
        tool="pgBadger",
        question="pgBadger: statements of a log",
        figures=(*_whole(total, seconds), *(() if templates is None else _templates(templates))),
        started_at=first.isoformat(timespec="seconds") if first else None,
    )


def _whole(total: Value, seconds: float) -> Iterator[Figure]:
    count, durations = int(_number(total, "queries_number")), total.get("queries_duration")
    nested = durations is not None and isinstance(durations.found, dict)
    spent = _number(durations, "execute") if nested and durations else _number(total, "queries_duration")
    if count and seconds > 0:
        yield Figure("", "executions", count / seconds, "/s", "")
        yield Figure("", "time in statements", spent / 1e3 / seconds, "", "lower")
    if count and spent:
        yield time("mean", spent / count * 1e6)
    errors = int(_number(total, "errors_number"))
    if count:
        yield Figure("", "errors", errors, "", "lower", "exact")


def _templates(templates: Value) -> Iterator[Figure]:
    spent = {text: (_number(facts, "duration"), facts) for text, facts in templates.items()}
    ordered = sorted(spent.items(), key=lambda item: -item[1][0])
    for text, (duration, facts) in ordered[:_MOST]:
        count = int(_number(facts, "count"))
        flat = " ".join(text.split()).rstrip(";")
        if count and duration:
            yield time(
                "mean", duration / count * 1e6, flat if len(flat) <= _SHORT else f"{flat[: _SHORT - 1]}…"
            )


def _number(value: Value, key: str) -> float:
    """Return a number of at least 0, which pgBadger may write as text; 0 if it is missing or empty."""
    found = value.get(key)
    if found is None or found.found == "":
        return 0.0
    if isinstance(found.found, str):
        try:
            return Value(float(found.found), found.path).number(0.0)
        except ValueError as error:
            raise found.wrong("a number") from error
    return found.number(0.0)


def _instant(value: Value | None) -> datetime | None:
    """Parse a time, which pgBadger writes in the time zone of the log; assume UTC."""
    if value is None or value.found == "":
        return None
    try:
        return datetime.fromisoformat(value.text()).replace(tzinfo=UTC)
    except ValueError as error:
        raise value.wrong("a time such as 2026-05-31 08:30:00") from error
