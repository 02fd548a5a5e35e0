"""Load-test a server: `uncork load sql`, which accepts pgbench's options."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from uncork.cli import console
from uncork.cli.load.finish import check_outputs, counted_progress, finish_load
from uncork.cli.places import redacted_command
from uncork.engines.tpcb import Progress
from uncork.errors import UsageError
from uncork.load import builtin
from uncork.model.load import LoadProgress
from uncork.requests.jobs import LoadJob, TablesJob
from uncork.requests.sql import cluster_of_sql, read_request, sweep_of_sql
from uncork.requests.sql_options import SqlOptions
from uncork.requests.sweep import sweep_request
from uncork.workbench.load.sessions import LoadSession, make_tables, new_load, sql_files

if TYPE_CHECKING:
    from uncork.cluster.loads import ClusterLoad


def load_sql(options: SqlOptions) -> None:
    """Load a server, sweep the load, create pgbench's tables, or show built-in scripts."""
    if options.show_script is not None or "list" in (options.builtin or ()):
        _show_builtin(options.show_script)
        return
    job = read_request(
        options,
        read=_read,
        files=sql_files,
        draw_seed=lambda: secrets.randbits(63),
        now_seed=time.time_ns() // 1000,
        log_id=str(os.getpid()),
        command=redacted_command(sys.argv[1:]),
    )
    check_outputs(options)
    job = replace(job, server=replace(job.server, password=console.asked_password(options)))
    if isinstance(job, TablesJob):
        _make_tables(job, quiet=options.quiet)
        return
    sweep = sweep_request(sweep_of_sql(options, job.spec))
    if sweep is None:
        _load(job, options)
        return
    if sweep.spec.axis == "clients":  # an embedded server has room for the highest level
        job = replace(job, spec=replace(job.spec, clients=int(sweep.spec.end)))
    from uncork.cli.load.sweep import sweep_load  # noqa: PLC0415 -- only for sweeps

    sweep_load(job, sweep, options, cluster_of_sql(options, job.spec, sweep))


def _load(job: LoadJob, options: SqlOptions) -> None:
    request = cluster_of_sql(options, job.spec)
    session: LoadSession | ClusterLoad
    if request is None:
        session = new_load(options.runs, job)
    else:
        from uncork.cli.load.finish import cluster_load  # noqa: PLC0415 -- only with --nodes

        session = cluster_load(job, request, options)
    console.note(f"run {session.folder.name}")
    spec = job.spec
    each = None if spec.progress_s else spec.operations_each
    with counted_progress(each and each * spec.clients, "transactions") as counted:
        progress = _progress(options, open_loop=spec.arrivals is not None) if spec.progress_s else counted
        if isinstance(session, LoadSession):
            quiet = spec.verbosity == "quiet"
            outcome = session.run(progress, console.note, messages=None if quiet else _write_messages)
        else:
            outcome = session.run(progress, console.note)
    finish_load(session.folder, outcome, options, statements=options.per_command)


def _write_messages(lines: list[str], left_out: int) -> None:
    for line in lines:
        typer.echo(line, err=True)
    if left_out:
        typer.echo(f"({left_out} lines left out: more than could be printed)", err=True)


def _make_tables(job: TablesJob, *, quiet: bool) -> None:
    conninfo = job.server.address().conninfo()
    made = make_tables(conninfo, job.tables, None if quiet else _filling())
    steps = ", ".join(f"{step.name} {step.elapsed_ns / 1e9:.2f} s" for step in made.steps)
    console.note(f"done in {made.elapsed_ns / 1e9:.2f} s ({steps}).")


def _filling() -> Callable[[Progress], None]:
    """Return a function that reports how many rows are filled, at most every five seconds and at the end."""
    shown = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal shown
        if progress.rows < progress.total and time.monotonic() - shown < 5:
            return
        shown = time.monotonic()
        done = 100 * progress.rows // progress.total
        seconds = progress.elapsed_ns / 1e9
        console.note(f"{progress.rows} of {progress.total} tuples ({done}%) done (elapsed {seconds:.2f} s)")

    return show


def _show_builtin(name: str | None) -> None:
    if name is not None:
        script = builtin.find(name)
        typer.echo(f"-- {script.name}: {script.description}\n{script.text}", nl=False)
        return
    typer.echo("Available builtin scripts:")
    for script in builtin.SCRIPTS.values():
        typer.echo(f"  {script.name:>13}: {script.description}")


def _read(name: str) -> str:
    """Read a script or a trace; ``-`` is standard input."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f'could not open file "{name}": {error.strerror}') from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{name} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def _progress(options: SqlOptions, *, open_loop: bool) -> Callable[[LoadProgress], None]:
    from uncork.workbench.event_words import progress_line  # noqa: PLC0415 -- only with -P

    limited = open_loop and options.latency_limit is not None
    tries = options.max_tries not in (None, 1)

    def show(progress: LoadProgress) -> None:
        at = time.time() if options.progress_timestamp else None
        line = progress_line(progress, open_loop=open_loop, at=at, limited=limited, tries=tries)
        typer.echo(line, err=True)

    return show
