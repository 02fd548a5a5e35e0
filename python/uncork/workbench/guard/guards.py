"""Carry out a guard of an experiment file or of a stored run, or resume one."""

from __future__ import annotations

from pathlib import Path

from uncork.errors import UsageError
from uncork.model.results.guard import GuardResult
from uncork.requests.guard import GuardRequest, Tell
from uncork.store.layout import find_run
from uncork.workbench.experiment.session import Start, new_run
from uncork.workbench.guard.experiment import Measure, guard_experiment
from uncork.workbench.guard.resuming import resume_guard
from uncork.workbench.guard.runs import guard_load


def carry_out_guard(
    runs: Path, wanted: GuardRequest, measure: Measure, notify: Tell, start: Start = new_run
) -> tuple[GuardResult, Path]:
    """Guard an experiment file or a stored run, or resume a guard; return the result and its folder.

    `start` starts the runs of an experiment file's guard, here or on several hosts.

    Raises:
        UncorkError, KeyboardInterrupt: see `guard_experiment`, `resume_guard` and `guard_load`.
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
    for name, value in given.items():
        if value:
            raise UsageError(
                f"--resume continues a guard with its own options: leave out {name} (only --budget and the "
                "servers can be given)"
            )


def _refuse_of_loads(wanted: GuardRequest) -> None:
    given = {
        "--stored": wanted.stored,
        "--times": wanted.times > 1,
        "--url": wanted.url,
        "--header": wanted.headers,
        "--all": wanted.everything,
    }
    for name, value in given.items():
        if value:
            raise UsageError(f"{name} is for stored runs; {wanted.target} is an experiment file")


def _refuse_of_files(wanted: GuardRequest) -> None:
    given = {
        "--variant": wanted.variant,
        "--workload": wanted.options.workloads,
        "--set": wanted.options.levels,
        "--evidence": wanted.evidence,
        "--hosts": wanted.on_hosts,
    }
    for name, value in given.items():
        if value:
            raise UsageError(
                f"{name} is for experiment files (.toml), but {wanted.target} is taken for a stored run"
            )
