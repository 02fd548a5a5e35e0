"""Sweep a load over levels: what is shown of it. The same for SQL and HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import Form, write_pages

if TYPE_CHECKING:
    from uncork.model.results.sweep import SweepResult
    from uncork.requests.jobs import HttpJob, LoadJob, SweepWanted

__all__ = ["report_sweep", "sweep_load"]


def sweep_load(
    job: LoadJob | HttpJob, wanted: SweepWanted, runs: Path, *, as_json: bool, html: Path | None
) -> None:
    """Sweep, show what came of it, and end with the status that says whether all went well."""
    from uncork.analysis.load.sweep import build_sweep_result  # noqa: PLC0415
    from uncork.workbench.event_words import visit_line  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.load.sweeps import new_sweep  # noqa: PLC0415

    session = new_sweep(runs, job, wanted)
    console.note(f"run {session.folder.name}")
    unit = session.unit
    status = session.sweep(lambda visit: console.note(visit_line(visit, wanted.spec, unit)), console.note)
    if not (session.folder / "sweep_visits").is_dir():
        console.note("interrupted before anything was measured")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    result = build_sweep_result(session.folder)
    form: Form = "json" if as_json else "terminal"
    _show(result, form)
    _write(session.folder, result, form, html)
    if status == "interrupted":
        console.note("interrupted; what was measured until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if not any(level.works for level in result.levels):
        raise typer.Exit(ExitStatus.RUN_ERROR)


def report_sweep(folder: Path, form: Form, *, html: Path | None) -> None:
    """Report a stored sweep again.

    Raises:
        StoreError: if it is damaged, has no result, or something cannot be written.
    """
    from uncork.analysis.load.sweep import build_sweep_result  # noqa: PLC0415

    result = build_sweep_result(folder)
    _show(result, form)
    if form == "terminal" or html is not None:
        _write(folder, result, form, html)


def _show(result: SweepResult, form: Form) -> None:
    from uncork.report.load import sweep_writers as writers  # noqa: PLC0415

    if form == "terminal":
        writers.render_sweep_terminal(result, console.output)
        return
    render = writers.render_sweep_markdown if form == "markdown" else writers.render_sweep_json
    typer.echo(render(result), nl=False)


def _write(folder: Path, result: SweepResult, form: Form, html: Path | None) -> None:
    from uncork.report.load import sweep_writers as writers  # noqa: PLC0415

    write_pages(
        folder,
        html,
        html=writers.render_sweep_html(result),
        markdown=writers.render_sweep_markdown(result),
        json=writers.render_sweep_json(result),
        tell=form == "terminal",
    )
