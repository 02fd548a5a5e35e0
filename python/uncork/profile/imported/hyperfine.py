"""The JSON export of hyperfine, with one subject per command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import mean_figure, time

__all__ = ["read"]


def read(data: Any) -> ImportedRun | None:
    """Return the results of hyperfine; None if the data is not its export.

    Raises:
        KeyError, TypeError, ValueError: if a value is missing, or not a number.
    """
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, list) or not results or "command" not in results[0]:
        return None
    figures = [figure for result in results for figure in _figures(result)]
    commands = [str(result["command"]) for result in results]
    return ImportedRun(
        tool="hyperfine",
        question=f"hyperfine: {', '.join(commands[:3])}",
        figures=tuple(figures),
        asked={"commands": "; ".join(commands)},
    )


def _figures(result: dict[str, Any]) -> Iterator[Figure]:
    subject = str(result["command"])
    times = [float(value) * 1e9 for value in result.get("times") or ()]
    if len(times) > 1:
        yield mean_figure(subject, "mean", times, "ns", "lower")
    else:
        yield time("mean", float(result["mean"]) * 1e9, subject)
    if result.get("median"):
        yield time("p50", float(result["median"]) * 1e9, subject)
    spent = float(result.get("user") or 0) + float(result.get("system") or 0)
    if spent:
        yield time("processor time each", spent * 1e9, subject)
    codes = result.get("exit_codes") or ()
    if codes:
        failed = sum(code != 0 for code in codes)
        yield Figure(
            subject, "failed", failed / len(codes), "share", "lower", "share", count=failed, of=len(codes)
        )
