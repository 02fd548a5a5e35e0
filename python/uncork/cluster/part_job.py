"""The job that a node gets: the whole load without secrets, and which part of it to send. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from uncork.errors import UsageError
from uncork.model.load import LoadPart
from uncork.requests.jobs import HttpJob, LoadJob


@dataclass(frozen=True, slots=True)
class PartJob:
    """A part of a job: the whole job, without secrets, and which part of how many to send."""

    job: LoadJob | HttpJob
    number: int
    count: int


def part_of_job(wanted: PartJob, environment: Mapping[str, str]) -> LoadJob | HttpJob:
    """Return the job of a part. Values of ``${NAME}`` come from this node's environment.

    Raises UsageError if a variable is not set.
    """
    job = wanted.job
    part = replace(job.spec.part or LoadPart(), number=wanted.number, count=wanted.count, lease="-")
    if isinstance(job, LoadJob):
        # The first part vacuums for all.
        vacuum = job.vacuum if wanted.number == 1 else "none"
        return replace(job, vacuum=vacuum, spec=replace(job.spec, part=part, progress_s=None))
    missing = [name for name, _ in job.spec.environment if name not in environment]
    if missing:
        raise UsageError(
            f"the requests use ${{{missing[0]}}}, but the node has no environment variable {missing[0]}: "
            "set it where Ray is started on each node"
        )
    values = tuple((name, environment[name]) for name, _ in job.spec.environment)
    return replace(job, spec=replace(job.spec, part=part, progress_s=None, environment=values))
