"""Runs between folders and addresses: `uncork runs push` and `uncork runs pull`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from uncork.cli import console, places
from uncork.errors import StoreError, UsageError
from uncork.model.units import count_words


def push(
    context: typer.Context,
    address: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS]",
            help="Where to upload the runs of a folder; without it, --runs must be an address.",
        ),
    ] = None,
    runs: places.RunsOfVerb = None,
) -> None:
    """Upload the runs of a folder to an address, or runs that failed to upload to their address."""
    from uncork.store.remote.mirrors import mirror_of  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.workbench.publishing import push_runs, send_pending  # noqa: PLC0415

    root: Path = runs or context.obj
    if address is None and mirror_of(root) is None:
        raise UsageError(
            f"{root} is a folder: name an address, as in `uncork runs push s3://BUCKET/PREFIX`, or give an "
            "address with --runs to upload the runs that failed to upload before"
        )
    sent = send_pending(root) if address is None else push_runs(root, places.place_of_runs(address))
    if not sent.runs and not sent.troubles:
        console.note(f"nothing to upload: all completed runs are at {sent.shown}")
    places.say_sent(sent)
    _end(sent.left)


def pull(
    context: typer.Context,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Address of the runs, such as s3://BUCKET/PREFIX.")
    ],
    wanted: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN]...", help="Ids, beginnings of ids, names, or last. Default: all."),
    ] = None,
    runs: places.RunsOfVerb = None,
) -> None:
    """Download runs from an address to a folder, except those already there."""
    from uncork.workbench.publishing import pull_runs  # noqa: PLC0415 -- keeps `uncork --help` fast

    root: Path = runs or context.obj
    brought = pull_runs(places.place_of_runs(address), root, wanted or [])
    for trouble in brought.troubles:
        console.note(str(trouble))
    many = count_words(len(brought.runs), "run")
    console.note(f"downloaded {many} from {brought.shown} to {root}")
    _end(brought.left)


def _end(left: int) -> None:
    if left:
        raise typer.Exit(StoreError.exit_status)
