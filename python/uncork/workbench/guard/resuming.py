"""Go on with a guard of an experiment that was interrupted: the same sides and gates, and the budget left."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from uncork.analysis.runs.status import status_of
from uncork.errors import UsageError
from uncork.experiment.plan.order import plan_document
from uncork.model.results.guard import GuardResult
from uncork.model.units import format_duration
from uncork.requests.guard import GuardRequest, Tell
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, run_source
from uncork.store.layout import Manifest, read_manifest
from uncork.store.query import RunReader
from uncork.workbench.guard.asked import GuardAsked, read_asked
from uncork.workbench.guard.experiment import Guard, Measure, carry_on, unhurried
from uncork.workbench.guard.sides import server_choice
from uncork.workbench.guard.store import read_guard

__all__ = ["resume_guard"]


def resume_guard(folder: Path, wanted: GuardRequest, measure: Measure, tell: Tell) -> GuardResult:
    """Go on with the guard of a run, as it was asked, for what is left of its budget.

    Gates are judged over all rounds, those of before and those to come: their error rates hold whenever one
    looks, so that an interruption changes nothing in them. A second measurement decides once, at the end of
    its own budget, and is of one piece: a guard whose second has begun does not go on.

    Of `wanted` only the server, which must be the one of before, and a new budget count.

    Raises:
        UsageError: if it is no guard, has ended, cannot go on as the same, or has no budget left.
        SetupError: if it cannot go on here.
        UncorkError, KeyboardInterrupt: as `guard_experiment`.
    """
    asked = read_asked(folder)
    with closing(RunReader(folder)) as reader:
        manifest = reader.manifest
        if asked is None:
            raise UsageError(_no_guard(folder))
        _refuse(manifest, asked, folder)
        changes = Options(budget_ns=wanted.options.budget_ns)
        source = unhurried(run_source(reader, changes))
    choice = _choice(wanted, manifest, asked)
    spent_ns = _spent_ns(folder, manifest)
    budget_ns, round_ns = source.spec.stop.budget, plan_document(source.spec).round_ns
    if budget_ns - spent_ns < round_ns:
        twice = f"{2 * budget_ns // 10**9}s"
        raise UsageError(
            f"{manifest.id} has measured for {format_duration(spent_ns)}, and its budget is "
            f"{format_duration(budget_ns)}: --budget gives it more, such as --budget {twice}"
        )
    guard = Guard(
        root=folder.parent,
        source=source,
        gates=source.spec.guard.parsed,
        choice=choice,
        asked=asked,
        precise=source.options.precision,
        called=manifest.id,
        begun=time.monotonic() - spent_ns / 1e9,
    )
    tell(f"{format_duration(budget_ns - spent_ns)} of its budget are left")
    return carry_on(guard, measure, tell, folder, spent_ns)


def _no_guard(folder: Path) -> str:
    found = read_guard(folder)
    if found is None:
        return f"{folder.name} is no guard of an experiment; uncork run --resume goes on with experiments"
    return f"{folder.name} does not keep how it was asked, and cannot go on; guard again: {found.reproduce}"


def _refuse(manifest: Manifest, asked: GuardAsked, folder: Path) -> None:
    again = f"guard again: {asked.command}"
    if asked.confirms:
        raise UsageError(
            f"{manifest.id} is the second measurement of guard {asked.confirms}, which is of one piece and "
            f"cannot go on; {again}"
        )
    if status_of(manifest) == "running":
        raise UsageError(f"{manifest.id} is still being measured")
    found = read_guard(folder)
    if found is not None and read_manifest(folder.with_name(found.runs[-1])).status == "complete":
        raise UsageError(f"{manifest.id} has ended: uncork report {manifest.id} shows it; {again}")
    if manifest.status == "complete":
        raise UsageError(
            f"the second measurement of {manifest.id} had begun, which is of one piece and cannot go on; "
            f"{again}"
        )
    if asked.checkouts:
        raise UsageError(
            f"{manifest.id} needs checkouts of commits, or a working tree, which may not be the same by now: "
            f"it cannot go on; {again}"
        )


def _choice(wanted: GuardRequest, manifest: Manifest, asked: GuardAsked) -> ServerChoice:
    """Return the server of before.

    Raises:
        UsageError: if another is named, or none where one must be.
    """
    choice = replace(server_choice(wanted), own=asked.own)
    if choice.description() != manifest.server:
        raise UsageError(
            f"{manifest.id} was measured on another server ({manifest.server}); name that one: --dsn, "
            "--pg-bin, or --baseline dsn=... and --candidate dsn=..."
        )
    return choice


def _spent_ns(folder: Path, manifest: Manifest) -> int:
    """Return how long it has measured; of a sitting that was killed, until the last that it wrote."""
    told = sum(sitting.elapsed_ns for sitting in manifest.sittings)
    if manifest.sittings:
        return told
    begun_ns = round(datetime.fromisoformat(manifest.started_at).timestamp() * 1e9)
    written = [path.stat().st_mtime_ns for path in (folder / "trials").glob("*.parquet")]
    return max((at - begun_ns for at in written), default=0)
