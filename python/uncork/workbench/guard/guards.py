"""Carry out a guard of an experiment file or of a stored run, or resume one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path

from uncork.analysis.runs.listing import status_of
from uncork.errors import UsageError
from uncork.experiment.plan.order import plan_document
from uncork.model.results.guard import GuardResult
from uncork.model.units import format_duration
from uncork.requests.guard import GuardRequest, Tell
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, run_source
from uncork.store.hosts import read_hosts
from uncork.store.layout import Manifest, find_run, read_manifest
from uncork.store.query import RunReader
from uncork.workbench.experiment.session import Start, new_run
from uncork.workbench.guard.experiment import Guard, Measure, carry_on, guard_experiment, unhurried
from uncork.workbench.guard.runs import guard_load
from uncork.workbench.guard.sides import server_choice
from uncork.workbench.guard.store import StoredRequest, read_guard, read_request


def carry_out_guard(
    runs: Path, wanted: GuardRequest, measure: Measure, notify: Tell, start: Start = new_run
) -> tuple[GuardResult, Path]:
    """Guard an experiment file or a stored run, or resume a guard; return the result and its folder.

    `start` starts the runs of an experiment file's guard, here or on several hosts. Raises
    UncorkError or KeyboardInterrupt: see `guard_experiment`, `resume_guard` and `guard_load`.
    """
    if wanted.acknowledged is not None and not wanted.acknowledged.is_file():
        raise UsageError(f"--acknowledged {wanted.acknowledged}: no such file")
    if wanted.resume:
        _refuse_beside_resume(wanted)
        folder = find_run(runs, wanted.target, failed=True)
        return resume_guard(folder, wanted, measure, notify), folder
    path = Path(wanted.target)
    if path.suffix != ".toml" and not path.is_file():
        _refuse_of_files(wanted)
        result = guard_load(runs, wanted, notify)
        return result, runs / result.id
    _refuse_of_loads(wanted)
    result = guard_experiment(runs, wanted, measure, notify, start)
    return result, runs / result.runs[0]


def guard_target(target: str | None, resume: str | None) -> str:
    """Return the target of a guard, or the run to resume; raises UsageError unless exactly one is given."""
    if target is not None and resume is not None:
        raise UsageError(f"--resume continues a guard with its own target: leave out {target}")
    found = resume if target is None else target
    if found is None:
        raise UsageError(
            "name an experiment file or a stored run, or resume an interrupted guard with --resume"
        )
    return found


def _refuse_beside_resume(wanted: GuardRequest) -> None:
    given = {
        "--baseline": set(wanted.baseline.says) - {"dsn"},
        "--candidate": set(wanted.candidate.says) - {"dsn"},
        "--gate": wanted.gates,
        "--variant": wanted.variant,
        "--workload": wanted.options.workloads,
        "--set": wanted.options.levels,
        "--precision": wanted.options.precision,
        "--seed": wanted.options.seed is not None,
        "--acknowledged": wanted.acknowledged,
        "--no-confirm": not wanted.confirm,
        "--evidence": wanted.evidence,
        "--same": wanted.same,
        "--stored": wanted.stored,
        "--times": wanted.times > 1,
        "--url": wanted.url,
        "--header": wanted.headers,
        "--all": wanted.everything,
        "--hosts": wanted.on_hosts,
    }
    _refuse_given(
        given,
        "--resume continues a guard with its own options: leave out {name} (only --budget and the servers "
        "can be given)",
    )


def _refuse_of_loads(wanted: GuardRequest) -> None:
    given = {
        "--stored": wanted.stored,
        "--times": wanted.times > 1,
        "--url": wanted.url,
        "--header": wanted.headers,
        "--all": wanted.everything,
    }
    _refuse_given(given, f"{{name}} is for stored runs; {wanted.target} is an experiment file")


def _refuse_of_files(wanted: GuardRequest) -> None:
    given = {
        "--variant": wanted.variant,
        "--workload": wanted.options.workloads,
        "--set": wanted.options.levels,
        "--evidence": wanted.evidence,
        "--hosts": wanted.on_hosts,
    }
    where = f"but {wanted.target} is taken for a stored run"
    _refuse_given(given, f"{{name}} is for experiment files (.toml), {where}")


def _refuse_given(given: Mapping[str, object], message: str) -> None:
    for name, value in given.items():
        if value:
            raise UsageError(message.replace("{name}", name))


def resume_guard(folder: Path, wanted: GuardRequest, measure: Measure, notify: Tell) -> GuardResult:
    """Resume the guard of a run with its stored request, for the rest of its budget.

    Gates are judged over all rounds, earlier and later. Their error rates hold at every look, so an
    interruption does not change them. A second measurement decides once, at the end of its own
    budget. It cannot be split, so a guard whose second measurement has begun cannot be resumed.

    Only the server in `wanted`, which must be the same as before, and its budget are used.

    Raises:
        UsageError: if the run is not a guard, has ended, cannot be continued, or has no budget left.
        SetupError: if the guard cannot continue on this machine.
        UncorkError, KeyboardInterrupt: see `guard_experiment`.
    """
    request = read_request(folder)
    with closing(RunReader(folder)) as reader:
        manifest = reader.manifest
        if request is None:
            raise UsageError(_no_guard(folder))
        _refuse(manifest, request, folder)
        changes = Options(budget_ns=wanted.options.budget_ns)
        source = unhurried(run_source(reader, changes))
    choice = _choice(wanted, manifest, request)
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
        request=request,
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


def _refuse(manifest: Manifest, request: StoredRequest, folder: Path) -> None:
    again = f"guard again: {request.command}"
    if request.confirms:
        raise UsageError(
            f"{manifest.id} is the second measurement of guard {request.confirms}, which cannot "
            "be resumed; "
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
    if request.checkouts:
        raise UsageError(
            f"{manifest.id} uses checkouts of commits or a working tree, which may have changed since, so it "
            f"cannot be resumed; {again}"
        )


def _choice(wanted: GuardRequest, manifest: Manifest, request: StoredRequest) -> ServerChoice:
    """Return the server on which the guard began.

    Raises UsageError if the request names another server, or none although it must.
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
