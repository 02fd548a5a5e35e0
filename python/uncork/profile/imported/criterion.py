"""The folder that Criterion.rs writes, ``target/criterion``: one benchmark per ``new`` folder in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Final

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import time
from uncork.profile.imported.strict import Value

__all__ = ["FILES", "read"]

FILES: Final = ("benchmark.json", "estimates.json")
"""The files of one benchmark."""


def read(files: Mapping[str, str]) -> ImportedRun | None:
    """Return the newest results in a folder of Criterion; None if there are none.

    `files` holds the texts of all files called as in `FILES`, by their path with ``/``. Results of earlier
    runs, in folders other than ``new``, are left out. Times are in nanoseconds. The standard errors are from
    samples of one process, so they do not cover how processes differ.

    Raises:
        ValueError: if a file is missing, is not JSON, or has a wrong value.
    """
    folders = sorted({path.rpartition("/")[0] for path in files})
    newest = [folder for folder in folders if folder.rpartition("/")[2] == "new"]
    if not newest:
        return None
    figures: list[Figure] = []
    names = []
    for folder in newest:
        benchmark, estimates = (_document(files, f"{folder}/{name}") for name in FILES)
        names.append(benchmark["full_id"].text())
        figures += _figures(names[-1], benchmark, estimates)
    return ImportedRun(
        tool="Criterion", question=f"Criterion: {', '.join(names[:3])}", figures=tuple(figures)
    )


def _document(files: Mapping[str, str], path: str) -> Value:
    if path not in files:
        raise ValueError(f"{path} is missing")
    try:
        return Value(json.loads(files[path]), f"{path}: ")
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON: {error}") from error


def _figures(subject: str, benchmark: Value, estimates: Value) -> Iterator[Figure]:
    mean = estimates["mean"]["point_estimate"].number(0.0)
    if mean <= 0:
        return
    error = estimates["mean"]["standard_error"].number(0.0)
    yield Figure(subject, "mean", mean, "ns", "lower", within=error / mean or None)
    median = estimates["median"]["point_estimate"].number(0.0)
    if median > 0:
        yield time("p50", median, subject)
    amount = benchmark.get("throughput")
    for unit, value in amount.items() if amount is not None else ():
        if unit in ("Elements", "Bytes", "BytesDecimal") and value.number(0.0) > 0:
            rate = value.number() * 1e9 / mean
            if unit == "Elements":
                yield Figure(subject, "throughput", rate, "/s", "higher")
            else:
                yield Figure(subject, "bytes a second", rate, "B", "higher")
