"""Report a stored run: `uncork report`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.pages import (
    BenchForm,
    Form,
    check_forms,
    check_page,
    chosen_form,
    write_beside,
    write_pages,
)
from uncork.errors import UsageError

if TYPE_CHECKING:
    from uncork.model.results.experiment import RunResult
    from uncork.store.layout import RunKind

__all__ = ["register", "write_reports"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("report", epilog=examples_of("report"))(report)


def report(
    run_id: options.StoredRun = "last",
    html: options.Html = None,
    markdown: options.Markdown = False,
    as_json: options.AsJson = False,
    go_bench: Annotated[
        bool, typer.Option("--go-bench", help="Of a load: print it as benchstat reads it.")
    ] = False,
    hdr_log: Annotated[
        Path | None,
        typer.Option(
            "--hdr-log", metavar="FILE", help="Of a load: write histograms for HdrHistogram's tools."
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="RUN", help="Of stacks: compare with this other profile of stacks."
        ),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the HTML page in a browser.")] = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Report a stored run: in the terminal, and as one HTML page that needs no network."""
    from uncork.store.layout import find_run, read_manifest  # noqa: PLC0415 -- keeps `uncork --help` fast

    check_forms(json=as_json, markdown=markdown, go_bench=go_bench)
    for file in (html, hdr_log):
        check_page(file)
    folder = find_run(runs, run_id)
    kind = read_manifest(folder).kind
    if kind != "load" and (go_bench or hdr_log is not None):
        raise UsageError(f"--go-bench and --hdr-log are for loads; {folder.name} is a run of kind {kind}")
    if kind != "cpu" and against is not None:
        raise UsageError(f"--against is for stacks; {folder.name} is a run of kind {kind}")
    form: BenchForm = chosen_form(as_json=as_json, markdown=markdown)
    if go_bench and form == "terminal":
        form = "go-bench"
    _report(folder, kind, form, html=html, hdr_log=hdr_log, against=against or "")
    if show and (kind != "experiment" or form == "terminal"):
        webbrowser.open((html or folder / "report.html").resolve().as_uri())


def _report(
    folder: Path, kind: RunKind, form: BenchForm, *, html: Path | None, hdr_log: Path | None, against: str
) -> None:
    """Report a stored run as its kind is reported."""
    from uncork.cli.load.sql import report_load  # noqa: PLC0415
    from uncork.cli.load.sweep import report_sweep  # noqa: PLC0415
    from uncork.cli.profile.cpu import report_cpu  # noqa: PLC0415
    from uncork.cli.profile.database import report_database  # noqa: PLC0415
    from uncork.cli.profile.logs import report_log  # noqa: PLC0415

    plain: Form = "terminal" if form == "go-bench" else form
    match kind:
        case "load":
            report_load(folder, form, html=html, hdr_log=hdr_log)
        case "sweep":
            report_sweep(folder, plain, html=html)
        case "log":
            report_log(folder, plain, html=html)
        case "database":
            report_database(folder, plain, html=html)
        case "cpu":
            report_cpu(folder, plain, html=html, against=against)
        case "import":
            report_imported(folder, plain, html=html)
        case "experiment":
            _report_experiment(folder, plain, html=html)
        case "guard":
            _report_guard(folder, plain, html=html)


def _report_guard(folder: Path, form: Form, *, html: Path | None) -> None:
    from uncork.cli.guard import report_guard  # noqa: PLC0415
    from uncork.workbench.guard.store import stored_guard  # noqa: PLC0415

    report_guard(folder, stored_guard(folder), form, html=html)


def _report_experiment(folder: Path, form: Form, *, html: Path | None) -> None:
    from uncork.analysis.experiment.result import build_result  # noqa: PLC0415
    from uncork.cli.guard import report_guard  # noqa: PLC0415
    from uncork.report.write.json_document import render_json  # noqa: PLC0415
    from uncork.report.write.markdown import render_markdown  # noqa: PLC0415
    from uncork.workbench.guard.store import read_guard  # noqa: PLC0415

    guard = read_guard(folder)
    if guard is not None:
        report_guard(folder, guard, form, html=html)
        return
    if form == "terminal":
        write_reports(folder, html=html)
        return
    result = build_result(folder)
    typer.echo(render_json(result) if form == "json" else render_markdown(result))


def report_imported(folder: Path, form: Form, *, html: Path | None) -> None:
    """Report an imported result.

    Raises:
        StoreError: if it is damaged, or something cannot be written.
    """
    from uncork.analysis.runs.figures import run_figures  # noqa: PLC0415
    from uncork.report.runs import imported as writers  # noqa: PLC0415

    run = run_figures(folder)
    data, text = writers.render_import_json(run), writers.render_import_markdown(run)
    if form == "terminal":
        writers.render_import_terminal(run, console.output)
    else:
        typer.echo(data if form == "json" else text, nl=False)
    if form == "terminal" or html is not None:
        told = form == "terminal"
        write_pages(folder, html, html=writers.render_import_html(run), markdown=text, json=data, tell=told)


def write_reports(folder: Path, *, html: Path | None = None) -> RunResult:
    """Write a run's report beside it (HTML, Markdown, JSON), show it, and name the page.

    Raises:
        StoreError: if the run is damaged or the report cannot be written.
    """
    from uncork.analysis.experiment.evidence import evidence_flames  # noqa: PLC0415
    from uncork.analysis.experiment.result import build_result  # noqa: PLC0415
    from uncork.report.experiment.terminal import render_terminal  # noqa: PLC0415
    from uncork.report.write.html import render_html  # noqa: PLC0415
    from uncork.report.write.json_document import render_json  # noqa: PLC0415
    from uncork.report.write.markdown import render_markdown  # noqa: PLC0415

    result = build_result(folder)
    files = {"result.json": render_json(result), "report.md": render_markdown(result)}
    drawn = render_html(result, evidence_flames(folder, result))
    page = write_beside(folder, files, drawn, html or folder / "report.html")
    render_terminal(result, console.output)
    if page is not None:
        console.output.print(f"\nreport: {page.resolve()}", soft_wrap=True)
    return result
