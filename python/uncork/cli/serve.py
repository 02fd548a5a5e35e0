"""Serve the stored runs as web pages: `uncork serve`."""

from __future__ import annotations

import os
import re
import webbrowser
from pathlib import Path
from typing import Final

from uncork.cli import console
from uncork.errors import UsageError
from uncork.requests.stored_options import ServeOptions
from uncork.serve.server import serve as serve_runs
from uncork.store.remote.mirrors import shown

_TOKEN: Final = "UNCORK_TOKEN"  # noqa: S105 -- the name of a variable


def serve(options: ServeOptions) -> None:
    """Serve the stored runs until Ctrl-C."""
    for text in options.name or ():
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", text):
            raise UsageError(f'--name "{text}": give only a host name, such as bench.example.org')

    def started(address: str) -> None:
        console.output.print(address, soft_wrap=True)
        console.note(f"serving the runs in {shown(options.runs)}; press Ctrl-C to stop")
        if options.show:
            webbrowser.open(address)

    names = frozenset(text.lower() for text in options.name or ())
    serve_runs(
        options.runs,
        host=options.host,
        port=options.port,
        names=names,
        token=_token(options.token_file),
        started=started,
    )


def _token(path: Path | None) -> str | None:
    if path is None:
        return os.environ.get(_TOKEN) or None
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"--token-file {path}: cannot read it: {why}") from error
