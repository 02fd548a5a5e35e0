"""Verbs that run experiments: run, rerun, plan and case."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

import typer
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from uncork import cases
from uncork.cli import console
from uncork.cli.console import note, progress, talk
from uncork.cli.exit_codes import ExitStatus
from uncork.cli.load.finish import confirm_cluster
from uncork.cli.next_step import say_next
from uncork.cli.pages import Form, check_page, chosen_form
from uncork.cli.report import write_reports
from uncork.cli.runs.last_run import note_skipped
from uncork.errors import RunError, UsageError
from uncork.experiment.plan.order import plan_warnings
from uncork.experiment.run.events import Event, Preparing, RoundEnded, RoundStarted, TrialEnded
from uncork.requests.connection import measured_server
from uncork.requests.experiment_options import (
    CaseListOptions,
    CaseOptions,
    PlanOptions,
    RerunOptions,
    RunOptions,
)
from uncork.requests.hosts import HostOptions, host_request
from uncork.requests.source import Options, Source, case_source, changes_of, file_source, run_source
from uncork.store.layout import find_run
from uncork.store.query import RunReader
from uncork.workbench.event_words import RunSteps, event_line, time_left
from uncork.workbench.experiment.checking import checked_plan
from uncork.workbench.experiment.gate import Expectation, check, parse_expectation
from uncork.workbench.experiment.session import ExperimentSession, Start, choose_server, new_run, resume_run


def run(options: RunOptions) -> None:
    """Run an experiment, or continue a run, and show the report."""
    options = measured_server(options, console.asked_password)
    form = report_form(options)
    changes = changes_of(options.sets, options.workloads, options.budget, options.precision, options.seed)
    server = choose_server(options.dsn, options.pg_bin, options.port)
    if options.resume is not None:
        if host_request(options) is not None:
            raise UsageError("--hosts starts a new run: leave out --resume")
        if options.file is not None or options.sets or options.workloads or options.seed is not None:
            raise UsageError(
                "--resume continues a run unchanged: leave out FILE, --set, --workload and --seed"
            )
        folder = find_run(options.runs, options.resume, failed=True)
        source = run_source(RunReader(folder), changes)
    elif options.file is None:
        raise UsageError("name an experiment file (`uncork new` writes one), or --resume a stored run")
    else:
        folder, source = None, file_source(options.file, changes)
    expectations = parse_expectations(options.expect, source)
    _warn(source)
    start = start_of(options)
    measure(
        start(options.runs, source, server) if folder is None else resume_run(folder, source, server),
        expectations,
        form,
        options.html,
    )


def start_of(options: HostOptions) -> Start:
    """Return what starts the runs of experiments that the options ask for.

    On a cluster, the first start says what will happen, and asks if nobody has confirmed it. Raises
    UsageError if the options do not fit together, or Ray is missing. A start raises it too, and
    typer.Exit if a person declines.
    """
    request = host_request(options)
    if request is None:
        return new_run
    from uncork.cluster.experiments import start_on_hosts  # noqa: PLC0415 -- only with hosts

    def confirm(sentence: str) -> None:
        confirm_cluster(sentence, request.cluster, yes=options.yes)

    return start_on_hosts(request, console.note, confirm)


def rerun(options: RerunOptions) -> None:
    """Run a stored run's experiment again, and show the report."""
    options = measured_server(options, console.asked_password)
    form = report_form(options)
    reader = RunReader(find_run(options.runs, options.run))
    note_skipped(options.runs, options.run)
    source = run_source(reader, changes_of(None, None, options.budget, options.precision, options.seed))
    existing = reader.manifest.server.startswith("existing")
    if existing and options.dsn is None and options.host_dsn is None:
        naming = (
            "that server with --dsn" if options.hosts is None else "a server for each host with --host-dsn"
        )
        raise UsageError(f"run {reader.manifest.id} was measured on {reader.manifest.server}; name {naming}")
    expectations = parse_expectations(options.expect, source)
    server = choose_server(options.dsn, options.pg_bin, options.port)
    _warn(source)
    measure(start_of(options)(options.runs, source, server), expectations, form, options.html)


def report_form(options: RunOptions | RerunOptions | CaseOptions) -> Form:
    """Return the form in which the report is printed.

    Raises UsageError if two forms are requested, or the folder of the HTML page does not exist.
    """
    check_page(options.html)
    return chosen_form(as_json=options.as_json, markdown=options.markdown)


def _warn(source: Source) -> None:
    for sentence in plan_warnings(source.spec) if source.case is None else ():
        console.note(f"warning: {sentence}")


def plan(options: PlanOptions) -> None:
    """Show what an experiment file would run."""
    options = measured_server(options, console.asked_password)
    changes = changes_of(options.sets, options.workloads, options.budget, options.precision, options.seed)
    server = choose_server(options.dsn, options.pg_bin)
    document = checked_plan(options.runs, file_source(options.file, changes), server, str(options.file))
    if options.as_json:
        typer.echo(json.dumps(asdict(document), indent=2))
    else:
        console.show_plan(document)


