"""Load a server: `uncork load sql`, which speaks pgbench."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from uncork.cli import console
from uncork.cli.examples import examples_of
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.load import options as shared
from uncork.cli.load import sql_options as given
from uncork.cli.options import DEFAULT_RUNS
from uncork.cli.pages import BenchForm, check_page, report
from uncork.cli.stored_command import redacted_command
from uncork.errors import UsageError
from uncork.model.load import LoadOutcome, LoadProgress

if TYPE_CHECKING:
    from uncork.engines.tpcb import Progress
    from uncork.model.results.load import LoadResult
    from uncork.requests.jobs import LoadJob, TablesJob
    from uncork.requests.sql import SqlOptions
    from uncork.workbench.documents.kinds import Kind

__all__ = ["finish_load", "register"]

_app = typer.Typer(no_args_is_help=True, help="Load-test a server or a service.")


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    from uncork.cli.load import http as load_http  # noqa: PLC0415 -- it uses what is here

    load_http.register(_app)
    app.add_typer(_app, name="load")


@_app.command("sql", epilog=examples_of("load sql"))
def sql(
    database: given.Database = None,
    host: given.Host = None,
    port: given.Port = None,
    user: given.User = None,
    database_name: given.DatabaseName = None,
    dsn: given.Dsn = None,
    embedded: given.Embedded = False,
    pg_bin: given.PgBin = None,
    builtin: given.Builtin = None,
    file: given.File = None,
    skip_some_updates: given.SkipUpdates = False,
    select_only: given.SelectOnly = False,
    define: given.Define = None,
    scale: given.Scale = None,
    show_script: given.ShowScript = None,
    clients: given.Clients = None,
    jobs: given.Jobs = None,
    protocol: given.Protocol = None,
    pipeline: given.Pipeline = None,
    connect_each: given.ConnectEach = False,
    max_tries: given.MaxTries = None,
    no_vacuum: given.NoVacuum = False,
    vacuum_all: given.VacuumAll = False,
    random_seed: given.RandomSeed = None,
    transactions: given.Transactions = None,
    time: given.Time = None,
    rate: given.Rate = None,
    arrivals: given.Arrivals = None,
    max_clients: given.MaxClients = None,
    latency_limit: given.LatencyLimit = None,
    sweep: given.Sweep = None,
    to: given.To = None,
    objective: shared.Objective = None,
    budget: shared.Budget = None,
    progress: shared.Progress = None,
    progress_timestamp: given.ProgressTimestamp = False,
    per_command: given.PerCommand = False,
    failures_detailed: given.FailuresDetailed = False,
    as_json: shared.AsJson = False,
    go_bench: shared.GoBench = False,
    html: shared.Html = None,
    hdr_log: shared.HdrLog = None,
    log: given.Log = False,
    log_prefix: given.LogPrefix = None,
    sampling_rate: given.SamplingRate = None,
    aggregate_interval: given.AggregateInterval = None,
    initialise: given.Initialise = False,
    init_steps: given.InitSteps = None,
    fillfactor: given.Fillfactor = None,
    foreign_keys: given.ForeignKeys = False,
    unlogged: given.Unlogged = False,
    tablespace: given.Tablespace = None,
    index_tablespace: given.IndexTablespace = None,
    partitions: given.Partitions = None,
    partition_method: given.PartitionMethod = None,
    quiet: given.Quiet = False,
    runs: shared.Runs = DEFAULT_RUNS,
) -> None:
    """Load-test a PostgreSQL server with pgbench's scripts or your own.

    Speaks pgbench: the same options, scripts and tables. The run is stored; `uncork report` shows it again.
    """
    words = locals()
    from uncork.requests.sql import SqlOptions  # noqa: PLC0415 -- keeps `uncork --help` fast

    asked = SqlOptions(**{name: value for name, value in words.items() if name in SqlOptions.__slots__})
    if show_script is not None or "list" in (builtin or ()):
        _show_builtin(show_script)
        return
    _load(asked, runs)


def _load(asked: SqlOptions, runs: Path) -> None:
    from uncork.cli.load.sweep import sweep_load  # noqa: PLC0415
    from uncork.requests.jobs import LoadJob  # noqa: PLC0415
    from uncork.requests.sql import read_request, sweep_of_sql  # noqa: PLC0415
    from uncork.requests.sweep import sweep_wanted  # noqa: PLC0415

    job = read_request(
        asked,
        read=_read,
        draw_seed=lambda: secrets.randbits(63),
        now_seed=time.time_ns() // 1000,
        log_id=str(os.getpid()),
        command=redacted_command(sys.argv[1:]),
    )
    for path in (asked.html, asked.hdr_log):
        check_page(path)
    if isinstance(job, LoadJob):
        wanted = sweep_wanted(sweep_of_sql(asked, job.spec))
        if wanted is None:
            _carry_out(job, asked, runs)
        else:
            if wanted.spec.axis == "clients":  # an embedded server has room for the highest level
                job = replace(job, spec=replace(job.spec, clients=int(wanted.spec.end)))
            sweep_load(job, wanted, runs, as_json=asked.as_json, html=asked.html)
    else:
        _make_tables(job, quiet=asked.quiet)


def _carry_out(job: LoadJob, asked: SqlOptions, runs: Path) -> None:
    """Load, show what came of it, and end with the status that says whether all went well."""
    from uncork.workbench.load.sql import new_load  # noqa: PLC0415

    session = new_load(runs, job)
    console.note(f"run {session.folder.name}")
    progress = _progress(asked) if job.spec.progress_s else None
    outcome = session.run(progress, console.note)
    form: BenchForm = "json" if asked.as_json else "go-bench" if asked.go_bench else "terminal"
    finish_load(session.folder, outcome, form, asked.html, asked.hdr_log, statements=asked.per_command)


def finish_load(
    folder: Path,
    outcome: LoadOutcome,
    form: BenchForm,
    html: Path | None,
    hdr_log: Path | None,
    *,
    statements: bool = False,
) -> None:
    """Show what came of a load, write it beside it, and end with the status that says whether all went well.

    Raises:
        StoreError: if something cannot be written.
    """
    from uncork.analysis.load.result import went_wrong  # noqa: PLC0415
    from uncork.report.load.terminal import render_load_terminal  # noqa: PLC0415
    from uncork.workbench.documents.kinds import kind_named  # noqa: PLC0415
    from uncork.workbench.load.sql import write_hdr_log  # noqa: PLC0415

    kind: Kind[LoadResult] = kind_named("load")
    result = kind.read(folder)
    if hdr_log is not None:
        write_hdr_log(folder, hdr_log)
    terminal = partial(render_load_terminal, statements=statements)
    report(kind, folder, result, form, html, terminal=terminal)
    if outcome is LoadOutcome.REFUSED:
        console.note(result.answer)
    if outcome is LoadOutcome.INTERRUPTED:
        console.note("interrupted; what was measured until then is kept")
        raise typer.Exit(ExitStatus.INTERRUPTED)
    if went_wrong(result):
        raise typer.Exit(ExitStatus.RUN_ERROR)


# ---- tables and scripts ----


def _make_tables(job: TablesJob, *, quiet: bool) -> None:
    from uncork.workbench.load.sql import make_tables  # noqa: PLC0415

    conninfo = job.server.address().conninfo()
    made = make_tables(conninfo, job.tables, None if quiet else _filling())
    steps = ", ".join(f"{step.name} {step.elapsed_ns / 1e9:.2f} s" for step in made.steps)
    console.note(f"done in {made.elapsed_ns / 1e9:.2f} s ({steps}).")


def _filling() -> Callable[[Progress], None]:
    """Return what tells how far the tables are filled, at most once in five seconds, and at the end."""
    told = time.monotonic()

    def tell(progress: Progress) -> None:
        nonlocal told
        if progress.rows < progress.total and time.monotonic() - told < 5:
            return
        told = time.monotonic()
        done = 100 * progress.rows // progress.total
        seconds = progress.elapsed_ns / 1e9
        console.note(f"{progress.rows} of {progress.total} tuples ({done}%) done (elapsed {seconds:.2f} s)")

    return tell


def _show_builtin(name: str | None) -> None:
    """Print one built-in script, or list all of them."""
    from uncork.load import builtin  # noqa: PLC0415

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


# ---- words ----


def _progress(asked: SqlOptions) -> Callable[[LoadProgress], None]:
    from uncork.workbench.event_words import progress_line  # noqa: PLC0415

    open_loop = asked.rate is not None or asked.arrivals is not None
    limited = open_loop and asked.latency_limit is not None
    tries = asked.max_tries not in (None, "1")

    def tell(progress: LoadProgress) -> None:
        at = time.time() if asked.progress_timestamp else None
        line = progress_line(progress, open_loop=open_loop, at=at, limited=limited, tries=tries)
        typer.echo(line, err=True)

    return tell
