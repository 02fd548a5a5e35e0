"""Report a stored run: `uncork report`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import options, pages
from uncork.cli.examples import examples_of
from uncork.cli.pages import BenchForm, check_forms, check_page, chosen_form
from uncork.errors import UsageError

if TYPE_CHECKING:
    from uncork.model.results.experiment import RunResult
    from uncork.workbench.documents.kinds import Kind

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
    from uncork.workbench.documents.kinds import kind_of  # noqa: PLC0415

    check_forms(json=as_json, markdown=markdown, go_bench=go_bench)
    for file in (html, hdr_log):
        check_page(file)
    folder = find_run(runs, run_id)
    kind = read_manifest(folder).kind
    if kind != "load" and (go_bench or hdr_log is not None):
        raise UsageError(f"--go-bench and --hdr-log are for loads; {folder.name} is a run of kind {kind}")
    if kind != "cpu" and against is not None:
        raise UsageError(f"--against is for stacks; {folder.name} is a run of kind {kind}")
    form: BenchForm = "go-bench" if go_bench else chosen_form(as_json=as_json, markdown=markdown)
    if hdr_log is not None:
        from uncork.workbench.load.sql import write_hdr_log  # noqa: PLC0415

        write_hdr_log(folder, hdr_log)
    row = kind_of(folder)
    found = row.read(folder)
    if against is not None:
        from uncork.workbench.documents.stacks import read_stacks  # noqa: PLC0415

        found = read_stacks(folder, against=against)
    pages.report(row, folder, found, form, html, keep=False)
    if show and (form == "terminal" or html is not None):
        webbrowser.open((html or folder / "report.html").resolve().as_uri())


def write_reports(folder: Path) -> RunResult:
    """Write the report of an experiment beside it (HTML, Markdown, JSON), show it, and name the page.

    Raises:
        StoreError: if the run is damaged or the report cannot be written.
    """
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415 -- keeps `uncork --help` fast

    row: Kind[RunResult] = kind_named("experiment")
    result = row.read(folder)
    pages.report(row, folder, result, "terminal", None)
    return result
