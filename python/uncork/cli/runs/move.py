"""Runs between folders and addresses: `uncork runs push` and `uncork runs pull`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uncork.cli import console, options, places
from uncork.cli.examples import examples_of
from uncork.errors import StoreError, UsageError
from uncork.model.units import count_words

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the verbs to `uncork runs`."""
    app.command("push", epilog=examples_of("runs push"))(push)
    app.command("pull", epilog=examples_of("runs pull"))(pull)


def push(
    context: typer.Context,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS]", help="Where to send the runs of a folder; without it --runs is an address."
        ),
    ] = None,
    runs: options.RunsOfVerb = None,
) -> None:
    """Send runs to an address: those of a folder, or those that could not be sent to it when they ended."""
    from uncork.store.remote.mirrors import mirror_of  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.publishing import push_runs, send_pending  # noqa: PLC0415

    root: Path = runs or context.obj
    if address is None and mirror_of(root) is None:
        raise UsageError(
            f"{root} is a folder: say where its runs go, as in `uncork runs push s3://BUCKET/PREFIX`, or "
            "name an address with --runs, to send what could not be sent to it before"
        )
    sent = send_pending(root) if address is None else push_runs(root, places.place_of_runs(address))
    if not sent.runs and not sent.troubles:
        console.note(f"nothing to send: all runs that have ended are at {sent.shown}")
    places.say_sent(sent)
    _end(sent.left)


def pull(
    context: typer.Context,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Where the runs are, such as s3://BUCKET/PREFIX.")
    ],
    wanted: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids, beginnings of some, names, or last; all without."),
    ] = None,
    runs: options.RunsOfVerb = None,
) -> None:
    """Bring runs of an address to a folder; those that are there already stay as they are."""
    from uncork.workbench.publishing import pull_runs  # noqa: PLC0415 -- keeps `uncork --help` fast

    root: Path = runs or context.obj
    brought = pull_runs(places.place_of_runs(address), root, wanted or [])
    for trouble in brought.troubles:
        console.note(str(trouble))
    many = count_words(len(brought.runs), "run")
    verb = "was" if len(brought.runs) == 1 else "were"
    console.note(f"{many} of {brought.shown} {verb} brought to {root}")
    _end(brought.left)


def _end(left: int) -> None:
    if left:
        raise typer.Exit(StoreError.exit_status)
