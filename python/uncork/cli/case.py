"""The published investigations: list them, run them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.pages import Form, check_page, chosen_form, write_forms, write_pages
from uncork.cli.run import measure, parse_expectations
from uncork.cli.stored_command import redacted_command

if TYPE_CHECKING:
    from uncork.workbench.experiment.case_logs import CaseLogsRun

__all__ = ["register"]

_app = typer.Typer(no_args_is_help=True, help="Published investigations, run here from end to end.")


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.add_typer(_app, name="case")


@_app.command("list", epilog=examples_of("case list"))
def list_cases() -> None:
    """List the cases with their questions."""
    from uncork import cases  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.requests.source import Options, case_source  # noqa: PLC0415

    for name in cases.names():
        question = case_source(name, Options(), full=True).spec.experiment.question
        console.output.print(f"[bold]{name}[/]  {question}")


@_app.command("run", epilog=examples_of("case run"))
def run_case(
    name: Annotated[str, typer.Argument(metavar="CASE", help="The case; `uncork case list` names them.")],
    full: Annotated[bool, typer.Option("--full", help="The whole matrix, not the quick part.")] = False,
    rows: Annotated[
        str | None,
        typer.Option(
            "--rows", metavar="N[,N...]", help="How much data, where the case sweeps it: --set rows=N[,N...]."
        ),
    ] = None,
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
    from uncork.requests.source import case_source  # noqa: PLC0415
    from uncork.workbench.experiment.session import new_run  # noqa: PLC0415

    sizes = [] if rows is None else [f"rows={rows}"]
    changes = options.collect([*(levels or ()), *sizes], workload, budget, precision, seed)
    source = case_source(name, changes, full=full)
    expectations = parse_expectations(expect, source)
    measure(new_run(runs, source, options.server(dsn, pg_bin, port)), expectations)


@_app.command("logs", epilog=examples_of("case logs"))
def case_logs(
    name: Annotated[str, typer.Argument(metavar="CASE", help="A case with a log half, such as clair.")],
    levels: options.Levels = None,
    logs: Annotated[
        Path | None, typer.Option("--logs", metavar="DIR", help="Keep both logs in this folder.")
    ] = None,
    top: options.Templates = 5,
    pg_bin: options.PgBin = None,
    port: options.Port = None,
    as_json: options.AsJson = False,
    markdown: options.Markdown = False,
    html: options.Html = None,
    quiet: options.Quiet = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Let a case's finding happen on a server that logs, before and after, and compare both logs.

    A background of queries goes on beside it. Both logs are stored as runs; the published figures stand
    beside those measured here.
    """
    from uncork.analysis.log.half import log_half  # noqa: PLC0415
    from uncork.workbench.experiment.case_logs import run_case_logs  # noqa: PLC0415

    check_page(html)
    form = chosen_form(as_json=as_json, markdown=markdown)
    half = log_half(name)
    run = run_case_logs(
        runs,
        half,
        options.collect(levels, None, None, None, None).levels,
        options.server(None, pg_bin, port),
        command=redacted_command(sys.argv[1:]),
        keep=logs,
        tell=(lambda _: None) if quiet else console.note,
    )
    _show_logs(run, form, html, top)


def _show_logs(run: CaseLogsRun, form: Form, html: Path | None, top: int) -> None:
    """Show what both logs tell, and write it beside the later one."""
    from uncork.report.log import case_logs as writers  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415

    if form == "terminal":
        writers.render_case_logs_terminal(run.result, console.output, top=top)
    else:
        render = {"json": writers.render_case_logs_json, "markdown": writers.render_case_logs_markdown}
        typer.echo(render[form](run.result), nl=False)
    for one in (run.before, run.after):
        write_forms(kind_named("log"), one.folder, one.result)
    write_pages(
        run.after.folder,
        html,
        html=writers.render_case_logs_html(run.result),
        markdown=writers.render_case_logs_markdown(run.result),
        json=writers.render_case_logs_json(run.result),
        names=("comparison", "case-logs"),
        tell=form == "terminal",
    )
