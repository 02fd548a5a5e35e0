"""The doctor: compare this system with itself before trusting what it says of others."""

from __future__ import annotations

import typer
from rich.table import Table

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.run import run_session

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("doctor", epilog=examples_of("doctor"))(doctor)


def doctor(
    budget: options.Budget = None,
    dsn: options.Dsn = None,
    pg_bin: options.PgBin = None,
    port: options.Port = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Compare this system with itself for a minute: noise floor, steal, throttling, the generator's cost.

    Ends with status 3 if the comparison raises a false alarm.
    """
    from uncork.load.sql import build_facts  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.doctor import diagnose, doctor_source  # noqa: PLC0415
    from uncork.workbench.results import build_result  # noqa: PLC0415
    from uncork.workbench.runs import new_run  # noqa: PLC0415

    source = doctor_source(options.collect(None, None, budget, None, None))
    choice = options.server(dsn, pg_bin, port)
    if dsn is not None:
        source = source.without_server_settings()
    session = new_run(runs, source, choice)
    run_session(session)
    diagnosis = diagnose(build_result(session.folder), build_facts())
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for heading, finding in diagnosis.lines:
        table.add_row(heading, finding)
    console.output.print(table)
    if diagnosis.false_alarms:
        console.output.print(
            f"\n{diagnosis.false_alarms} of {diagnosis.comparisons} comparisons of the system with itself "
            "came out as different. One run in twenty may; if it happens again, do not trust this machine."
        )
        raise typer.Exit(ExitStatus.GATE_FAILED)
    console.output.print("\nno false alarm: trust comparisons on this machine as far as they are precise")
