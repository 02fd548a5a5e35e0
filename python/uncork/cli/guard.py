"""Guard against regressions: `uncork guard`."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from pathlib import Path

import typer

from uncork.cli import console
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.run import run_session, start_of
from uncork.cli.runs.last_run import note_skipped
from uncork.errors import StoreError
from uncork.model.results.guard import GuardResult
from uncork.report.guard.pipeline import guard_gobench, guard_junit, guard_markdown
from uncork.requests.connection import measured_server
from uncork.requests.guard import guard_request
from uncork.requests.guard_options import GuardOptions
from uncork.store.layout import write_atomically
from uncork.store.query import RunReader
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.experiment.session import choose_server
from uncork.workbench.guard.guards import carry_out_guard, guard_target


def guard(options: GuardOptions) -> None:
    """Guard, show the result, and raise typer.Exit with 3 or 4 unless all gates pass."""
    options = measured_server(options, console.asked_password)
    for file in (options.junit, options.gobench, options.summary, options.html):
        check_page(file)
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    request = guard_request(
        options,
        guard_target(options.target, options.resume),
        choose_server(options.dsn, options.pg_bin, options.port),
        words=("uncork", *sys.argv[1:]),
    )
    note_skipped(options.runs, options.target)
    measure = partial(run_session, then="see it with: uncork report")
    result, folder = carry_out_guard(options.runs, request, measure, console.note, start_of(options))
    report(kind_named("guard"), folder, result, form, options.html)
    _write(folder, result, options)
    if result.status:
        raise typer.Exit(result.status)


def _write(folder: Path, result: GuardResult, options: GuardOptions) -> None:
    if options.junit is not None:
        write_atomically(options.junit, guard_junit(result))
    if options.gobench is not None:
        environment = {}
        with suppress(StoreError):
            environment = RunReader(folder).environment()
        write_atomically(options.gobench, guard_gobench(result, environment))
    if options.summary is not None:
        try:
            with options.summary.open("a") as file:
                file.write(guard_markdown(result) + "\n")
        except OSError as error:
            raise StoreError(f"cannot write {options.summary}: {error.strerror}") from error
