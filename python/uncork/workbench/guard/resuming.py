"""Resume an interrupted guard of an experiment, with the same sides and gates and the rest of the budget."""

from __future__ import annotations

import time
from contextlib import closing
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
from uncork.store.hosts import read_hosts
from uncork.store.layout import Manifest, read_manifest
from uncork.store.query import RunReader
from uncork.workbench.guard.asked import GuardAsked, read_asked
from uncork.workbench.guard.experiment import Guard, Measure, carry_on, unhurried
from uncork.workbench.guard.sides import server_choice
from uncork.workbench.guard.store import read_guard


def resume_guard(folder: Path, wanted: GuardRequest, measure: Measure, notify: Tell) -> GuardResult:
    """Resume the guard of a run with its stored request, for the rest of its budget.

    Gates are judged over all rounds, earlier and later. Their error rates hold at every look, so an
    interruption does not change them. A second measurement decides once, at the end of its own budget. It
    cannot be split, so a guard whose second measurement has begun cannot be resumed.

    Only the server in `wanted`, which must be the same as before, and its budget are used.

    Raises:
        UsageError: if the run is not a guard, has ended, cannot be continued, or has no budget left.
        SetupError: if the guard cannot continue on this machine.
        UncorkError, KeyboardInterrupt: see `guard_experiment`.
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
            f"{manifest.id} has used {format_duration(spent_ns)} of its budget of "
            f"{format_duration(budget_ns)}, and the rest is too short for a round; raise it, for example: "
            f"--budget {twice}"
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
    notify(f"{format_duration(budget_ns - spent_ns)} of the budget left")
    return carry_on(guard, measure, notify, folder, spent_ns)


def _no_guard(folder: Path) -> str:
    found = read_guard(folder)
    if found is None:
        return f"{folder.name} is not a guard of an experiment; resume an experiment with uncork run --resume"
    return f"{folder.name} does not store its request and cannot be resumed; guard again: {found.reproduce}"


def _refuse(manifest: Manifest, asked: GuardAsked, folder: Path) -> None:
    again = f"guard again: {asked.command}"
    if asked.confirms:
        raise UsageError(
            f"{manifest.id} is the second measurement of guard {asked.confirms}, which cannot be resumed; "
            f"{again}"
        )
    if status_of(manifest) == "running":
        raise UsageError(f"{manifest.id} is still being measured")
    found = read_guard(folder)
    if found is not None and read_manifest(folder.with_name(found.runs[-1])).status == "complete":
        raise UsageError(f"{manifest.id} has ended; see it with: uncork report {manifest.id}; {again}")
    if manifest.status == "complete":
        raise UsageError(f"the second measurement of {manifest.id} had begun and cannot be resumed; {again}")
    if read_hosts(folder):
        raise UsageError(f"{manifest.id} was measured on several hosts and cannot be resumed; {again}")
    if asked.checkouts:
        raise UsageError(
            f"{manifest.id} uses checkouts of commits or a working tree, which may have changed since, so it "
            f"cannot be resumed; {again}"
        )


def _choice(wanted: GuardRequest, manifest: Manifest, asked: GuardAsked) -> ServerChoice:
    """Return the server on which the guard began.

    Raises:
        UsageError: if the request names another server, or none although it must.
    """
    choice = server_choice(wanted)
    if choice.description() != manifest.server:
        raise UsageError(
            f"{manifest.id} was measured on another server ({manifest.server}); name that server: --dsn, "
            "--pg-bin, or --baseline dsn=... and --candidate dsn=..."
        )
    return choice


def _spent_ns(folder: Path, manifest: Manifest) -> int:
    """Return how long the guard has measured; if it was killed, until it last stored a trial."""
    if manifest.attempts:
        return sum(attempt.elapsed_ns for attempt in manifest.attempts)
    begun_ns = round(datetime.fromisoformat(manifest.started_at).timestamp() * 1e9)
    written = [path.stat().st_mtime_ns for path in (folder / "trials").glob("*.parquet")]
    return max((at - begun_ns for at in written), default=0)
