"""Serve the stored runs as a dashboard: `uncork serve`."""

from __future__ import annotations

import os
import re
import webbrowser
from pathlib import Path
from typing import Annotated, Final

import typer

from uncork.cli import console, options
from uncork.cli.examples import examples_of
from uncork.errors import UsageError

__all__ = ["register"]

_TOKEN: Final = "UNCORK_TOKEN"  # noqa: S105 -- the name of a variable


def register(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("serve", epilog=examples_of("serve"))(serve)


def serve(
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="TCP port; 0 takes a free one.")
    ] = 8675,
    host: Annotated[
        str,
        typer.Option(
            "--host", metavar="ADDRESS", help="Address to listen on; any but loopback needs a token."
        ),
    ] = "127.0.0.1",
    token_file: Annotated[
        Path | None,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help=f"Whoever looks must know the token in this file; {_TOKEN} may hold it instead.",
        ),
    ] = None,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="HOST", help="A further name by which browsers ask for it."),
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in a browser.")] = False,
    runs: options.Runs = options.DEFAULT_RUNS,
) -> None:
    """Serve the stored runs as pages, until Ctrl-C: list, reports, runs in progress, cases, /metrics."""
    for one in name or ():
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", one):
            raise UsageError(f'--name "{one}": give a host name alone, such as bench.example.org')
    from uncork.serve.server import serve as serve_runs  # noqa: PLC0415 -- keeps `uncork --help` fast
    from uncork.store.remote.mirrors import shown  # noqa: PLC0415 -- as below

    def started(address: str) -> None:
        console.output.print(address, soft_wrap=True)
        console.note(f"the runs in {shown(runs)} are served; Ctrl-C ends it")
        if show:
            webbrowser.open(address)

    names = frozenset(one.lower() for one in name or ())
    serve_runs(runs, host=host, port=port, names=names, token=_token(token_file), started=started)


def _token(path: Path | None) -> str | None:
    """Return the token: of the file, else of the environment; None if there is none."""
    if path is None:
        return os.environ.get(_TOKEN) or None
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"--token-file {path}: cannot be read: {why}") from error
