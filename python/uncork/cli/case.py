"""The published investigations: list them, run them."""

from __future__ import annotations

from typing import Annotated

import typer

from uncork.cli import console, options
from uncork.cli.run import measure, parse_expectations

__all__ = ["register"]

_app = typer.Typer(no_args_is_help=True, help="Published investigations, run here from end to end.")


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.add_typer(_app, name="case")


@_app.command("list")
def list_cases() -> None:
    """List the cases with their questions."""
    from uncork import cases  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.source import Options, case_source  # noqa: PLC0415

    for name in cases.names():
        question = case_source(name, Options(), full=True).spec.experiment.question
        console.output.print(f"[bold]{name}[/]  {question}")


@_app.command("run")
def run_case(
    name: Annotated[str, typer.Argument(help="The case; `uncork case list` names them.")],
    full: Annotated[bool, typer.Option("--full", help="The whole matrix, not the quick part.")] = False,
    levels: options.Levels = None,
    workload: options.Workloads = None,
    budget: options.Budget = None,
    precision: options.Precision = None,
    seed: options.Seed = None,
    dsn: options.Dsn = None,
    pg_bin: options.PgBin = None,
    port: options.Port = None,
    expect: options.Expect = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Run a case, and show its published figures beside those measured here."""
    from uncork.workbench.runs import new_run  # noqa: PLC0415
    from uncork.workbench.source import case_source  # noqa: PLC0415

    changes = options.collect(levels, workload, budget, precision, seed)
    source = case_source(name, changes, full=full)
    expectations = parse_expectations(expect, source)
    measure(new_run(runs, source, options.server(dsn, pg_bin, port)), expectations)
