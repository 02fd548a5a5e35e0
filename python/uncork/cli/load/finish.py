"""Show the result of a load, and end with its exit status: shared by SQL and HTTP."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import typer

from uncork.analysis.load.result import went_wrong
from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import BenchForm, check_page, report
from uncork.model.load import LoadOutcome
from uncork.model.results.load import LoadResult
from uncork.report.load.document import render_load_terminal
from uncork.requests.http_options import HttpOptions
from uncork.requests.sql_options import SqlOptions
from uncork.workbench.documents.kinds import Kind, kind_named
from uncork.workbench.load.sql import write_hdr_log


def check_outputs(options: SqlOptions | HttpOptions) -> None:
    """Raise UsageError if a file that the options name could not be written."""
    for path in (options.html, options.hdr_log):
        check_page(path)


def finish_load(
    folder: Path, outcome: LoadOutcome, options: SqlOptions | HttpOptions, *, statements: bool = False
) -> None:
    """Show the result of a load and write its reports; raise typer.Exit unless all went well.

    Raises:
        StoreError: if a report cannot be written.
    """
    kind: Kind[LoadResult] = kind_named("load")
    result = kind.read(folder)
    if options.hdr_log is not None:
        write_hdr_log(folder, options.hdr_log)
    terminal = partial(render_load_terminal, statements=statements)
    form: BenchForm = "json" if options.as_json else "go-bench" if options.go_bench else "terminal"
    report(kind, folder, result, form, options.html, terminal=terminal)
    if outcome is LoadOutcome.REFUSED and not (form == "terminal" and console.output.is_terminal):
        console.note(result.answer)  # on a terminal, the report has shown it
    if outcome is LoadOutcome.INTERRUPTED:
        console.note("interrupted; what was measured until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if went_wrong(result):
        raise typer.Exit(ExitStatus.RUN_ERROR)
