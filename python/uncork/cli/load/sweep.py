"""Sweep a load over levels and show the result: shared by SQL and HTTP."""

from __future__ import annotations

import typer

from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import report
from uncork.model.load import ClusterRequest
from uncork.model.results.sweep import SweepResult
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import AnyLoad, SweepRequest
from uncork.requests.sql_options import SqlOptions
from uncork.workbench.documents.kinds import Kind, kind_named
from uncork.workbench.event_words import load_step_line
from uncork.workbench.load.sweeps import new_sweep


def sweep_load(
    job: AnyLoad,
    sweep: SweepRequest,
    options: SqlOptions | HttpOptions,
    request: ClusterRequest | None,
) -> None:
    """Sweep, from the nodes of `request` if any; show the result; raise typer.Exit unless all went well."""
    if request is None:
        session = new_sweep(options.runs, job, sweep)
    else:
        from uncork.cli.load.finish import cluster_sweep  # noqa: PLC0415 -- only with --nodes

        session = cluster_sweep(job, sweep, request, options)
    console.note(f"run {session.folder.name}")
    unit = session.unit
    status = session.sweep(
        lambda step: console.progress(load_step_line(step, sweep.spec, unit)), console.note
    )
    if not (session.folder / "sweep_visits").is_dir():
        console.note("interrupted before anything was measured")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    kind: Kind[SweepResult] = kind_named("sweep")
    result = kind.read(session.folder)
    report(kind, session.folder, result, "json" if options.as_json else "terminal", options.html)
    console.end_early(status, "", "what was measured until then is kept")
    if not any(level.works for level in result.levels):
        raise typer.Exit(ExitStatus.RUN_ERROR)
