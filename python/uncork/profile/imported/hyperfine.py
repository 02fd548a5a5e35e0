"""The JSON export of hyperfine, with one subject per command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import mean_figure, time
from uncork.profile.imported.strict import Value


def read(data: Any) -> ImportedRun | None:
    """Return the results of hyperfine; None if the data is not its export.

    Raises:
        ValueError: if a value is missing or wrong.
    """
    results = data.get("results") if isinstance(data, dict) else None
    if not (
        isinstance(results, list) and results and isinstance(results[0], dict) and "command" in results[0]
    ):
        return None
    listed = Value(data)["results"].elements()
    commands = [result["command"].text() for result in listed]
    return ImportedRun(
        tool="hyperfine",
        question=f"hyperfine: {', '.join(commands[:3])}",
        figures=tuple(figure for result in listed for figure in _figures(result)),
        asked={"commands": "; ".join(commands)},
    )


def _figures(result: Value) -> Iterator[Figure]:
    subject = result["command"].text()
    listed = result.get("times")
    times = [] if listed is None else [element.number(0.0) * 1e9 for element in listed.elements()]
    several = len(times) > 1 and sum(times) > 0
    mean = 0.0 if several and result.get("mean") is None else result["mean"].number(0.0)
    if several:
        yield mean_figure(subject, "mean", times, "ns", "lower")
    elif mean > 0:
        yield time("mean", mean * 1e9, subject)
    if _number(result, "median") > 0:
        yield time("p50", _number(result, "median") * 1e9, subject)
    spent = _number(result, "user") + _number(result, "system")
    if spent > 0:
        yield time("processor time each", spent * 1e9, subject)
    codes = result.get("exit_codes")
    found = [] if codes is None else [code.found for code in codes.elements()]
    if found:
        failed = sum(code != 0 for code in found)  # null: ended by a signal
        yield Figure(
            subject, "failed", failed / len(found), "share", "lower", "share", count=failed, of=len(found)
        )


def _number(result: Value, key: str) -> float:
    """Return a number of at least 0 that may be missing."""
    found = result.get(key)
    return 0.0 if found is None else found.number(0.0)
