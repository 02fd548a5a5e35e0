"""Record the sessions of logs: `uncork capture --sessions`."""

from __future__ import annotations

import typer

from uncork.cli import console
from uncork.cli.profile.logs import reading_progress
from uncork.errors import UsageError
from uncork.requests.profile_options import CaptureOptions
from uncork.workbench.cure.files import check_folder
from uncork.workbench.profile.log_files import bytes_of, log_request
from uncork.workbench.profile.recordings import record_sessions, write_recording


def capture_sessions(options: CaptureOptions) -> None:
    """Read logs, and write the transactions of their sessions."""
    check_folder(options.output)
    if not options.sources:
        raise UsageError(
            "--sessions records the sessions of a log: name its files, such as /var/log/postgresql/"
        )
    request = log_request(options.sources, options.log_prefix, (options.begin, options.end), 0)
    with reading_progress(bytes_of(request), quiet=options.quiet) as progress:
        recording = record_sessions(request, options.database_name, progress)
    typer.echo(" ".join(write_recording(recording, options.output)))
    console.note(
        f"wrote {options.output}; it contains values of the database: protect it as you protect the database"
    )
    console.note(f"replay it on a copy with `uncork load sql --replay {options.output} DSN`")
