"""Load-test a service: `uncork load http`, which accepts h2load's options."""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from uncork.cli import console
from uncork.cli.load.finish import check_outputs, counted_progress, finish_load
from uncork.cli.places import redacted_command
from uncork.errors import UsageError
from uncork.model.load import LoadProgress
from uncork.requests.http import cluster_of_http, read_http, sweep_of_http
from uncork.requests.http_files.http_file import converted_traffic
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import HttpJob
from uncork.requests.sweep import sweep_request
from uncork.workbench.load.sessions import LoadSession, new_load

if TYPE_CHECKING:
    from uncork.cluster.loads import ClusterLoad


def load_http(options: HttpOptions) -> None:
    """Load a service, or sweep the load, and show the result; or convert recorded traffic."""
    if options.write_requests is not None:
        _convert(options, options.write_requests)
        return
    spec = read_http(options, read=_read, seed=secrets.randbits(63), environment=os.environ)
    sweep = sweep_request(sweep_of_http(options, spec))
    pids = tuple(dict.fromkeys(options.service_pid or ()))
    job = HttpJob(spec, redacted_command(sys.argv[1:]), pids, options.postgres, options.advise)
    check_outputs(options)
    request = cluster_of_http(options, spec, sweep)
    if sweep is not None:
        from uncork.cli.load.sweep import sweep_load  # noqa: PLC0415 -- only for sweeps

        sweep_load(job, sweep, options, request)
        return
    session: LoadSession | ClusterLoad
    if request is None:
        session = new_load(options.runs, job)
    else:
        from uncork.cli.load.finish import cluster_load  # noqa: PLC0415 -- only with --nodes

        session = cluster_load(job, request, options)
    console.note(f"run {session.folder.name}")
    with counted_progress(None if spec.progress_s else spec.operations, "requests") as counted:
        progress = _progress(open_loop=spec.arrivals is not None) if spec.progress_s else counted
        outcome = session.run(progress, console.note)
    finish_load(session.folder, outcome, options)


def _convert(options: HttpOptions, file: Path) -> None:
    found = converted_traffic(options, _read)
    try:
        with file.open("x", encoding="utf-8") as written:
            written.write(found.text)
    except FileExistsError as error:
        raise UsageError(f"{file} exists already; choose another name, or remove it") from error
    except OSError as error:
        raise UsageError(f'could not write file "{file}": {error.strerror}') from error
    for note in found.notes:
        console.note(note)
    console.note(f"wrote {file}; send its requests: uncork load http -f {shlex.quote(str(file))}")


def _progress(*, open_loop: bool) -> Callable[[LoadProgress], None]:
    from uncork.workbench.event_words import progress_line  # noqa: PLC0415 -- only with -P

    def report(progress: LoadProgress) -> None:
        typer.echo(progress_line(progress, open_loop=open_loop, http=True), err=True)

    return report


def _read(name: str) -> bytes:
    """Read a file; ``-`` is standard input."""
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f'could not open file "{name}": {error.strerror}') from error
