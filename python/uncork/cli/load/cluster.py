"""Load from the nodes of a cluster: say what will be sent, ask, and start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from uncork.cli import console
from uncork.errors import UsageError
from uncork.model.load import ClusterRequest
from uncork.requests.http_options import HttpOptions
from uncork.requests.jobs import HttpJob, LoadJob, SweepRequest
from uncork.requests.sql_options import SqlOptions

if TYPE_CHECKING:
    from uncork.cluster.loads import ClusterLoad
    from uncork.workbench.load.sweeps import SweepSession


def cluster_load(
    job: LoadJob | HttpJob, request: ClusterRequest, options: SqlOptions | HttpOptions
) -> ClusterLoad:
    """Return a load from nodes that may start. A cluster that others use too requires a confirmation.

    Raises:
        UsageError: if the load cannot be sent like that, or nobody can be asked.
        typer.Exit: if the person declines.
    """
    from uncork.cluster.limits import statement  # noqa: PLC0415 -- only with --nodes
    from uncork.cluster.loads import new_cluster_load, planned_load  # noqa: PLC0415
    from uncork.cluster.ray_nodes import check_installed  # noqa: PLC0415

    check_installed()
    plan = planned_load(job, request)
    confirm_cluster(statement(plan.size, request), request, yes=options.yes)
    return new_cluster_load(options.runs, plan)


def cluster_sweep(
    job: LoadJob | HttpJob, sweep: SweepRequest, request: ClusterRequest, options: SqlOptions | HttpOptions
) -> SweepSession:
    """Return a sweep from nodes that may start.

    Raises:
        UsageError, typer.Exit: see `cluster_load`.
    """
    from uncork.cluster.limits import statement  # noqa: PLC0415 -- only with --nodes
    from uncork.cluster.ray_nodes import check_installed  # noqa: PLC0415
    from uncork.cluster.sweeps import largest_step, new_cluster_sweep  # noqa: PLC0415

    check_installed()
    size = largest_step(job, sweep, request).size
    confirm_cluster(f"at the highest level, {statement(size, request)}", request, yes=options.yes)
    return new_cluster_sweep(options.runs, job, sweep, request)


def confirm_cluster(sentence: str, request: ClusterRequest, *, yes: bool) -> None:
    """Say what will happen on a cluster. A cluster that others use too requires a confirmation.

    Raises:
        UsageError: if nobody can be asked.
        typer.Exit: if the person declines.
    """
    console.note(sentence)
    if not request.own and not yes:
        if not sys.stdin.isatty():
            raise UsageError("work on a cluster must be confirmed: add --yes")
        if not typer.confirm("Start it?", err=True):
            raise typer.Exit
