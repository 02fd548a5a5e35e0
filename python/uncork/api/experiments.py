"""Experiments from Python: run, run_case, plan, doctor and guard."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack, cast

from uncork.api.runs import ExperimentRun, GuardRun, Run, open_folder
from uncork.api.signature import documented
from uncork.api.words import Place, Progress, Quantity, Tell, calling, runs_folder, teller
from uncork.errors import RunError, UsageError
from uncork.requests.experiment_options import DoctorOptions, PlanOptions, RunOptions
from uncork.requests.guard import guard_request
from uncork.requests.guard_options import GuardOptions
from uncork.requests.hosts import HostOptions, host_request
from uncork.requests.option import from_values, options_of
from uncork.requests.server import ServerChoice
from uncork.requests.source import (
    Options,
    Source,
    case_source,
    changes_of,
    file_source,
    run_source,
    text_source,
)
from uncork.store.layout import find_run
from uncork.store.query import RunReader
from uncork.workbench.event_words import RunSteps
from uncork.workbench.experiment.session import ExperimentSession, Start, choose_server, new_run, resume_run
from uncork.workbench.guard.guards import carry_out_guard, guard_target

if TYPE_CHECKING:
    from uncork.experiment.plan.order import PlanDocument
    from uncork.workbench.experiment.doctor import Diagnosis


class PlanKeywords(TypedDict, total=False):
    """Keywords that change an experiment, declared in `PlanOptions`."""

    sets: Mapping[str, object] | None
    workloads: Sequence[str] | None
    budget: Quantity | None
    precision: str | None
    seed: int | None
    dsn: str | None
    pg_bin: Place | None


class ExperimentKeywords(PlanKeywords, total=False):
    """Keywords of `run` and `run_case`, declared in `RunOptions`."""

    port: int | None
    hosts: int | None
    cluster: str | None
    host_dsn: Sequence[str] | None


class DoctorKeywords(TypedDict, total=False):
    """Keywords of `doctor`, declared in `DoctorOptions`."""

    budget: Quantity | None
    dsn: str | None
    pg_bin: Place | None
    port: int | None


@documented(RunOptions, ExperimentKeywords)
def run(
    source: Place | None = None,
    *,
    resume: str | Run | None = None,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[ExperimentKeywords],
) -> ExperimentRun:
    """Run an experiment, and return the run with its verdicts.

    Args:
        source: Experiment file, or the text of one (several lines).
        options: see below.
        resume: Stored run to continue, instead of a source.
        progress: Function that takes a line at a time, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UsageError: if an option is invalid; all mistakes of an experiment file are reported at once.
        SetupError, ConnectError: if the data cannot be created, or the server not be reached.
        RunError: if the measurement breaks off; what was measured is kept.
        KeyboardInterrupt: on Ctrl-C; what was measured is kept.
    """
    with calling():
        read = from_values(RunOptions, options)
        root = runs_folder(runs)
        if resume is None:
            if source is None:
                raise UsageError("name an experiment file, give its text, or resume= a stored run")
            return _measured(_session(root, _source(source, _changes(read)), read, progress), progress)
        if source is not None or read.sets or read.workloads or read.seed is not None:
            raise UsageError(
                "--resume continues a run unchanged: leave out the source, --set, --workload and --seed"
            )
        if host_request(read) is not None:
            raise UsageError("--hosts starts a new run: leave out resume")
        folder = resume.folder if isinstance(resume, Run) else find_run(root, resume, failed=True)
        with closing(RunReader(folder)) as reader:
            stored = run_source(reader, _changes(read))
        return _measured(resume_run(folder, stored, _server(read)), progress)


@documented(RunOptions, ExperimentKeywords)
def run_case(
    name: str,
    *,
    full: bool = False,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[ExperimentKeywords],
) -> ExperimentRun:
    """Run a published case, or with `full` its full matrix; published figures stand beside the measured ones.

    The other keywords, and the errors raised, are those of `run`.
    """
    with calling():
        read = from_values(RunOptions, options)
        source = case_source(name, _changes(read), full=full)
        return _measured(_session(runs_folder(runs), source, read, progress), progress)


@documented(PlanOptions, PlanKeywords)
def plan(source: Place, *, runs: Place | None = None, **options: Unpack[PlanKeywords]) -> PlanDocument:
    """Check an experiment; return its trials, duration and expected precision without running it.

    The check covers the file's keys, SQL and settings, and with `dsn` the server. It starts no
    server. The forecast uses the standard deviation of the newest run of the same experiment in
    `runs`, or typical values if there is none. The keywords are those of `run`.

    Raises:
        UsageError: as `run`.
    """
    from uncork.workbench.experiment.checking import checked_plan  # noqa: PLC0415 -- only here

    with calling():
        read = from_values(RunOptions, options)
        file = "experiment" if _is_text(source) else str(source)
        return checked_plan(runs_folder(runs), _source(source, _changes(read)), _server(read), file)


class DoctorRun(ExperimentRun):
    """An experiment that compares a system with itself."""

    @property
    def diagnosis(self) -> Diagnosis:
        """The doctor's findings by heading, and the number of false alarms."""
        from uncork.load.sql import build_facts  # noqa: PLC0415 -- only here
        from uncork.workbench.experiment.doctor import diagnose  # noqa: PLC0415

        return diagnose(self.result, build_facts())


