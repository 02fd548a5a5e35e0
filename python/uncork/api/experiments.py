"""Experiments from Python: run, run_case, rerun, plan, doctor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, cast

from uncork.api.runs import ExperimentRun, Run, open_folder
from uncork.api.words import (
    Place,
    Progress,
    Quantity,
    Tell,
    calling,
    duration_text,
    level_texts,
    runs_folder,
    teller,
)
from uncork.errors import RunError, UsageError
from uncork.requests.source import (
    Options,
    Source,
    case_source,
    changed_options,
    file_source,
    run_source,
    text_source,
)
from uncork.store.layout import find_run
from uncork.store.query import RunReader
from uncork.workbench.event_words import RunSteps
from uncork.workbench.experiment.session import RunSession, choose_server, new_run, resume_run

if TYPE_CHECKING:
    from uncork.experiment.plan.order import PlanDocument
    from uncork.workbench.experiment.doctor import Diagnosis

__all__ = ["DoctorRun", "changed", "doctor", "measure", "plan", "run", "run_case"]


def run(
    source: Place | None = None,
    *,
    sets: Mapping[str, object] | None = None,
    workloads: Sequence[str] = (),
    budget: Quantity | None = None,
    precision: str | None = None,
    seed: int | None = None,
    dsn: str | None = None,
    pg_bin: Place | None = None,
    port: int | None = None,
    resume: str | Run | None = None,
    progress: Progress = None,
    runs: Place | None = None,
) -> ExperimentRun:
    """Run an experiment, and return what it says.

    Args:
        source: an experiment file, or the text of one (whatever has several lines).
        sets: levels to keep of factors: ``{"rows": [1000, 10000], "index": "none"}``.
        workloads: the workloads to keep; all, if none is named.
        budget: the longest it may take, such as ``"5min"``.
        precision: how narrow an interval must be, such as ``"3%"``.
        seed: of everything random.
        dsn: an existing server to measure on, in databases of its own; else a server is started.
        pg_bin: the binaries of the server that is started, instead of our own.
        port: its TCP port.
        resume: a stored run to go on with, in place of a source.
        progress: a function that takes a line at a time, or True for standard error.
        runs: where runs are stored.

    Raises:
        UsageError: if what is asked for is wrong; an experiment's mistakes are all told at once.
        SetupError, ConnectError: if the data cannot be made, or the server not be reached.
        RunError: if something breaks while it is measured; what was measured is kept.
        KeyboardInterrupt: on Ctrl-C; what was measured is kept.
    """
    with calling():
        changes = changed(sets, workloads, budget, precision, seed)
        server = choose_server(dsn, None if pg_bin is None else Path(pg_bin), port)
        root = runs_folder(runs)
        if resume is None:
            if source is None:
                raise UsageError("name an experiment file, give its text, or resume= a stored run")
            return _measured(new_run(root, _source(source, changes), server), progress)
        if source is not None or sets or workloads or seed is not None:
            raise UsageError("--resume goes on with a run as it was: no source, --set, --workloads or --seed")
        folder = resume.folder if isinstance(resume, Run) else find_run(root, resume)
        with closing(RunReader(folder)) as reader:
            stored = run_source(reader, changes)
        return _measured(resume_run(folder, stored, server), progress)


def run_case(
    name: str,
    *,
    full: bool = False,
    sets: Mapping[str, object] | None = None,
    workloads: Sequence[str] = (),
    budget: Quantity | None = None,
    precision: str | None = None,
    seed: int | None = None,
    dsn: str | None = None,
    pg_bin: Place | None = None,
    port: int | None = None,
    progress: Progress = None,
    runs: Place | None = None,
) -> ExperimentRun:
    """Run a published case, with `full` its whole matrix; the published figures stand beside ours.

    The other words, and what it raises, are those of `run`.
    """
    with calling():
        changes = changed(sets, workloads, budget, precision, seed)
        server = choose_server(dsn, None if pg_bin is None else Path(pg_bin), port)
        return _measured(new_run(runs_folder(runs), case_source(name, changes, full=full), server), progress)


def plan(
    source: Place,
    *,
    sets: Mapping[str, object] | None = None,
    workloads: Sequence[str] = (),
    budget: Quantity | None = None,
    precision: str | None = None,
    seed: int | None = None,
    runs: Place | None = None,
) -> PlanDocument:
    """Check an experiment and return what it would run, and how precise it will be, without running it.

    The forecast uses the scatter of the newest run of the same experiment in `runs`, or else typical values.

    Raises:
        UsageError: as `run`.
    """
    from uncork.workbench.experiment.forecasts import plan_with_forecast  # noqa: PLC0415 -- only here

    with calling():
        wanted = _source(source, changed(sets, workloads, budget, precision, seed))
        return plan_with_forecast(runs_folder(runs), wanted)


class DoctorRun(ExperimentRun):
    """A system compared with itself."""

    @property
    def diagnosis(self) -> Diagnosis:
        """What the doctor says: headings with findings, and how many false alarms there were."""
        from uncork.load.sql import build_facts  # noqa: PLC0415 -- only here
        from uncork.workbench.experiment.doctor import diagnose  # noqa: PLC0415

        return diagnose(self.result, build_facts())


def doctor(
    *,
    budget: Quantity | None = None,
    dsn: str | None = None,
    pg_bin: Place | None = None,
    port: int | None = None,
    progress: Progress = None,
    runs: Place | None = None,
) -> DoctorRun:
    """Compare this system with itself: what can be told apart here? `diagnosis` says it.

    Raises:
        UncorkError: as `run`.
    """
    from uncork.workbench.experiment.doctor import doctor_source  # noqa: PLC0415 -- only here

    with calling():
        source = doctor_source(changed(None, (), budget, None, None))
        server = choose_server(dsn, None if pg_bin is None else Path(pg_bin), port)
        source = source if dsn is None else source.without_server_settings()
        return DoctorRun(_measured(new_run(runs_folder(runs), source, server), progress).folder)


def changed(
    sets: Mapping[str, object] | None,
    workloads: Sequence[str],
    budget: Quantity | None,
    precision: str | None,
    seed: int | None,
) -> Options:
    """Return what a call changes of an experiment."""
    return changed_options(
        level_texts(sets),
        (workloads,) if isinstance(workloads, str) else workloads,
        budget=duration_text(budget, "budget"),
        precision=precision,
        seed=seed,
    )


def _source(source: Place, changes: Options) -> Source:
    if isinstance(source, str) and "\n" in source:
        return text_source(source, changes, file="experiment", folder=Path())
    return file_source(Path(source), changes)


def measure(session: RunSession, tell: Tell, then: str) -> None:
    """Measure, telling how it goes; whatever ends it, no server is left and what was measured is kept.

    `then` is what to do with what was kept when it breaks off.
    """
    steps = RunSteps(session.source.spec.stop.budget)
    try:
        with closing(session.events()) as events:
            for number, event in enumerate(events):
                if number == 0:
                    tell(f"run {session.folder.name}")
                line = steps.line(event)
                if line is not None:
                    tell(line)
    except (RunError, KeyboardInterrupt) as error:
        if session.measured():
            error.add_note(f"kept what was measured; {then.format(id=session.folder.name)}")
        raise


def _measured(session: RunSession, progress: Progress) -> ExperimentRun:
    measure(session, teller(progress), "go on with uncork.run(resume={id!r})")
    return cast("ExperimentRun", open_folder(session.folder))
