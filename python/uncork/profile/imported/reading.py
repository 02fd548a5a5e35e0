"""Detect which tool wrote a file, and read its results."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Final

from uncork.errors import UsageError
from uncork.model.results.figure import ImportedRun
from uncork.profile.imported import json_tools, plain_csv, text_tools

KNOWN: Final = (
    "pgbench (output, or logs of -l), h2load, wrk, k6 (JSON summary), oha (JSON), hyperfine (JSON), and CSV "
    "with the columns time, metric and value"
)
_WRONG: Final = (
    *(KeyError, TypeError, ValueError, AttributeError, IndexError),
    *(OverflowError, RecursionError, ZeroDivisionError, OSError),  # OSError: times beyond the year 9999
)

_FIRST_YEAR, _LAST_YEAR = 1970, 2200

Reader = Callable[[Any], ImportedRun | list[ImportedRun] | None]
"""A reader returns None for another format."""
_OF_JSON: Final[Mapping[Reader, str]] = {
    # k6 comes late: files of oha have metrics too, of another form.
    json_tools.read_oha: "oha --no-tui --output-format json URL",
    json_tools.read_hyperfine: "hyperfine --export-json FILE COMMAND",
    json_tools.read_k6: "k6 run --summary-export=FILE SCRIPT",
}
"""Readers of JSON, and the commands that write it."""
_OF_TEXT: Final[Mapping[Reader, str]] = {
    text_tools.read_pgbench: "",
    text_tools.read_wrk: "",
    text_tools.read_h2load: "",
    text_tools.read_pgbench_log: "",
    plain_csv.read: "",
}


def read_results(text: str, file: str) -> list[ImportedRun]:
    """Return the results in a file of another tool: one run, or several of a table.

    Raises UsageError if the format is unknown, the file is damaged, or it contains no metrics.
    """
    if not text.strip():
        raise UsageError(f"{file} is empty")
    if text.lstrip().startswith(("{", "[")):
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{file} is damaged: it begins like JSON, but is not valid: {error}") from error
        found = _first(_OF_JSON, data, file)
    else:
        found = _first(_OF_TEXT, text, file)
    if found is None:
        raise UsageError(f"{file} is not a result that uncork can import; it reads results of {KNOWN}")
    if not any(run.figures for run in found):
        if not found:
            raise UsageError(f"{file} is a table without rows; add one row for each value")
        raise UsageError(
            f"{file} was written by {found[0].tool}, but contains no metrics; the tool may have ended early"
        )
    return [_checked(run, file) for run in found]


def _first(readers: Mapping[Reader, str], data: Any, file: str) -> list[ImportedRun] | None:
    for read, command in readers.items():
        try:
            found = read(data)
        except _WRONG as error:
            again = f"; write it again with: {command}" if command else ""
            reason = f"{error} is missing" if isinstance(error, KeyError) else f"unexpected value ({error})"
            reason = str(error) if isinstance(error, ValueError) else reason
            raise UsageError(f"{file} is damaged: {reason}{again}") from error
        if found is not None:
            return found if isinstance(found, list) else [found]
    return None


def _checked(run: ImportedRun, file: str) -> ImportedRun:
    """Return a run whose metrics and time are possible; a table's series is called as its file."""
    for figure in run.figures:
        if not math.isfinite(figure.value):
            of = f" of {figure.subject}" if figure.subject else ""
            raise UsageError(
                f"{file} is damaged: {figure.name}{of} is {figure.value}, which is no finite number"
            )
    texts = (run.question, run.commit, run.branch, run.series, *run.asked.values())
    keys = (text for figure in run.figures for text in figure.key)
    if any("\ud800" <= letter <= "\udfff" for text in (*texts, *keys) for letter in text):
        raise UsageError(f"{file} is damaged: a name in it holds a lone surrogate, which is not a character")
    if run.started_at and not _FIRST_YEAR <= int(run.started_at[:4]) < _LAST_YEAR:
        raise UsageError(
            f"{file} is damaged: its time, {run.started_at[:16]}, is not in the years 1970 to 2199"
        )
    return replace(run, series=PurePath(file).stem) if run.tool == "CSV" else run
