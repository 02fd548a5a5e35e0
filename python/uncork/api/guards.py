"""A guard from Python: is the candidate worse than its baseline?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from uncork.api.experiments import changed, measure
from uncork.api.runs import GuardRun, Run
from uncork.api.words import (
    Place,
    Progress,
    Quantity,
    calling,
    duration_text,
    level_texts,
    runs_folder,
    teller,
)
from uncork.experiment.guard.sides import parse_side
from uncork.requests.guard import GuardRequest
from uncork.workbench.experiment.session import RunSession, choose_server
from uncork.workbench.guard.guards import carry_out_guard, evidence_kinds, guard_target

__all__ = ["guard"]

Words = str | Sequence[str]


def guard(
    target: Place | Run | None = None,
    *,
    candidate: Words = (),
    baseline: Words = (),
    gates: Words = (),
    variant: str | None = None,
    sets: Mapping[str, object] | None = None,
    workloads: Sequence[str] = (),
    budget: Quantity | None = None,
    precision: str | None = None,
    seed: int | None = None,
    acknowledged: Place | None = None,
    confirm: bool = True,
    evidence: Sequence[str] = (),
    same: bool = False,
    dsn: str | None = None,
    pg_bin: Place | None = None,
    port: int | None = None,
    stored: bool = False,
    times: int = 1,
    everything: bool = False,
    url: str | None = None,
    header: Mapping[str, str] | None = None,
    resume: str | Run | None = None,
    progress: Progress = None,
    runs: Place | None = None,
) -> GuardRun:
    """Say whether a candidate is worse than its baseline: two sides, measured side by side, and gates.

    Args:
        target: an experiment file, or a stored load, which is measured again.
        candidate: what the candidate is: ``"setting=work_mem:4MB"``, ``"commit=HEAD"``
        baseline: what the baseline is, likewise.
        gates: demands on the candidate, such as ``"p99 < +5%"``, besides those of the file.
        variant: the variant that both sides are; the baseline if absent.
        sets: levels to keep of factors.
        workloads: the workloads to keep.
        budget: longest that each of the two measurements may take.
        precision: give a gate up that is not decided when its interval is this narrow.
        seed: of everything random.
        acknowledged: the file of known changes.
        confirm: measure what is broken once more before it counts.
        evidence: what to gather of both sides afterwards.
        same: guard though both sides are the same.
        dsn: the server to measure on; else one is started.
        pg_bin: its binaries.
        port: its TCP port.
        stored: of a stored load: judge it as it is, without measuring.
        times: of a stored load: measure it so often.
        everything: of a stored run: take runs that a guard found broken for its past, too.
        url: of a stored load by HTTP: send it there.
        header: of a stored load by HTTP: headers, such as a secret one.
        resume: the run of a guard that was interrupted, to go on with it in place of a target.
        progress: a function that takes a line at a time, or True for standard error.
        runs: where runs are stored.

    Raises:
        UncorkError, KeyboardInterrupt: as `uncork.run`. A broken gate raises nothing: see `GuardRun.check`.
    """
    asked = _many(gates)
    place, going = (
        None if one is None else str(one.folder if isinstance(one, Run) else one) for one in (target, resume)
    )
    sides = {"candidate": _many(candidate), "baseline": _many(baseline)}
    levels = [f"{factor}={','.join(many)}" for factor, many in level_texts(sets).items()]
    told: dict[str, Sequence[object]] = {
        **{f"--{side}": many for side, many in sides.items()},
        **{"--gate": asked, "--set": levels, "--workload": _many(workloads)},
        **{"--variant": [variant], "--budget": [duration_text(budget, "budget")], "--precision": [precision]},
        **{
            "--seed": [None if seed is None else str(seed)],
            "--dsn": [dsn],
            "--pg-bin": [pg_bin],
            "--port": [port],
            "--url": [url],
        },
        **{"--acknowledged": [acknowledged], "--times": [times if times > 1 else None]},
    }
    flags = {"--no-confirm": not confirm, "--same": same, "--stored": stored, "--all": everything}
    words = [
        str(word) for name, many in told.items() for one in many if one is not None for word in (name, one)
    ]
    words += [flag for flag, given in flags.items() if given]
    with calling():
        named = guard_target(place, going)
        wanted = GuardRequest(
            target=named,
            baseline=parse_side("baseline", sides["baseline"]),
            candidate=parse_side("candidate", sides["candidate"]),
            gates=tuple(asked),
            variant=variant,
            options=changed(sets, workloads, budget, precision, seed),
            choice=choose_server(dsn, None if pg_bin is None else Path(pg_bin), port),
            acknowledged=None if acknowledged is None else Path(acknowledged),
            confirm=confirm,
            evidence=evidence_kinds(",".join(evidence)),
            same=same,
            words=("uncork", "guard", named, *words),
            stored=stored,
            times=times,
            everything=everything,
            resume=going is not None,
            url=url,
            headers=tuple(f"{name}: {value}" for name, value in (header or {}).items()),
        )
        tell = teller(progress)

        def measured(session: RunSession) -> None:
            measure(session, tell, "see it with uncork.open({id!r})")

        _, folder = carry_out_guard(runs_folder(runs), wanted, measured, tell)
    return GuardRun(folder)


def _many(words: Words) -> list[str]:
    return [words] if isinstance(words, str) else list(words)
