"""Measure how small a difference this machine can resolve: `uncork doctor`."""

from __future__ import annotations

import json
from dataclasses import asdict

import typer
from rich.table import Table

from uncork.analysis.experiment.result import build_result
from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.run import run_session
from uncork.errors import UsageError
from uncork.load.sql import build_facts
from uncork.model.units import format_duration
from uncork.requests.connection import measured_server
from uncork.requests.experiment_options import DoctorOptions
from uncork.requests.server import ServerChoice
from uncork.requests.source import changes_of
from uncork.workbench.experiment.doctor import diagnose, doctor_source
from uncork.workbench.experiment.resolution import (
    DEFAULT_BUDGET_NS,
    LEAST_BUDGET_NS,
    Resolution,
    measure_resolution,
)
from uncork.workbench.experiment.session import choose_server, new_run


def doctor(options: DoctorOptions) -> None:
    """Measure the resolution of this machine, or run the self-test, and show the result."""
    options = measured_server(options, console.asked_password)
    server = choose_server(options.dsn, options.pg_bin, options.port)
    if options.self_test:
        if options.as_json:
            raise UsageError("--json shows the resolution; `uncork report --json` shows a self-test's run")
        _self_test(options, server)
    else:
        _resolution(options, server)


def _resolution(options: DoctorOptions, server: ServerChoice) -> None:
    budget = DEFAULT_BUDGET_NS if options.budget is None else options.budget
    if budget < LEAST_BUDGET_NS:
        least = format_duration(LEAST_BUDGET_NS)
        raise UsageError(
            f"--budget {format_duration(budget)}: the doctor restarts the server three times and needs "
            f"at least {least}"
        )
    found = measure_resolution(server, budget, (lambda _: None) if options.quiet else console.note)
    if options.as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
    else:
        _show(found)


def _show(found: Resolution) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("statement")
    table.add_column("takes", justify="right")
    for minutes in found.minutes:
        table.add_column(f"in {minutes} min", justify="right")
    for statement in found.statements:
        widths = ("none" if width is None else f"±{width:.1%}" for width in statement.half_widths)
        table.add_row(statement.title, format_duration(statement.operation_ns), *widths)
    rounds = f"{found.rounds} rounds" + ("" if found.restarts else " on a server that was not restarted")
    output = console.output
    output.print(f"[bold]What this machine can resolve[/] (half-width of a {found.confidence:.0%} interval)")
    output.print(table)
    console.say(f"\n{found.sentence}")
    for statement in found.statements:
        console.say(f"{statement.title}: {statement.reason}.")
    measured = f"Measured in {format_duration(found.elapsed_ns)}, {rounds}, on {found.processors} processors"
    console.say(f"{measured}; {found.server}")


def _self_test(options: DoctorOptions, server: ServerChoice) -> None:
    source = doctor_source(changes_of(None, None, options.budget, None, None))
    if server.dsn is not None:
        source = source.without_server_settings()
    session = new_run(options.runs, source, server)
    run_session(session)
    diagnosis = diagnose(build_result(session.folder), build_facts())
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for heading, finding in diagnosis.lines:
        table.add_row(heading, finding)
    console.output.print(table)
    if diagnosis.false_alarms:
        console.output.print(
            f"\n{diagnosis.false_alarms} of {diagnosis.comparisons} comparisons of the system with itself "
            "came out as different. One run in twenty may do so; if it recurs, do not trust this machine."
        )
        raise typer.Exit(ExitStatus.GATE_FAILED)
    console.output.print(
        "\nno false alarm: comparisons on this machine can be trusted within their intervals"
    )
    if diagnosis.found is not None:
        console.output.print(
            "the known change was found"
            if diagnosis.found
            else "the known change was not found: give this machine more time (--budget), or less other work"
        )