def parse_expectations(expect: list[str] | None, source: Source) -> list[Expectation]:
    """Read `--expect` before anything is prepared or run; raises UsageError."""
    spec = source.spec
    return [parse_expectation(text, list(spec.variants), spec.baseline) for text in expect or ()]


def measure(
    session: ExperimentSession, expectations: list[Expectation], form: Form, page: Path | None
) -> None:
    """Run a session with a progress view, write and print its report, and check expectations.

    The report is printed in `form`; `page` names another file for the HTML page. A run that breaks
    off still gets a report if anything was measured; its error decides the exit status.
    """
    try:
        run_session(session)
    except (RunError, KeyboardInterrupt):
        if session.measured():
            write_reports(session.folder, form, page)
        raise
    status, sentences = check(write_reports(session.folder, form, page), expectations)
    for sentence in sentences:
        console.note(sentence)
    say_next(session.folder.parent)
    if status or session.refused:
        raise typer.Exit(status or ExitStatus.USAGE)


def run_session(session: ExperimentSession, then: str = "continue with: uncork run --resume") -> None:
    """Measure with a progress view. If the run breaks off, results are kept; `then` is the advice to print.

    Raises:
        UncorkError, KeyboardInterrupt: the cause of the break, after a note where the results are kept.
    """
    try:
        with (
            progress_view(session.folder.name, session.source.spec.stop.budget) as view,
            closing(session.events()) as events,
        ):
            for event in events:
                view.show(event)
    except (RunError, KeyboardInterrupt):
        if session.measured():
            console.note(f"kept what was measured; {session.then or then} {session.folder.name}")
        raise


@contextmanager
def progress_view(name: str, budget_ns: int) -> Iterator[PlainView | LiveView]:
    """Open the view for standard error: live in a terminal, otherwise plain."""
    note(f"run {name}")
    if not talk.is_terminal:
        yield PlainView(budget_ns)
        return
    columns = (
        TextColumn("[bold]{task.fields[stage]}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[what]}"),
        TextColumn("{task.fields[left]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=talk, transient=True, refresh_per_second=4) as bar:
        yield LiveView(bar, budget_ns)


class PlainView:
    """A line per step and round, at most one every ten seconds; what needs attention is always shown."""

    def __init__(self, budget_ns: int) -> None:
        self._steps = RunSteps(budget_ns)

    def show(self, event: Event) -> None:
        """Write a line for each step and round that is due; single trials get none."""
        line = self._steps.line(event)
        if line is not None:
            (progress if isinstance(event, Preparing | RoundStarted | RoundEnded) else note)(line)


class LiveView:
    """A bar with the stage, the current cell and block, the widest interval, and the time left."""

    def __init__(self, progress: Progress, budget_ns: int) -> None:
        self._progress = progress
        self._budget_ns = budget_ns
        self._task: TaskID = progress.add_task("", stage="starting", what="", left="", total=None)
        self._stage = ""
        self._interval = ""
        self._unbudgeted_ns = 0

    def show(self, event: Event) -> None:
        """Redraw."""
        if isinstance(event, Preparing):
            self._progress.update(
                self._task, stage="preparing", what=event.what, completed=event.done, total=event.total
            )
        elif isinstance(event, RoundStarted):
            self._stage = f"round {event.number}"
            self._unbudgeted_ns = event.elapsed_ns - event.used_ns
            self._progress.update(
                self._task, stage=self._stage, what="restarting the server", completed=0, total=event.trials
            )
        elif isinstance(event, TrialEnded):
            trial = event.trial
            parts = [trial.cell.name] if trial.cell.levels else []
            parts += [trial.workload, f"block {trial.block}", trial.arm.name]
            what = " · ".join(parts) + self._interval
            self._progress.update(
                self._task,
                advance=1,
                what=what,
                left=time_left(event.elapsed_ns - self._unbudgeted_ns, self._budget_ns),
            )
        else:
            if isinstance(event, RoundEnded):
                self._interval = f" · widest ±{event.widest:.1%}" if event.widest is not None else ""
            line = event_line(event)
            if line is not None:
                note(line)


# ---- published cases ----


def list_cases(_: CaseListOptions) -> None:
    """List the cases with their questions."""
    for name in cases.names():
        question = case_source(name, Options(), full=True).spec.experiment.question
        console.output.print(f"[bold]{name}[/]  {question}")


def run_case(options: CaseOptions) -> None:
    """Run a case, and show the report."""
    options = measured_server(options, console.asked_password)
    form = report_form(options)
    changes = changes_of(
        [*(options.sets or ()), *(options.rows or ())],
        options.workloads,
        options.budget,
        options.precision,
        options.seed,
    )
    source = case_source(options.case, changes, full=options.full)
    expectations = parse_expectations(options.expect, source)
    server = choose_server(options.dsn, options.pg_bin, options.port)
    measure(start_of(options)(options.runs, source, server), expectations, form, options.html)
