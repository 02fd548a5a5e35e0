"""Import results of other tools: `uncork import`."""

from __future__ import annotations

from datetime import datetime

from uncork.cli import console
from uncork.errors import UncorkError, UsageError
from uncork.model.units import count_words
from uncork.requests.moments import moment_of
from uncork.requests.stored_options import ImportOptions
from uncork.workbench.profile.imports import import_result

__all__ = ["import_files"]


def import_files(options: ImportOptions) -> None:
    """Import the files, and print a line for each run."""
    if options.name is not None and not options.name.strip():
        raise UsageError("--as: give the series a name")
    when = _instant(options.at)
    if when is not None and len(options.files) > 1:
        raise UsageError("--at applies to one file: import the others separately")
    for path in options.files:
        try:
            done = import_result(options.runs, path, name=options.name, at=when, commit=options.commit)
        except UncorkError as error:
            before = options.files.index(path)
            done_before = "file before it is" if before == 1 else f"{before} files before it are"
            kept = f"; the {done_before} imported" if before else ""
            raise type(error)(f"{error}{kept}") from error
        what = (
            f"{done.result.tool}, {count_words(len(done.result.figures), 'figure')}, {done.started_at[:19]}"
        )
        note = " (imported before)" if done.before else ""
        console.output.print(f"{done.folder.name}: {what}{note}", markup=False, soft_wrap=True)
        if done.guessed:
            console.note(
                f"{path} has no time of measurement: used the age of the file; set it with --at TIME"
            )


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
