"""Options that several verbs share, and what they become."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import places
from uncork.errors import UsageError
from uncork.model.stored_run import DEFAULT_RUNS
from uncork.model.units import parse_duration

if TYPE_CHECKING:
    from uncork.requests.server import ServerChoice
    from uncork.requests.source import Options

__all__ = ["DEFAULT_RUNS", "collect", "seconds", "server"]

Levels = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FACTOR=LEVEL[,LEVEL...]", help="Keep only these levels of a factor."),
]
Workloads = Annotated[
    list[str] | None, typer.Option("--workload", metavar="NAME", help="Keep only this workload.")
]
Budget = Annotated[
    str | None,
    typer.Option("--budget", metavar="TIME", help='Longest the run may take, such as "30min".'),
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", metavar="PERCENT", help='How narrow an interval must be, such as "3%".'),
]
Seed = Annotated[int | None, typer.Option("--seed", min=0, help="Seed of everything random.")]
Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        metavar="CONNINFO",
        help="Measure on this existing server (URI or key=value; PG*, service and .pgpass work), in "
        "databases of its own.",
    ),
]
PgBin = Annotated[
    Path | None,
    typer.Option("--pg-bin", metavar="DIR", help="Start the server from these binaries, not our own."),
]
Port = Annotated[
    int | None,
    typer.Option("--port", min=1024, max=65535, help="TCP port of the started server; a free one if absent."),
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="VARIANT=VERDICT",
        help="Exit with 3 unless the variant is faster, slower, not-slower or no-difference everywhere; "
        "with 4 if the evidence does not decide.",
    ),
]
Runs = Annotated[
    Path,
    typer.Option(
        "--runs",
        metavar="DIR",
        envvar="UNCORK_RUNS",
        parser=places.place_of_runs,
        help=places.HELP,
    ),
]
RunsOfVerb = Annotated[
    Path | None,
    typer.Option("--runs", metavar="DIR", parser=places.place_of_runs, help=places.HELP, show_default=False),
]
"""As `Runs`, for verbs of `uncork runs`: what stands before the verb counts where nothing stands after it."""
StoredRun = Annotated[str, typer.Argument(metavar="RUN", help="A stored run: its id, a name, or last.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the HTML page here.")]
Templates = Annotated[int, typer.Option("--top", min=1, help="Templates shown in the terminal.")]
Full = Annotated[bool, typer.Option("--full", help="Show all tables in the terminal.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def collect(
    levels: list[str] | None,
    workloads: list[str] | None,
    budget: str | None,
    precision: str | None,
    seed: int | None,
) -> Options:
    """Read the options that change an experiment.

    Raises:
        UsageError: if one cannot be understood.
    """
    from uncork.requests.source import changed_options  # noqa: PLC0415

    chosen: dict[str, list[str]] = {}
    for text in levels or []:
        factor, equals, values = text.partition("=")
        if not equals or not factor or not all(values.split(",")):
            raise UsageError(f"--set {text}: write FACTOR=LEVEL or FACTOR=LEVEL,LEVEL")
        chosen.setdefault(factor, []).extend(values.split(","))
    return changed_options(chosen, workloads or (), budget=budget, precision=precision, seed=seed)


def server(dsn: str | None, binaries: Path | None, port: int | None) -> ServerChoice:
    """Read the options that choose a server.

    Raises:
        UsageError: if they contradict each other, or the folder of binaries does not exist.
    """
    from uncork.workbench.experiment.session import choose_server  # noqa: PLC0415

    return choose_server(dsn, binaries, port)


def seconds(text: str, option: str) -> float:
    """Read how long something lasts; return seconds.

    Raises:
        UsageError: if it cannot be understood, or is zero.
    """
    try:
        lasting = parse_duration(text) / 1e9
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error
    if not lasting:
        raise UsageError(f"{option} must be above zero")
    return lasting
