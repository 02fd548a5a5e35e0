"""Report a stored run: `uncork report`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import console, options
from uncork.errors import UsageError

if TYPE_CHECKING:
    from uncork.model.result import RunResult

__all__ = ["register", "write_reports"]


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("report")(report)


def report(
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="A stored run: its id, a name, or last.")
    ] = "last",
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the HTML page here.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
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
    from uncork.cli.load import LoadForm, report_load  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.cli.load_sweep import report_sweep  # noqa: PLC0415
    from uncork.cli.profile import LogForm, report_log  # noqa: PLC0415
    from uncork.cli.profile_cpu import CpuForm, report_cpu  # noqa: PLC0415
    from uncork.cli.profile_database import report_database  # noqa: PLC0415
    from uncork.report.json_document import render_json  # noqa: PLC0415
    from uncork.report.markdown import render_markdown  # noqa: PLC0415
    from uncork.store.layout import find_run, read_manifest  # noqa: PLC0415
    from uncork.workbench.results import build_result  # noqa: PLC0415

    folder = find_run(runs, run_id)
    kind = read_manifest(folder).kind
    if kind != "load" and (go_bench or hdr_log is not None):
        raise UsageError(f"--go-bench and --hdr-log are for loads; {folder.name} is a run of kind {kind}")
    if kind != "cpu" and against is not None:
        raise UsageError(f"--against is for stacks; {folder.name} is a run of kind {kind}")
    if kind == "cpu":
        cpu_form: CpuForm = "markdown" if markdown else "json" if as_json else "terminal"
        report_cpu(folder, cpu_form, html=html, against=against or "")
        if show:
            webbrowser.open((html or folder / "report.html").resolve().as_uri())
        return
    if kind in ("log", "database"):
        log_form: LogForm = "markdown" if markdown else "json" if as_json else "terminal"
        again = report_log if kind == "log" else report_database
        again(folder, log_form, html=html)
        if show:
            webbrowser.open((html or folder / "report.html").resolve().as_uri())
        return
    if kind == "sweep":
        report_sweep(folder, "markdown" if markdown else "json" if as_json else "terminal", html=html)
        if show:
            webbrowser.open((html or folder / "report.html").resolve().as_uri())
        return
    if kind == "load":
        form: LoadForm = (
            "markdown" if markdown else "json" if as_json else "go-bench" if go_bench else "terminal"
        )
        report_load(folder, form, html=html, hdr_log=hdr_log)
        if show:
            webbrowser.open((html or folder / "report.html").resolve().as_uri())
        return
    if markdown or as_json:
        result = build_result(folder)
        typer.echo(render_json(result) if as_json else render_markdown(result))
        return
    write_reports(folder, html=html)
    if show:
        webbrowser.open((html or folder / "report.html").resolve().as_uri())


def write_reports(folder: Path, *, html: Path | None = None) -> RunResult:
    """Write a run's report beside it (HTML, Markdown, JSON), show it, and name the page.

    Raises:
        StoreError: if the run is damaged or the report cannot be written.
    """
    from uncork.report.html import render_html  # noqa: PLC0415
    from uncork.report.json_document import render_json  # noqa: PLC0415
    from uncork.report.markdown import render_markdown  # noqa: PLC0415
    from uncork.report.terminal import render_terminal  # noqa: PLC0415
    from uncork.store.layout import write_atomically  # noqa: PLC0415
    from uncork.workbench.evidence_results import evidence_flames  # noqa: PLC0415
    from uncork.workbench.results import build_result  # noqa: PLC0415

    result = build_result(folder)
    page = html or folder / "report.html"
    write_atomically(folder / "result.json", render_json(result))
    write_atomically(folder / "report.md", render_markdown(result))
    write_atomically(page, render_html(result, evidence_flames(folder, result)))
    render_terminal(result, console.output)
    console.output.print(f"\nreport: {page.resolve()}", soft_wrap=True)
    return result
