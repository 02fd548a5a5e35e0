"""Measure what observing a server costs: `uncork observe-cost`."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.run import run_session
from uncork.errors import RunError, UsageError
from uncork.model.units import parse_share

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("observe-cost", epilog=examples_of("observe-cost"))(observe_cost)


def observe_cost(
    builtin: Annotated[
        str,
        typer.Option("--builtin", "-b", metavar="NAME", help="Built-in script to load with."),
    ] = "select-only",
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="Load with this script on pgbench's tables, or with an experiment file's workloads (.toml).",
        ),
    ] = None,
    scale: Annotated[int, typer.Option("--scale", "-s", min=1, help="Scale of pgbench's tables.")] = 5,
    clients: Annotated[int, typer.Option("--client", "-c", min=1, help="Clients.")] = 2,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="OBSERVER", help="Measure only this; repeatable.")
    ] = None,
    practical: Annotated[
        str, typer.Option("--practical", metavar="PERCENT", help="The cost that matters.")
    ] = "1%",
    budget: Annotated[str, typer.Option("--budget", metavar="TIME", help="Longest to load.")] = "4min",
    precision: Annotated[
        str, typer.Option("--precision", metavar="PERCENT", help="How narrow an interval must be.")
    ] = "0.5%",
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of everything random.")] = 1,
    idle: Annotated[bool, typer.Option("--idle/--no-idle", help="Measure an idle server too.")] = True,
    dsn: options.Dsn = None,
    pg_bin: options.PgBin = None,
    port: options.Port = None,
    as_json: options.AsJson = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Say what observing costs: each observer off and on, side by side, under load and idle.

    pg_stat_statements, auto_explain, logging every statement, track_io_timing, uncork's own samplers and
    perf, as variants of one experiment; what is not to be had is skipped with its reason. A profiler's
    agent inside a service is measured by itself: --only agent.
    """
    from uncork.report.experiment.observer_cost import render_costs  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.experiment.session import new_run  # noqa: PLC0415
    from uncork.workbench.overhead.costs import observer_costs  # noqa: PLC0415
    from uncork.workbench.overhead.session import CostWanted, prepare, switch_observers  # noqa: PLC0415
    from uncork.workbench.overhead.switched import Switching  # noqa: PLC0415

    options.collect(None, None, budget, precision, seed)
    try:
        parse_share(practical)
    except ValueError as error:
        raise UsageError(f"--practical: {error}") from error
    wanted = CostWanted(
        script=builtin,
        file=file,
        scale=scale,
        clients=clients,
        only=tuple(only or ()),
        practical=practical,
        budget=budget,
        precision=precision,
        seed=seed,
        idle=idle,
    )
    choice = options.server(dsn, pg_bin, port)
    prepared = prepare(wanted, choice, console.note)
    session = new_run(runs, prepared.source, choice)
    switched = Switching(())

    def show() -> None:
        found = observer_costs(session.folder, prepared, switched.slices)
        if as_json:
            typer.echo(json.dumps(asdict(found), indent=1, ensure_ascii=False))
            return
        render_costs(found, console.output)
        console.note(
            f"kept as run {session.folder.name}; `uncork report {session.folder.name}` shows it whole"
        )

    try:
        run_session(session)
        switched = switch_observers(prepared, choice, console.note)
    except (RunError, KeyboardInterrupt):
        if session.measured():
            show()
        raise
    show()
    if switched.interrupted:
        raise KeyboardInterrupt
