"""The JSON output of pgBadger (-o FILE.json): the statements of a log, in total and by template."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import time

__all__ = ["read"]

_MOST: Final = 20
_SHORT: Final = 80


def read(data: Any) -> ImportedRun | None:
    """Return the results of pgBadger; None if the data is not its output.

    Since version 12, values are nested under the name of an instance, "postgres"; before, they were not.

    Raises:
        KeyError, TypeError, ValueError: if a value is missing, or not a number.
    """
    overall = data.get("overall_stat") if isinstance(data, dict) else None
    if not isinstance(overall, dict) or "normalyzed_info" not in data:
        return None
    nested = next(
        (one for one in overall.values() if isinstance(one, dict) and "queries_number" in one), None
    )
    total, templates = nested or overall, data["normalyzed_info"]
    if nested is not None:
        name = next(key for key, one in overall.items() if one is nested)
        templates = templates.get(name, {})
    first, last = (_instant(total.get(key)) for key in ("first_query_ts", "last_query_ts"))
    seconds = (last - first).total_seconds() if first and last else 0.0
    return ImportedRun(
        tool="pgBadger",
        question="pgBadger: statements of a log",
        figures=(*_whole(total, seconds), *_templates(templates)),
        started_at=first.isoformat(timespec="seconds") if first else None,
    )


def _whole(total: Mapping[str, Any], seconds: float) -> Iterator[Figure]:
    count, found = int(total.get("queries_number") or 0), total.get("queries_duration") or 0
    spent = float(found.get("execute", 0)) if isinstance(found, dict) else float(found)
    if count and seconds > 0:
        yield Figure("", "executions", count / seconds, "/s", "")
        yield Figure("", "time in statements", spent / 1e3 / seconds, "", "lower")
    if count and spent:
        yield time("mean", spent / count * 1e6)
    errors = int(total.get("errors_number") or 0)
    if count:
        yield Figure("", "errors", errors, "", "lower", "exact")


def _templates(templates: Mapping[str, Any]) -> Iterator[Figure]:
    ordered = sorted(templates.items(), key=lambda item: -float(item[1].get("duration") or 0))
    for text, facts in ordered[:_MOST]:
        count, spent = int(facts["count"]), float(facts.get("duration") or 0)
        flat = " ".join(text.split()).rstrip(";")
        if count and spent:
            yield time("mean", spent / count * 1e6, flat if len(flat) <= _SHORT else f"{flat[: _SHORT - 1]}…")


def _instant(text: str | None) -> datetime | None:
    """Parse a time, which pgBadger writes in the time zone of the log; assume UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None
