"""The options of the verbs that run experiments: run, rerun, plan, case, doctor and observe-cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from uncork.errors import UsageError
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.model.units import parse_share
from uncork.requests.hosts import HostOptions
from uncork.requests.option import Kind, Opt, duration, opt, pair, whole, with_unit
from uncork.requests.shared_options import (
    AsJson,
    Html,
    Markdown,
    MeasuredServer,
    Quiet,
    Runs,
    WatchedServer,
)

Levels = tuple[str, tuple[str, ...]]
"""A factor and the levels of it to keep."""


def _read_levels(text: str, option: str) -> Levels:
    factor, equals, values = text.partition("=")
    if not equals or not factor or not all(values.split(",")):
        raise UsageError(f"{option} {text}: write FACTOR=LEVEL or FACTOR=LEVEL,LEVEL")
    return factor, tuple(values.split(","))


def _take_levels(entry: tuple[str, object], option: str) -> Levels:
    factor, levels = entry
    many = [levels] if isinstance(levels, str) or not hasattr(levels, "__iter__") else levels
    texts = tuple(str(level) for level in many)
    if not texts:
        raise UsageError(f'{option}: no level is left of "{factor}"; name one, or leave the factor out')
    return factor, texts


def share() -> Kind:
    """Take a percentage above 0 and below 100, as in an experiment file, and return it as a fraction."""

    def read(text: str, option: str) -> float:
        try:
            value = parse_share(text)
        except ValueError as error:
            raise UsageError(f"{option}: {error}") from error
        if not 0 < value < 1:
            raise UsageError(f"{option} must be above 0% and below 100%; found {text}")
        return value

    return Kind(read, lambda value, option: read(str(value), option))


def _text_of(kind: Kind, unit: str = "") -> Kind:
    """Take what `kind` takes, and return it as text; a bare number gets `unit`."""

    def read(text: str, option: str) -> str:
        kind.read(text, option)
        return with_unit(text, unit) if unit else text

    return Kind(read, read)


SEED: Final = "Seed of the random number generator."

Sets = Annotated[
    list[Levels] | None,
    Opt(
        "--set FACTOR=LEVEL[,LEVEL...]",
        "Run only these levels of a factor; repeatable.",
        Kind(_read_levels, _take_levels),
        python='Levels to run, by factor: ``{"rows": [1000, 10000], "index": "none"}``.',
    ),
]
Workloads = Annotated[
    list[str] | None,
    Opt("--workload NAME", "Run only this workload; repeatable.", python="Workloads to run. Default: all."),
]
Budget = Annotated[
    int | None,
    Opt(
        "--budget TIME",
        'Maximum duration of the run, such as "30min".',
        duration(),
        python='Maximum duration, such as ``"5min"``.',
    ),
]
Precision = Annotated[
    float | None,
    Opt(
        "--precision PERCENT",
        'Stop once every interval is within ±PERCENT, such as "3%".',
        share(),
        python='Half-width of intervals at which the run stops, such as ``"3%"``.',
    ),
]
Seed = Annotated[int | None, Opt("--seed NUM", SEED, whole(0, 2**64 - 1))]
Expect = Annotated[
    list[str] | None,
    Opt(
        "--expect VARIANT=VERDICT",
        "Exit with 3 unless the variant is faster, slower, not-slower or no-difference in every cell; exit "
        "with 4 if the evidence does not decide. Repeatable.",
    ),
]


@dataclass(frozen=True, slots=True)
class RunOptions(HostOptions):
    """Run an experiment and report which variant is better, by how much, and why."""

    file: Path | None = opt("[FILE]", "Experiment file (TOML).")
    sets: Sets = None
    workloads: Workloads = None
    budget: Budget = None
    precision: Precision = None
    seed: Seed = None
    resume: str | None = opt("--resume RUN", "Continue an interrupted run: its id, or last.")
    expect: Expect = None
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class RerunOptions(HostOptions):
    """Run a stored run's experiment again, as a new run with the same file, SQL, levels and seed."""

    run: str = opt("RUN", "Stored run: its id, a name, or last.", required=True)
    budget: Budget = None
    precision: Precision = None
    seed: Seed = None
    expect: Expect = None
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class PlanOptions(MeasuredServer):
    """Check an experiment file; show its trials, duration and expected precision without running it.

    The check covers the keys of the file, the SQL, by PostgreSQL's grammar, and the values of settings. It
    starts no server. With --dsn it also checks that the server can be used, and changes nothing there.

    The forecast uses the standard deviation of the newest stored run of the same experiment, or
    typical values if there is none.
    """

    file: Path = opt("FILE", "Experiment file (TOML).", required=True)
    sets: Sets = None
    workloads: Workloads = None
    budget: Budget = None
    precision: Precision = None
    seed: Seed = None
    as_json: AsJson = False
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class NewOptions(WatchedServer):
    """Write a commented experiment file to start from, or one about a stored run.

    With --from, the file has the run's statement, its parameters with the values that the run stored, and the
    tables that it uses. From a load of a service, it has the service's command, a copy of its database, and
    the requests. What the run does not hold becomes a marked place, which `uncork plan` lists.
    """

    file: Path = opt("[FILE]", "File to write. Default: experiment.toml.", default=Path("experiment.toml"))
    force: bool = opt("--force", "Overwrite an existing file.", default=False)
    run: str | None = opt(
        "--from RUN",
        "Take the statement from this run of `profile logs`, `profile db` or `load sql`, or the service and "
        "its requests from this run of `load http`: its id, a name, or last.",
    )
    template: str | None = opt(
        "--template TEXT",
        "Choose the statement by a part of its text. Default: the one that takes the most time.",
    )
    changes: list[tuple[str, str]] | None = opt(
        "--change NAME=SQL",
        "Add a variant that executes this SQL after the set-up, such as "
        'index="CREATE INDEX ON orders (customer_id)"; repeatable.',
        pair(
            "=",
            "--change {value}: write NAME=SQL with a name of letters, digits, _ and -",
            r"[A-Za-z][\w-]{0,39}",
            r".*\S.*",
        ),
    )
    change_env: list[tuple[str, str]] | None = opt(
        "--change-env VARIABLE=VALUE",
        "Add a variant that starts the service with this environment variable, such as POOL=16; repeatable. "
        "For runs of `load http`.",
        pair(
            "=",
            "--change-env {value}: write VARIABLE=VALUE with a variable of letters, digits and _",
            r"[A-Za-z_]\w*",
            ".*",
        ),
    )
    dsn: str | None = opt(
        "--dsn CONNINFO",
        "Read the tables' definitions and statistics from this database; the connection only reads. For a "
        "service: the database to copy. Default: the load's --postgres.",
    )
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class CaseListOptions:
    """List the cases with their questions."""


