"""Write an experiment file to start from: `uncork new`."""

from __future__ import annotations

import typer

from uncork.errors import UsageError
from uncork.requests.experiment_options import NewOptions
from uncork.requests.source import starter

__all__ = ["new"]


def new(options: NewOptions) -> None:
    """Write a commented experiment file, and print the next commands."""
    file = options.file
    if file.exists() and not options.force:
        raise UsageError(f"{file} exists; choose another name, or --force to overwrite it")
    try:
        file.write_text(starter("experiment"))
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
    typer.echo(f"wrote {file}; next: uncork plan {file}, then uncork run {file}")
