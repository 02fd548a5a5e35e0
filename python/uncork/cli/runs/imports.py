"""Import results of other tools: `uncork import`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

from uncork.cli import console
from uncork.errors import UncorkError, UsageError
from uncork.model.units import count_words
from uncork.requests.moments import moment_of
from uncork.requests.stored_options import ImportOptions
from uncork.workbench.profile.imports import Imported, Labels, import_results

_LISTED: Final = 20
"""Runs of one file that are listed one by one."""


def import_files(options: ImportOptions) -> None:
    """Import the files, and print a line for each run."""
    if options.name is not None and not options.name.strip():
        raise UsageError("--as: give the series a name")
    when = _instant(options.at)
    if when is not None and len(options.files) > 1:
        raise UsageError("--at applies to one file: import the others separately")
    labels = Labels(options.name, when, options.commit, options.branch)
    for path in options.files:
        try:
            done = import_results(options.runs, path, labels)
        except UncorkError as error:
            before = options.files.index(path)
            done_before = "file before it is" if before == 1 else f"{before} files before it are"
            kept = f"; the {done_before} imported" if before else ""
            raise type(error)(f"{error}{kept}") from error
        _report(path, done)


def _report(path: Path, done: Sequence[Imported]) -> None:
    """Print what was imported from a file; of many runs, the number and the first and last."""
    if len(done) <= _LISTED:
        lines = [_line(imported) for imported in done]
    else:
        many = f"{path}: {count_words(len(done), 'run')} from {done[0].folder.name} to {done[-1].folder.name}"
        before = sum(imported.before for imported in done)
        lines = [f"{many} ({before} imported before)" if before else many]
    for line in lines:
        console.output.print(line, markup=False, soft_wrap=True)
    if any(imported.guessed for imported in done):
        console.note(f"{path} has no time of measurement: used the age of the file; set it with --at TIME")


def _line(imported: Imported) -> str:
    note = " (imported before)" if imported.before else ""
    many = count_words(len(imported.result.figures), "figure")
    return f"{imported.folder.name}: {imported.result.tool}, {many}, {imported.started_at[:19]}{note}"


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    found = moment_of(text)
    if found is None:
        raise UsageError(
            f'--at "{text}" is not a time; write it as 2026-05-31, 2026-05-31T08:30 or '
            '"2026-05-31 08:30:15+02:00"'
        )
    return found
