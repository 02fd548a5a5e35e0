"""Published investigations: `uncork case list`, `case run` and `case logs`."""

from __future__ import annotations

import sys
from pathlib import Path

import typer

from uncork import cases
from uncork.analysis.log.half import log_half
from uncork.cli import console
from uncork.cli.pages import Form, check_page, chosen_form, write_forms, write_pages
from uncork.cli.run import measure, parse_expectations, report_form, start_of
from uncork.cli.stored_command import redacted_command
from uncork.report.log import case_logs as writers
from uncork.requests.connection import measured_server
from uncork.requests.experiment_options import CaseListOptions, CaseLogsOptions, CaseOptions
from uncork.requests.source import Options, case_source, changes_of
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.experiment.case_logs import CaseLogsRun, run_case_logs
from uncork.workbench.experiment.session import choose_server

__all__ = ["case_logs", "list_cases", "run_case"]


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


def case_logs(options: CaseLogsOptions) -> None:
    """Reproduce a case's finding in server logs, and show the comparison."""
    check_page(options.html)
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    run = run_case_logs(
        options.runs,
        log_half(options.case),
        changes_of(options.sets, None, None, None, None).levels,
        choose_server(None, options.pg_bin, options.port),
        command=redacted_command(sys.argv[1:]),
        keep=options.logs,
        tell=(lambda _: None) if options.quiet else console.note,
    )
    _show_logs(run, form, options.html, options.top)


def _show_logs(run: CaseLogsRun, form: Form, html: Path | None, top: int) -> None:
    """Show the comparison of both logs, and write it into the folder of the later one."""
    if form == "terminal":
        writers.render_case_logs_terminal(run.result, console.output, top=top)
    else:
        render = {"json": writers.render_case_logs_json, "markdown": writers.render_case_logs_markdown}
        typer.echo(render[form](run.result), nl=False)
    for log_run in (run.before, run.after):
        write_forms(kind_named("log"), log_run.folder, log_run.result)
    write_pages(
        run.after.folder,
        html,
        html=writers.render_case_logs_html(run.result),
        markdown=writers.render_case_logs_markdown(run.result),
        json=writers.render_case_logs_json(run.result),
        names=("comparison", "case-logs"),
        tell=form == "terminal",
    )
