"""Profile a service with its database: `uncork profile service`."""

from __future__ import annotations

import os
import secrets
import sys
from functools import partial
from pathlib import Path

from rich.console import Console

from uncork.cli import console
from uncork.cli.pages import check_page, chosen_form, report
from uncork.cli.places import redacted_command
from uncork.cli.profile.database import end_if_hidden
from uncork.errors import UsageError
from uncork.report.service.document import render_service_terminal
from uncork.requests.service_options import ServiceOptions, service_job
from uncork.workbench.documents.kinds import kind_named
from uncork.workbench.documents.services import ServiceRun
from uncork.workbench.profile.services import profile_service


def profile_service_command(options: ServiceOptions) -> None:
    """Profile a service, and show the result."""
    form = chosen_form(as_json=options.as_json, markdown=options.markdown)
    check_page(options.html)
    job = service_job(
        options,
        read=_read,
        environment=os.environ,
        seed=secrets.randbits(63),
        command=redacted_command(sys.argv[1:]),
        ask=console.asked_password,
    )
    folder, status, reason = profile_service(
        options.runs, job, (lambda _: None) if options.quiet else console.note
    )
    kind = kind_named("service")
    terminal = partial(_render, options)
    run = kind.read(folder)
    report(kind, folder, run, form, options.html, terminal=terminal)
    trouble = reason if status == "failed" else ""
    console.end_early(status, trouble, "what was recorded until then is kept")
    database = run.result.database
    end_if_hidden(None if database is None else database.hidden)


def _render(options: ServiceOptions, run: ServiceRun, output: Console) -> None:
    render_service_terminal(run.result, output, top=options.top, full=options.full)


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise UsageError(f'could not open file "{name}": {error.strerror}') from error
