"""Serve the stored runs to a language model's client: `uncork mcp`."""

from __future__ import annotations

import sys

from uncork.cli import console
from uncork.errors import UsageError
from uncork.model.extras import install_extra
from uncork.requests.stored_options import McpOptions


def mcp(options: McpOptions) -> None:
    """Serve until the client closes standard input, or Ctrl-C."""
    try:
        from uncork.mcp.server import serve  # noqa: PLC0415 -- needs an optional package
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise UsageError(f"`uncork mcp` needs the package mcp: {install_extra('mcp')}") from error
    if sys.stdin is not None and sys.stdin.isatty():
        console.note("waiting for a client, which starts this command itself; press Ctrl-C to stop")
    serve(options.runs, allow_run=options.allow_run)
