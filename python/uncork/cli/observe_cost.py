"""Measure the overhead of observing a server: `uncork observe-cost`."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer

from uncork.cli import console
from uncork.cli.run import run_session
from uncork.errors import RunError
from uncork.model.records import build_from
from uncork.report.experiment.observer_cost import render_costs
from uncork.requests.connection import measured_server
from uncork.requests.experiment_options import CostOptions
from uncork.workbench.experiment.session import choose_server, new_run
from uncork.workbench.overhead.costs import observer_costs
from uncork.workbench.overhead.session import CostWanted, prepare, switch_observers
from uncork.workbench.overhead.switched import Switching


def observe_cost(options: CostOptions) -> None:
    """Measure what each observer costs, and show the result."""
    options = measured_server(options, console.asked_password)
    only = tuple(options.only or ())
    wanted = build_from(CostWanted, options, script=options.builtin, only=only)
    choice = choose_server(options.dsn, options.pg_bin, options.port)
    prepared = prepare(wanted, choice, console.note)
    session = new_run(options.runs, prepared.source, choice)
    switched = Switching(())

    def show() -> None:
        found = observer_costs(session.folder, prepared, switched)
        if options.as_json:
            typer.echo(json.dumps(asdict(found), indent=1, ensure_ascii=False))
            return
        render_costs(found, console.output)
        console.note(
            f"kept as run {session.folder.name}; `uncork report {session.folder.name}` shows the full report"
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
