"""The job that a host gets: an experiment with all its files, and the same budget for each host. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, Source, made_source


@dataclass(frozen=True, slots=True)
class HostJob:
    """An experiment as plain values: its text, its SQL files, and its `Options` as a manifest stores them.

    `binaries` is the folder on the host that contains PostgreSQL's programs. If it is None, the host uses the
    programs that uncork brings along. `dsn` is a running server to measure on instead.
    """

    text: str
    files: Mapping[str, str]
    options: Mapping[str, Any]
    binaries: str | None
    dsn: str | None = field(default=None, repr=False)


def host_job(source: Source, server: ServerChoice) -> HostJob:
    """Return the job for an experiment on a server of the host's own, or on a running one."""
    return HostJob(
        text=source.text,
        files=dict(source.files),
        options=source.options.stored(),
        binaries=None if server.binaries is None else str(server.binaries),
        dsn=server.dsn,
    )


def server_of(job: HostJob) -> ServerChoice:
    """Return the server that a job measures on."""
    binaries = None if job.binaries is None else Path(job.binaries)
    return ServerChoice(dsn=job.dsn, binaries=binaries)


def source_of(job: HostJob) -> Source:
    """Return the experiment of a job. Raises SpecError if the host cannot read it."""
    return made_source(job.text, job.files, Options.of(job.options), "experiment.toml")
