"""The stored runs: `uncork runs` lists them, `uncork runs name` gives one a name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uncork.cli import console, options
from uncork.errors import StoreError
from uncork.model.units import format_duration

__all__ = ["register"]

_app = typer.Typer(invoke_without_command=True)


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.add_typer(_app, name="runs")


@_app.callback()
def list_stored_runs(context: typer.Context, runs: options.Runs = options.DEFAULT_RUNS) -> None:
    """List the stored runs, oldest first."""
    if context.invoked_subcommand is not None:
        context.obj = runs
        return
    from uncork.store.layout import list_runs, read_names  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.runs import status_of  # noqa: PLC0415

    called: dict[str, str] = {}
    for name, id in sorted(read_names(runs).items()):
        called[id] = ", ".join(filter(None, (called.get(id), name)))
    rows = [("run", "name", "kind", "status", "took", "server", "question")]
    for manifest in list_runs(runs):
        if isinstance(manifest, StoreError):
            console.note(str(manifest))
            continue
        took = format_duration(sum(sitting.elapsed_ns for sitting in manifest.sittings))
        status, name = status_of(manifest), called.get(manifest.id, "")
        rows.append((manifest.id, name, manifest.kind, status, took, manifest.server, manifest.question))
    if len(rows) == 1:
        console.note(f"there are no runs in {runs}; `uncork run FILE` and `uncork load sql` make some")
        return
    used = [place for place, title in enumerate(rows[0]) if title != "name" or called]
    widths = [max(len(row[place]) for row in rows) for place in used]
    for row in rows:
        line = "  ".join(row[place].ljust(width) for place, width in zip(used, widths, strict=True))
        console.output.print(line.rstrip(), markup=False, soft_wrap=True)


@_app.command("name")
def name(
    context: typer.Context,
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="A stored run: its id, the beginning of one, or last.")
    ],
    called: Annotated[
        str,
        typer.Argument(metavar="NAME", help="What to call it, such as baseline; another run loses the name."),
    ],
    runs: Annotated[
        Path | None, typer.Option("--runs", metavar="DIR", help="Where runs are stored.", show_default=False)
    ] = None,
) -> None:
    """Give a run a name by which all verbs find it; `uncork compare RUN` looks for one named baseline."""
    from uncork.store.layout import name_run  # noqa: PLC0415

    id, before = name_run(runs or context.obj, run_id, called)
    moved = f" (before: {before})" if before not in (None, id) else ""
    console.output.print(f"{called}: {id}{moved}", markup=False, soft_wrap=True)
