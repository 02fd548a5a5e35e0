"""Detect which tool wrote a file, and read its results."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from uncork.errors import UsageError
from uncork.model.results.imported import ImportedRun
from uncork.profile.imported import gobench, h2load, hyperfine, k6, pgbadger, pgbench, pgbench_log, wrk

__all__ = ["KNOWN", "read_result"]

KNOWN: Final = (
    "pgbench (output, or logs of -l), h2load, wrk, k6 (JSON summary), hyperfine (JSON), Go's benchmarks and "
    "pgBadger (JSON)"
)
_OF_JSON: Final[tuple[Callable[[Any], ImportedRun | None], ...]] = (
    hyperfine.read,
    k6.read,
    pgbadger.read,
)
_OF_TEXT: Final[tuple[Callable[[str], ImportedRun | None], ...]] = (
    pgbench.read,
    wrk.read,
    h2load.read,
    gobench.read,
    pgbench_log.read,
)


def read_result(text: str, file: str) -> ImportedRun:
    """Return the results in a file of another tool.

    Raises:
        UsageError: if the format is unknown, the file is damaged, or it contains no metrics.
    """
    if not text.strip():
        raise UsageError(f"{file} is empty")
    try:
        found = _of_json(text, file) if text.lstrip().startswith(("{", "[")) else _of_text(text)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UsageError(f"{file} is damaged: {_reason(error)}") from error
    if found is None:
        raise UsageError(f"{file} is not a result that uncork can import; it reads results of {KNOWN}")
    if not found.figures:
        raise UsageError(
            f"{file} was written by {found.tool}, but contains no metrics; the tool may have ended early"
        )
    return found


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error) if isinstance(error, ValueError) else f"unexpected value ({error})"


def _of_json(text: str, file: str) -> ImportedRun | None:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{file} is damaged: it begins like JSON, but is not valid: {error}") from error
    return next((found for read in _OF_JSON if (found := read(data)) is not None), None)


def _of_text(text: str) -> ImportedRun | None:
    return next((found for read in _OF_TEXT if (found := read(text)) is not None), None)
