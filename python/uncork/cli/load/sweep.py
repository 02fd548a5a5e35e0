"""Sweep a load over levels: what is shown of it. The same for SQL and HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import report

if TYPE_CHECKING:
    from uncork.model.results.sweep import SweepResult
    from uncork.requests.jobs import HttpJob, LoadJob, SweepRequest
    from uncork.workbench.documents.kinds import Kind

__all__ = ["sweep_load"]


def sweep_load(
    job: LoadJob | HttpJob, wanted: SweepRequest, runs: Path, *, as_json: bool, html: Path | None
) -> None:
    """Sweep, show what came of it, and end with the status that says whether all went well."""
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.event_words import visit_line  # noqa: PLC0415
    from uncork.workbench.load.sweeps import new_sweep  # noqa: PLC0415

    session = new_sweep(runs, job, wanted)
    console.note(f"run {session.folder.name}")
    unit = session.unit
    status = session.sweep(lambda visit: console.note(visit_line(visit, wanted.spec, unit)), console.note)
    if not (session.folder / "sweep_visits").is_dir():
        console.note("interrupted before anything was measured")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    kind: Kind[SweepResult] = kind_named("sweep")
    result = kind.read(session.folder)
    report(kind, session.folder, result, "json" if as_json else "terminal", html)
    if status == "interrupted":
        console.note("interrupted; what was measured until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if not any(level.works for level in result.levels):
        raise typer.Exit(ExitStatus.RUN_ERROR)