@dataclass(frozen=True, slots=True)
class CaseOptions(HostOptions):
    """Run a case, and show its published figures beside the measured ones."""

    case: str = opt("CASE", "The case; `uncork case list` lists them.", required=True)
    full: bool = opt(
        "--full",
        "Run the full matrix instead of the quick part.",
        python="Run the full matrix instead of the quick part.",
        default=False,
    )
    rows: list[Levels] | None = opt(
        "--rows N[,N...]",
        "Data sizes, in cases that vary them; same as --set rows=N[,N...].",
        Kind(lambda text, option: _read_levels(f"rows={text}", option), _take_levels),
    )
    sets: Sets = None
    workloads: Workloads = None
    budget: Budget = None
    precision: Precision = None
    seed: Seed = None
    expect: Expect = None
    as_json: AsJson = False
    markdown: Markdown = False
    html: Html = None
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class DoctorOptions(MeasuredServer):
    """Measure in 20 s how small a difference this machine can resolve in 1, 5 and 30 minutes.

    Compares a statement with itself over several restarts of the server: first a short statement,
    then a long one.
    """

    self_test: bool = opt(
        "--self-test",
        "Run and store a whole experiment that compares the system with itself, and with one that has a "
        "known fifth more to do: noise floor, power, steal time, throttling, load generator overhead. Exit "
        "with 3 on a false alarm.",
        default=False,
    )
    budget: int | None = opt(
        "--budget TIME",
        "Duration of the measurement. Default: 20s, or 60s with --self-test.",
        duration(),
        python='Maximum duration. Default: ``"60s"``.',
    )
    as_json: AsJson = False
    quiet: Quiet = False
    runs: Runs = DEFAULT_RUNS


@dataclass(frozen=True, slots=True)
class CostOptions(MeasuredServer):
    """Measure the overhead of each observer: off and on, side by side, under load and idle.

    The observers are pg_stat_statements, auto_explain, logging of every statement, track_io_timing,
    uncork's own samplers and perf; each is a variant of one experiment. Unavailable observers are
    skipped with a reason. Two are measured separately: one reading of the catalogue (--only
    catalogue), and a profiling agent inside a service (--only agent).
    """

    builtin: str = opt(
        "-b, --builtin NAME", "Built-in script to load with. Default: select-only.", default="select-only"
    )
    file: Path | None = opt(
        "-f, --file FILE",
        "Load with this script on pgbench's tables, or with the workloads of an experiment file (.toml).",
    )
    scale: int = opt("-s, --scale NUM", "Scale factor of pgbench's tables. Default: 5.", default=5)
    clients: int = opt("-c, --client NUM", "Number of clients. Default: 2.", default=2)
    only: list[str] | None = opt("--only OBSERVER", "Measure only this observer; repeatable.")
    practical: str = opt(
        "--practical PERCENT", "Smallest overhead that matters. Default: 1%.", _text_of(share()), default="1%"
    )
    budget: str = opt(
        "--budget TIME",
        "Maximum duration of the load. Default: 4min.",
        _text_of(duration(), "s"),
        default="4min",
    )
    precision: str = opt(
        "--precision PERCENT",
        "Stop once every interval is within ±PERCENT. Default: 0.5%.",
        _text_of(share()),
        default="0.5%",
    )
    seed: int = opt("--seed NUM", f"{SEED} Default: 1.", whole(0, 2**64 - 1), default=1)
    idle: bool = opt("--idle/--no-idle", "Measure an idle server too.", show_default=True, default=True)
    as_json: AsJson = False
    runs: Runs = DEFAULT_RUNS