@documented(DoctorOptions, DoctorKeywords)
def doctor(
    *, progress: Progress = None, runs: Place | None = None, **options: Unpack[DoctorKeywords]
) -> DoctorRun:
    """Compare this system with itself; `diagnosis` holds the differences it can resolve and false alarms.

    The keywords are those of `run`.

    Raises:
        UncorkError: as `run`.
    """
    from uncork.workbench.experiment.doctor import doctor_source  # noqa: PLC0415 -- only here

    with calling():
        read = from_values(RunOptions, options)
        source = doctor_source(_changes(read))
        source = source if read.dsn is None else source.without_server_settings()
        return DoctorRun(_measured(new_run(runs_folder(runs), source, _server(read)), progress).folder)


def _changes(options: RunOptions) -> Options:
    return changes_of(options.sets, options.workloads, options.budget, options.precision, options.seed)


def _server(options: RunOptions) -> ServerChoice:
    return choose_server(options.dsn, options.pg_bin, options.port)


def _session(root: Path, source: Source, options: RunOptions, progress: Progress) -> ExperimentSession:
    return start_of(options, teller(progress))(root, source, _server(options))


def start_of(options: HostOptions, tell: Tell) -> Start:
    """Return what starts runs on this machine or on several hosts. The call itself confirms that.

    Raises:
        UsageError: if the options do not fit together, or Ray is missing.
    """
    request = host_request(options)
    if request is None:
        return new_run
    from uncork.cluster.experiments import start_on_hosts  # noqa: PLC0415 -- only with hosts

    return start_on_hosts(request, tell)


def _is_text(source: Place) -> bool:
    return isinstance(source, str) and "\n" in source


def _source(source: Place, changes: Options) -> Source:
    if _is_text(source):
        return text_source(str(source), changes, file="experiment", folder=Path())
    return file_source(Path(source), changes)


def measure(session: ExperimentSession, tell: Tell, then: str) -> None:
    """Measure and report progress; on any end, servers are stopped and what was measured is kept.

    `then` is the advice for a run that breaks off.
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


def _measured(session: ExperimentSession, progress: Progress) -> ExperimentRun:
    measure(session, teller(progress), "continue with uncork.run(resume={id!r})")
    return cast("ExperimentRun", open_folder(session.folder))


# ---- guards ----


Words = str | Sequence[str]


class GuardKeywords(TypedDict, total=False):
    """Keywords of `guard`, declared in `GuardOptions`."""

    candidate: Words | None
    baseline: Words | None
    gates: Words | None
    variant: str | None
    sets: Mapping[str, object] | None
    workloads: Sequence[str] | None
    budget: Quantity | None
    precision: str | None
    seed: int | None
    acknowledged: Place | None
    confirm: bool
    evidence: Sequence[str] | None
    same: bool
    dsn: str | None
    pg_bin: Place | None
    port: int | None
    stored: bool
    times: int
    everything: bool
    url: str | None
    header: Mapping[str, str] | None
    hosts: int | None
    cluster: str | None
    host_dsn: Sequence[str] | None


@documented(GuardOptions, GuardKeywords)
def guard(
    target: Place | Run | None = None,
    *,
    resume: str | Run | None = None,
    progress: Progress = None,
    runs: Place | None = None,
    **options: Unpack[GuardKeywords],
) -> GuardRun:
    """Check whether a candidate is worse than its baseline: measure both side by side and apply gates.

    Args:
        target: Experiment file, or a stored load, which is measured again.
        options: see below.
        resume: Run of an interrupted guard to continue, instead of a target.
        progress: Function that takes a line at a time, or True for standard error.
        runs: Where runs are stored.

    Raises:
        UncorkError, KeyboardInterrupt: as `uncork.run`. A broken gate raises nothing: see `GuardRun.check`.
    """
    place, going = (
        None if chosen is None else str(chosen.folder if isinstance(chosen, Run) else chosen)
        for chosen in (target, resume)
    )
    with calling():
        read = from_values(GuardOptions, {**options, "resume": going})
        named = guard_target(place, going)
        request = guard_request(
            read,
            named,
            choose_server(read.dsn, read.pg_bin, read.port),
            words=("uncork", "guard", named, *_command_words(options)),
        )
        tell = teller(progress)

        def measured(session: ExperimentSession) -> None:
            measure(session, tell, "see it with uncork.open({id!r})")

        _, folder = carry_out_guard(runs_folder(runs), request, measured, tell, start_of(read, tell))
    return GuardRun(folder)


def _command_words(given: GuardKeywords) -> Iterator[str]:
    """Yield the options of the command line that repeats a guard; headers may be secret and are left out."""
    values: Mapping[str, object] = {**given}
    options = {option.field: option for option in options_of(GuardOptions)}
    for name in GuardKeywords.__annotations__:
        value, option = values.get(name), options[name]
        flag = option.flags[-1]
        if value is None or value == option.default or option.field == "header":
            continue
        if isinstance(value, bool):
            yield flag.split("/")[0 if value else -1]
        elif isinstance(value, Mapping):
            for factor, levels in value.items():
                yield from (flag, f"{factor}={','.join(_many(levels))}")
        elif isinstance(value, timedelta):
            yield from (flag, f"{value.total_seconds():g}s")
        else:
            for word in _many(value) if option.many else [",".join(_many(value))]:
                yield from (flag, word)


def _many(value: object) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        return [str(value)]
    return [str(item) for item in value]
