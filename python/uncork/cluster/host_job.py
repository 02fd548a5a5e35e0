"""The job that a host gets: an experiment with all its files, and the same budget for each host. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from uncork.requests.source import Options, Source, made_source

__all__ = ["HostJob", "host_job", "source_of"]


@dataclass(frozen=True, slots=True)
class HostJob:
    """An experiment as plain values: its text, its SQL files, and its `Options` as a manifest stores them.

    `binaries` is the folder on the host that contains PostgreSQL's programs. If it is None, the host uses the
    programs that uncork brings along.
    """

    text: str
    files: Mapping[str, str]
    options: Mapping[str, Any]
    binaries: str | None


def host_job(source: Source, binaries: str | None) -> HostJob:
    """Return the job for an experiment."""
    return HostJob(source.text, dict(source.files), source.options.stored(), binaries)


def source_of(job: HostJob) -> Source:
    """Return the experiment of a job. Raises SpecError if the host cannot read it."""
    return made_source(job.text, job.files, Options.of(job.options), "experiment.toml")
