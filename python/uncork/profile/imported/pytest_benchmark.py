"""The JSON of pytest-benchmark, with one subject per test and all times in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from uncork.model.results.figure import Figure
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported.parts import time
from uncork.profile.imported.strict import Value

__all__ = ["read"]


def read(data: Any) -> ImportedRun | None:
    """Return the results of pytest-benchmark; None if the data is not its output.

    Raises:
        ValueError: if a value is missing or wrong.
    """
    if not isinstance(data, dict) or not {"benchmarks", "machine_info"} <= set(data):
        return None
    document = Value(data)
    benchmarks = document["benchmarks"].elements()
    commit = document.get("commit_info")
    project = None if commit is None else commit.get("project")
    names = [benchmark["fullname"].text() for benchmark in benchmarks]
    return ImportedRun(
        tool="pytest-benchmark",
        question=f"pytest-benchmark: {', '.join(names[:3])}",
        figures=tuple(figure for benchmark in benchmarks for figure in _figures(benchmark)),
        asked={"project": project.text()} if project is not None else {},
        environment=_environment(document["machine_info"]),
        started_at=_begun(document),
        commit=_commit(commit),
        branch=_member(commit, "branch") if _member(commit, "branch") != "(detached head)" else "",
    )


def _figures(benchmark: Value) -> Iterator[Figure]:
    subject, stats = benchmark["fullname"].text(), benchmark["stats"]
    mean, rounds = stats["mean"].number(0.0), stats["rounds"].count()
    if mean > 0:
        deviation = stats["stddev"].number(0.0)
        # Rounds of one process resemble each other, so this error does not cover how processes differ.
        within = deviation / math.sqrt(rounds) / mean if rounds > 1 and deviation > 0 else None
        yield Figure(subject, "mean", mean * 1e9, "ns", "lower", within=within)
    for key, name in (("median", "p50"), ("min", "fastest")):
        value = stats.get(key)
        if value is not None and value.number(0.0) > 0:
            yield time(name, value.number() * 1e9, subject)


def _environment(machine: Value) -> dict[str, dict[str, str]]:
    cpu = machine.get("cpu")
    facts = {
        "processor": _member(cpu, "brand_raw") or _member(cpu, "brand"),
        "architecture": _member(machine, "machine"),
    }
    versions = [_member(machine, name) for name in ("python_implementation", "python_version")]
    python = " ".join(filter(None, versions))
    sections = {"machine": {key: value for key, value in facts.items() if value}}
    return sections | ({"language": {"version": python}} if python else {})


def _begun(document: Value) -> str | None:
    """Return when the tests ran; the time is in UTC unless it has an offset."""
    at = document.get("datetime")
    if at is None:
        return None
    try:
        found = datetime.fromisoformat(at.text())
    except ValueError as error:
        raise at.wrong("a time such as 2026-05-31T08:30:00") from error
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return found.isoformat(timespec="seconds")


def _commit(commit: Value | None) -> str:
    found = _member(commit, "id")
    dirty = None if commit is None else commit.get("dirty")
    if found in ("", "unknown", "unversioned"):
        return ""
    return f"{found}-dirty" if dirty is not None and dirty.found is True else found


def _member(value: Value | None, key: str) -> str:
    """Return a text that may be missing."""
    found = None if value is None else value.get(key)
    return "" if found is None else found.text()
