"""Bring in results of other tools: `uncork import`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.errors import UncorkError, UsageError
from uncork.model.units import count_words

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("import", epilog=examples_of("import"))(import_files)


def import_files(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Output or logs of pgbench, output of h2load or wrk, JSON of k6, hyperfine or pgBadger, and "
            "Go's benchmarks.",
        ),
    ],
    name: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="The series that they belong to, such as checkout."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="When it was measured, in UTC unless it says otherwise; else the file tells, or its age.",
        ),
    ] = None,
    commit: Annotated[
        str | None, typer.Option("--commit", metavar="ID", help="What was measured: a commit, a version.")
    ] = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Store results of other tools as runs, so that they can be compared and have a history.

    A file that was imported before, at the same time and under the same name, is not imported again.
    """
    from uncork.workbench.profile.imports import import_result  # noqa: PLC0415 -- keeps `uncork --help` fast

    if name is not None and not name.strip():
        raise UsageError("--as: give the series a name")
    when = _instant(at)
    if when is not None and len(files) > 1:
        raise UsageError("--at says when one file was measured: import the others apart")
    for path in files:
        try:
            done = import_result(runs, path, name=name, at=when, commit=commit)
        except UncorkError as error:
            before = files.index(path)
            done_before = "file before it is" if before == 1 else f"{before} files before it are"
            kept = f"; the {done_before} imported" if before else ""
            raise type(error)(f"{error}{kept}") from error
        what = (
            f"{done.result.tool}, {count_words(len(done.result.figures), 'figure')}, {done.started_at[:19]}"
        )
        note = " (imported before)" if done.before else ""
        console.output.print(f"{done.folder.name}: {what}{note}", markup=False, soft_wrap=True)
        if done.guessed:
            console.note(f"{path} does not say when it was measured: taken from its age; --at TIME says it")


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            f'--at "{text}" is no point in time; write it as 2026-05-31, 2026-05-31T08:30 or '
            '"2026-05-31 08:30:15+02:00"'
        ) from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
