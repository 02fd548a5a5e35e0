"""Report a stored run: `uncork report`."""

from __future__ import annotations

import webbrowser
from pathlib import Path

from uncork.cli import pages
from uncork.cli.pages import BenchForm, Form, check_forms, check_page, chosen_form
from uncork.cli.runs.last_run import note_skipped
from uncork.errors import UsageError
from uncork.model.results.experiment import RunResult
from uncork.requests.stored_options import ReportOptions
from uncork.store.layout import find_run, read_manifest
from uncork.workbench.documents.kinds import Kind, kind_named, kind_of
from uncork.workbench.documents.stacks import read_stacks
from uncork.workbench.load.sessions import write_hdr_log


def report(options: ReportOptions) -> None:
    """Show the report of a stored run."""
    check_forms(json=options.as_json, markdown=options.markdown, go_bench=options.go_bench)
    for file in (options.html, options.hdr_log):
        check_page(file)
    folder = find_run(options.runs, options.run)
    note_skipped(options.runs, options.run, options.against)
    kind = read_manifest(folder).kind
    if kind != "load" and (options.go_bench or options.hdr_log is not None):
        raise UsageError(f"--go-bench and --hdr-log require a load; {folder.name} is a run of kind {kind}")
    if kind != "cpu" and options.against is not None:
        raise UsageError(f"--against requires a CPU profile; {folder.name} is a run of kind {kind}")
    form: BenchForm = (
        "go-bench" if options.go_bench else chosen_form(as_json=options.as_json, markdown=options.markdown)
    )
    if options.hdr_log is not None:
        write_hdr_log(folder, options.hdr_log)
    row = kind_of(folder)
    found = row.read(folder)
    if options.against is not None:
        found = read_stacks(folder, against=options.against)
    pages.report(row, folder, found, form, options.html, keep=False)
    if options.show and (form == "terminal" or options.html is not None):
        webbrowser.open((options.html or folder / "report.html").resolve().as_uri())


def write_reports(folder: Path, form: Form, page: Path | None) -> RunResult:
    """Write an experiment's report into its folder (HTML, Markdown, JSON), and print it in a form.

    `page` names another file for the HTML page. Raises StoreError if the run is damaged or the
    report cannot be written.
    """
    row: Kind[RunResult] = kind_named("experiment")
    result = row.read(folder)
    pages.report(row, folder, result, form, page)
    return result
