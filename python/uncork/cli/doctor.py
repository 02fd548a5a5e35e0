"""The doctor: how small a difference can this machine resolve, and are there false alarms here?"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.run import run_session
from uncork.errors import UsageError
from uncork.model.units import format_duration

if TYPE_CHECKING:
    from uncork.requests.server import ServerChoice
    from uncork.workbench.experiment.resolution import Resolution

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("doctor", epilog=examples_of("doctor"))(doctor)


def doctor(
    self_test: Annotated[
        bool,
        typer.Option(
            "--self-test",
            help="Run a whole experiment that compares the system with itself, and store it: noise floor, "
            "steal, throttling, the generator's cost. Exit with 3 if it raises a false alarm.",
        ),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget", metavar="TIME", help="How long to measure: 20s, or 60s with --self-test, if absent."
        ),
    ] = None,
    dsn: options.Dsn = None,
    pg_bin: options.PgBin = None,
    port: options.Port = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Measure for 20 s how small a difference this machine can resolve in 1, 5 and 30 minutes.

    The same statement runs against itself, over several restarts of the server: a short statement, then a
    long one.
    """
    choice = options.server(dsn, pg_bin, port)
    if self_test:
        if as_json:
            raise UsageError("--json shows the resolution; `uncork report --json` shows a self-test's run")
        _self_test(choice, budget, runs)
    else:
        _resolution(choice, budget, as_json=as_json, quiet=quiet)


def _resolution(choice: ServerChoice, budget: str | None, *, as_json: bool, quiet: bool) -> None:
    from uncork.workbench.experiment.resolution import (  # noqa: PLC0415 -- keeps `uncork --help` fast
        DEFAULT_BUDGET_NS,
        LEAST_BUDGET_NS,
        measure_resolution,
    )

    asked = options.collect(None, None, budget, None, None).budget_ns
    if asked is not None and asked < LEAST_BUDGET_NS:
        least = format_duration(LEAST_BUDGET_NS)
        raise UsageError(f"--budget {budget}: the doctor needs {least} for three lives of the server")
    tell = (lambda _: None) if quiet else console.note
    found = measure_resolution(choice, DEFAULT_BUDGET_NS if asked is None else asked, tell)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
    else:
        _show(found)


def _show(found: Resolution) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("statement")
    table.add_column("takes", justify="right")
    for minutes in found.minutes:
        table.add_column(f"in {minutes} min", justify="right")
    for one in found.statements:
        widths = ("none" if width is None else f"±{width:.1%}" for width in one.half_widths)
        table.add_row(one.title, format_duration(one.operation_ns), *widths)
    rounds = f"{found.rounds} rounds" + ("" if found.restarts else " on a server that was not restarted")
    output = console.output
    output.print(f"[bold]What this machine can resolve[/] (half-width of a {found.confidence:.0%} interval)")
    output.print(table)
    output.print(f"\n{found.sentence}", markup=False, soft_wrap=True)
    for one in found.statements:
        output.print(f"{one.title}: {one.reason}.", markup=False, soft_wrap=True)
    measured = f"Measured in {format_duration(found.elapsed_ns)}, {rounds}, on {found.processors} processors"
    output.print(f"{measured}; {found.server}", markup=False, soft_wrap=True)


def _self_test(choice: ServerChoice, budget: str | None, runs: Path) -> None:
    from uncork.analysis.experiment.result import build_result  # noqa: PLC0415
    from uncork.load.sql import build_facts  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.experiment.doctor import diagnose, doctor_source  # noqa: PLC0415
    from uncork.workbench.experiment.session import new_run  # noqa: PLC0415

    source = doctor_source(options.collect(None, None, budget, None, None))
    if choice.dsn is not None:
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
