"""Published investigations: `uncork case list` and `case run`."""

from __future__ import annotations

from uncork import cases
from uncork.cli import console
from uncork.cli.run import measure, parse_expectations, report_form, start_of
from uncork.requests.connection import measured_server
from uncork.requests.experiment_options import CaseListOptions, CaseOptions
from uncork.requests.source import Options, case_source, changes_of
from uncork.workbench.experiment.session import choose_server


def list_cases(_: CaseListOptions) -> None:
    """List the cases with their questions."""
    for name in cases.names():
        question = case_source(name, Options(), full=True).spec.experiment.question
        console.output.print(f"[bold]{name}[/]  {question}")


def run_case(options: CaseOptions) -> None:
    """Run a case, and show the report."""
    options = measured_server(options, console.asked_password)
    form = report_form(options)
    changes = changes_of(
        [*(options.sets or ()), *(options.rows or ())],
        options.workloads,
        options.budget,
        options.precision,
        options.seed,
    )
    source = case_source(options.case, changes, full=options.full)
    expectations = parse_expectations(options.expect, source)
    server = choose_server(options.dsn, options.pg_bin, options.port)
    measure(start_of(options)(options.runs, source, server), expectations, form, options.html)
