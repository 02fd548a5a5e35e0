"""Write an experiment file to start from: `uncork new`."""

from __future__ import annotations

from pathlib import Path

import typer

from uncork.cli import console
from uncork.errors import UsageError
from uncork.experiment.draft import experiment_text
from uncork.experiment.service_draft import service_text
from uncork.experiment.spec.raw_file import places_to_fill
from uncork.model.units import count_words
from uncork.requests.connection import measured_server
from uncork.requests.experiment_options import NewOptions
from uncork.requests.source import starter
from uncork.store.layout import find_run, part_of, read_manifest
from uncork.workbench.experiment.drafting import draft_of
from uncork.workbench.experiment.service_drafting import is_service_load, service_draft_of


def new(options: NewOptions) -> None:
    """Write an experiment file, and print the next commands."""
    options = measured_server(options, console.asked_password, starts=False)
    file = options.file
    if file.exists() and not options.force:
        raise UsageError(f"{file} exists; choose another name, or --force to overwrite it")
    if options.run is None:
        _refuse_without_run(options)
        _write(file, starter("experiment"))
        typer.echo(f"wrote {file}; next: uncork plan {file}, then uncork run {file}")
        return
    folder = _part(find_run(options.runs, options.run), options)
    words = ""
    if is_service_load(folder):
        if options.template is not None:
            raise UsageError(
                "--template chooses a statement, but this run is a load of a service; leave it out"
            )
        service = service_draft_of(folder, options.dsn, dict(options.changes or ()), options.change_env or ())
        text, about, words = service_text(service.draft), service.about, service.run_words
    else:
        if options.change_env is not None:
            raise UsageError("--change-env is for a run of `uncork load http`; leave it out")
        draft = draft_of(folder, options.template, options.dsn, dict(options.changes or ()))
        text, about = experiment_text(draft), draft.seen
    _write(file, text)
    typer.echo(f"wrote {file} about: {about}")
    left = places_to_fill(text)
    if left:
        typer.echo(f"{count_words(len(left), 'place')} to fill in; uncork plan {file} lists what is left:")
        for place in left:
            typer.echo(f"  {place.text(str(file), text)}")
    else:
        typer.echo(f"next: uncork plan {file}{words}, then uncork run {file}{words}")


def _part(folder: Path, options: NewOptions) -> Path:
    """Return the part of a profile of a service to write about: its load, or for a statement its database."""
    if read_manifest(folder).kind != "service":
        return folder
    name = "load" if options.template is None else "database"
    found = part_of(folder, name)
    if found is None:
        raise UsageError(f"run {folder.name} holds no part {name}; profile the service without --watch-only")
    return found


def _refuse_without_run(options: NewOptions) -> None:
    given = {"--template": options.template, "--change": options.changes, "--dsn": options.dsn}
    given["--change-env"] = options.change_env
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"{name} works only with --from RUN; add it, or leave {name} out")


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
