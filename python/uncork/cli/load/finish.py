"""Show the result of a load, and end with its exit status: shared by SQL and HTTP."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from uncork.analysis.load.result import went_wrong
from uncork.cli import console
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.pages import BenchForm, check_page, report
from uncork.errors import UsageError
from uncork.model.load import ClusterRequest, LoadOutcome, LoadProgress
from uncork.model.results.load import LoadResult
from uncork.model.units import format_count
from uncork.report.load.document import render_load_terminal
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import AnyLoad, SweepRequest
from uncork.requests.sql_options import SqlOptions
from uncork.workbench.documents.kinds import Kind, kind_named
from uncork.workbench.load.sessions import write_hdr_log

if TYPE_CHECKING:
    from uncork.cluster.loads import ClusterLoad
    from uncork.workbench.load.sweeps import SweepSession


def check_outputs(options: SqlOptions | HttpOptions) -> None:
    """Raise UsageError if a file that the options name could not be written."""
    for path in (options.html, options.hdr_log):
        check_page(path)


def finish_load(
    folder: Path, outcome: LoadOutcome, options: SqlOptions | HttpOptions, *, statements: bool = False
) -> None:
    """Show the result of a load and write its reports; raise typer.Exit unless all went well.

    Raises StoreError if a report cannot be written.
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
    console.end_early(outcome, "", "what was measured until then is kept")
    if went_wrong(result):
        raise typer.Exit(ExitStatus.RUN_ERROR)


@contextmanager
def counted_progress(total: int | None, noun: str) -> Iterator[Callable[[LoadProgress], None] | None]:
    """Show how many of `total` operations have ended, until the block ends; None if their number is open."""
    if total is None:
        yield None
        return
    ended = 0

    def show(progress: LoadProgress) -> None:
        nonlocal ended
        ended += progress.succeeded + progress.failed + progress.skipped
        share = f"{100 * min(ended, total) // total} %"
        rate = progress.succeeded / progress.seconds if progress.seconds else 0.0
        text = f"{format_count(ended)} of {format_count(total)} {noun} ({share}), {rate:.1f} {noun}/s"
        console.show_live(text, progress.elapsed_ns)

    try:
        yield show
    finally:
        console.end_live()


def cluster_load(job: AnyLoad, request: ClusterRequest, options: SqlOptions | HttpOptions) -> ClusterLoad:
    """Return a load from nodes that may start. A cluster that others use too requires a confirmation.

    Raises:
        UsageError: if the load cannot be sent like that, or nobody can be asked.
        typer.Exit: if the person declines.
    """
    from uncork.cluster.loads import new_cluster_load, planned_load, statement  # noqa: PLC0415 -- only with --nodes
    from uncork.cluster.ray_nodes import check_installed  # noqa: PLC0415

    check_installed()
    plan = planned_load(job, request)
    confirm_cluster(statement(plan.size, request), request, yes=options.yes)
    return new_cluster_load(options.runs, plan)


def cluster_sweep(
    job: AnyLoad, sweep: SweepRequest, request: ClusterRequest, options: SqlOptions | HttpOptions
) -> SweepSession:
    """Return a sweep from nodes that may start.

    Raises:
        UsageError, typer.Exit: see `cluster_load`.
    """
    from uncork.cluster.loads import largest_step, new_cluster_sweep, statement  # noqa: PLC0415 -- only with --nodes
    from uncork.cluster.ray_nodes import check_installed  # noqa: PLC0415

    check_installed()
    size = largest_step(job, sweep, request).size
    confirm_cluster(f"at the highest level, {statement(size, request)}", request, yes=options.yes)
    return new_cluster_sweep(options.runs, job, sweep, request)


def confirm_cluster(sentence: str, request: ClusterRequest, *, yes: bool) -> None:
    """Say what will happen on a cluster. A cluster that others use too requires a confirmation.

    Raises:
        UsageError: if nobody can be asked.
        typer.Exit: if the person declines.
    """
    console.note(sentence)
    if not request.own and not yes:
        if not sys.stdin.isatty():
            raise UsageError("work on a cluster must be confirmed: add --yes")
        if not typer.confirm("Start it?", err=True):
            raise typer.Exit
