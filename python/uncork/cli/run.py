"""Verbs that make runs: run, rerun, plan, new."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.next_step import say_next
from uncork.errors import RunError, UsageError

if TYPE_CHECKING:
    from uncork.requests.source import Source
    from uncork.workbench.experiment.gate import Expectation
    from uncork.workbench.experiment.session import RunSession

__all__ = ["measure", "parse_expectations", "register", "run_session"]


def register(app: typer.Typer) -> None:
    """Add the verbs to the command line."""
    app.command("run", epilog=examples_of("run"))(run)
    app.command("rerun", epilog=examples_of("rerun"))(rerun)
    app.command("plan", epilog=examples_of("plan"))(plan)
    app.command("new", epilog=examples_of("new"))(new)


def run(
    file: Annotated[
        Path | None, typer.Argument(metavar="[FILE]", help="Experiment file (TOML).", show_default=False)
    ] = None,
    levels: options.Levels = None,
    workload: options.Workloads = None,
    budget: options.Budget = None,
    precision: options.Precision = None,
    seed: options.Seed = None,
    dsn: options.Dsn = None,
    pg_bin: options.PgBin = None,
    port: options.Port = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Go on with a stored run: its id, or last.")
    ] = None,
    expect: options.Expect = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Run an experiment and report which variant is better, by how much, and why."""
    from uncork.requests.source import file_source, run_source  # noqa: PLC0415
    from uncork.store.layout import find_run  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.query import RunReader  # noqa: PLC0415
    from uncork.workbench.experiment.session import new_run, resume_run  # noqa: PLC0415

    changes = options.collect(levels, workload, budget, precision, seed)
    choice = options.server(dsn, pg_bin, port)
    if resume is not None:
        if file is not None or levels or workload or seed is not None:
            raise UsageError("--resume goes on with a run as it was: no FILE, --set, --workload or --seed")
        folder = find_run(runs, resume)
        source = run_source(RunReader(folder), changes)
        expectations = parse_expectations(expect, source)
        session = resume_run(folder, source, choice)
    elif file is None:
        raise UsageError("name an experiment file (`uncork new` writes one), or --resume a stored run")
    else:
        source = file_source(file, changes)
        expectations = parse_expectations(expect, source)
        session = new_run(runs, source, choice)
    _warn(source)
    measure(session, expectations)


def rerun(
    run_id: options.StoredRun,
    budget: options.Budget = None,
    precision: options.Precision = None,
    seed: options.Seed = None,
    dsn: options.Dsn = None,
    pg_bin: options.PgBin = None,
    port: options.Port = None,
    expect: options.Expect = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Measure a stored run's experiment again, as a new run: the same file, SQL, levels and seed."""
    from uncork.requests.source import run_source  # noqa: PLC0415
    from uncork.store.layout import find_run  # noqa: PLC0415
    from uncork.store.query import RunReader  # noqa: PLC0415
    from uncork.workbench.experiment.session import new_run  # noqa: PLC0415

    reader = RunReader(find_run(runs, run_id))
    source = run_source(reader, options.collect(None, None, budget, precision, seed))
    if reader.manifest.server.startswith("existing") and dsn is None:
        raise UsageError(
            f"run {reader.manifest.id} was measured on {reader.manifest.server}; name that server with --dsn"
        )
    expectations = parse_expectations(expect, source)
    session = new_run(runs, source, options.server(dsn, pg_bin, port))
    _warn(source)
    measure(session, expectations)


def _warn(source: Source) -> None:
    """Say what cannot end as people expect, of a file of their own: a case is as it was published."""
    from uncork.experiment.plan.order import plan_warnings  # noqa: PLC0415 -- keeps `uncork --help` fast

    for sentence in plan_warnings(source.spec) if source.case is None else ():
        console.note(f"warning: {sentence}")


def plan(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Experiment file (TOML).")],
    levels: options.Levels = None,
    workload: options.Workloads = None,
    budget: options.Budget = None,
    precision: options.Precision = None,
    seed: options.Seed = None,
    as_json: options.AsJson = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Check an experiment file and show what it would run, and how precise it will be, without running it.

    The forecast uses the scatter of the newest stored run of the same experiment, or else typical values.
    """
    from uncork.requests.source import file_source  # noqa: PLC0415
    from uncork.workbench.experiment.forecasts import plan_with_forecast  # noqa: PLC0415

    source = file_source(file, options.collect(levels, workload, budget, precision, seed))
    document = plan_with_forecast(runs, source)
    if as_json:
        typer.echo(json.dumps(asdict(document), indent=2))
    else:
        console.show_plan(document)


def new(
    file: Annotated[Path, typer.Argument(metavar="[FILE]", help="Where to write it.")] = Path(
        "experiment.toml"
    ),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented experiment file to start from."""
    from uncork.requests.source import starter  # noqa: PLC0415

    if file.exists() and not force:
        raise UsageError(f"{file} exists; choose another name, or --force to overwrite it")
    try:
        file.write_text(starter("experiment"))
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
    typer.echo(f"wrote {file}; next: uncork plan {file}, then uncork run {file}")


def parse_expectations(expect: list[str] | None, source: Source) -> list[Expectation]:
    """Read `--expect`, before anything is made or run; raises UsageError."""
    from uncork.workbench.experiment.gate import parse_expectation  # noqa: PLC0415

    spec = source.spec
    return [parse_expectation(text, list(spec.variants), spec.baseline) for text in expect or ()]


def measure(session: RunSession, expectations: list[Expectation]) -> None:
    """Run a session under a progress view, then write and show its report, and check expectations.

    A run that breaks off still gets its report, if anything was measured; its error decides the status.
    """
    from uncork.cli.report import write_reports  # noqa: PLC0415
    from uncork.workbench.experiment.gate import check  # noqa: PLC0415

    try:
        run_session(session)
    except (RunError, KeyboardInterrupt):
        if session.measured():
            write_reports(session.folder)
        raise
    status, sentences = check(write_reports(session.folder), expectations)
    for sentence in sentences:
        console.note(sentence)
    say_next(session.folder.parent)
    if status or session.refused:
        raise typer.Exit(status or ExitStatus.USAGE)


def run_session(session: RunSession, then: str = "go on with: uncork run --resume") -> None:
    """Measure under a progress view. What was measured until a break is kept: `then` says what to do with it.

    Raises:
        UncorkError, KeyboardInterrupt: what broke the run off, after saying where its results are kept.
    """
    from uncork.cli.progress import progress_view  # noqa: PLC0415 -- keeps `uncork --help` fast

    try:
        with (
            progress_view(session.folder.name, session.source.spec.stop.budget) as view,
            closing(session.events()) as events,
        ):
            for event in events:
                view.show(event)
    except (RunError, KeyboardInterrupt):
        if session.measured():
            console.note(f"kept what was measured; {then} {session.folder.name}")
        raise
