"""`uncork acknowledge`: write down that a change which a guard found is known, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.errors import UsageError

if TYPE_CHECKING:
    from uncork.model.results.guard import Acknowledgement

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("acknowledge", epilog=examples_of("acknowledge"))(acknowledge)


def acknowledge(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN", help="A guard that found it broken: its id, the beginning of one, a name, or last."
        ),
    ],
    gate: Annotated[
        str, typer.Argument(metavar="GATE", help='The broken gate, such as "p99 < +5%", in any words.')
    ],
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why the change is accepted.")],
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload", metavar="NAME", help="Only on this workload; on each where it is broken if absent."
        ),
    ] = None,
    until: Annotated[
        str, typer.Option("--until", metavar="DATE", help="The last day on which it holds, as 2026-12-31.")
    ] = "",
    limit: Annotated[
        str,
        typer.Option(
            "--limit",
            metavar="BOUND",
            help='How far it may go, such as "+8%"; the bad end of the interval found if absent.',
        ),
    ] = "",
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE",
            help="The file to append to; as the experiment names it, else uncork-acknowledged.toml here.",
        ),
    ] = None,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Acknowledge a change that a guard found broken, with the reason: it no longer alarms.

    Appends an entry to a file that belongs into the repository, beside the experiment. The change may go as
    far as it was found to go, and no further.
    """
    from uncork.store.layout import find_run  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.guard.acknowledged import (  # noqa: PLC0415
        append_acknowledged,
        broken_checks,
        file_of,
        new_entries,
    )
    from uncork.workbench.guard.store import read_guard  # noqa: PLC0415

    folder = find_run(runs, run)
    result = read_guard(folder)
    if result is None:
        raise UsageError(f"run {folder.name} is no guard, or did not end; `uncork guard` makes one")
    path = file_of(result) if file is None else file
    entries = new_entries(
        broken_checks(result, gate, workload), reason=reason, until=until, limit=limit, folder=path.parent
    )
    append_acknowledged(path, entries)
    for entry in entries:
        console.output.print(f"{path}: {_words(entry)}", markup=False, soft_wrap=True)


def _words(entry: Acknowledgement) -> str:
    from uncork.experiment.guard.acknowledged import limit_words  # noqa: PLC0415 -- keeps `uncork --help` fast

    where = f" on {entry.workload}" if entry.workload else ""
    far = limit_words(entry)
    until = f", until {entry.until}" if entry.until else ""
    return f'"{entry.gate}"{where} is acknowledged{far and f" up to {far}"}{until}'
