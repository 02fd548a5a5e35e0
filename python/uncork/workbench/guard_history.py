"""Carry a stored load out again and hold it against the like runs of before."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from uncork.errors import ConnectError, LoadError, UsageError
from uncork.model.figure import RunFigures
from uncork.model.gate_metrics import GATE_METRICS
from uncork.model.guard import Gate, GateCheck, GateOutcome, GuardSide
from uncork.model.load import LoadOutcome
from uncork.stats.between import KNOWN_RUNS
from uncork.stats.gates import Decision, confirm
from uncork.stats.past_gates import judge_past
from uncork.store.catalogue import set_tag
from uncork.workbench.acknowledged import acknowledge_from
from uncork.workbench.environments import differences
from uncork.workbench.guard_question import Judged, LoadQuestion
from uncork.workbench.guard_wanted import GuardWanted, Tell, command_text
from uncork.workbench.like_runs import seconds_of
from uncork.workbench.load_results import build_load_result
from uncork.workbench.past_runs import BASELINE, BROKEN, Found, LikePast, find_past, held_against
from uncork.workbench.repeating import Job, Target, carried_out, repeated_job
from uncork.workbench.run_figures import run_figures

__all__ = ["CONFIDENCE", "headers_of", "history_checks", "judge_history", "tag_broken"]

CONFIDENCE: Final = 0.95


def judge_history(root: Path, asked: LoadQuestion, tell: Tell) -> Judged:
    """Carry the load out (or take the stored one), judge, and carry it out again where it is broken.

    Raises:
        UsageError: if a secret is missing, or nothing like it was there.
        UncorkError: if the load cannot be carried out.
    """
    wanted = asked.wanted
    job = None if wanted.stored else _job(asked)
    new = [asked.reference] if job is None else _measured(root, job, asked, wanted.times, tell)
    past = _past(root, asked, new)
    found = [held_against(gate, new, past, CONFIDENCE) for gate in asked.gates]
    decisions = judge_past([one.evidence for one in found], confidence=CONFIDENCE)
    known = acknowledge_from(asked.acknowledged, history_checks(asked.gates, found, decisions))
    checks = known.checks
    runs = [run.id for run in new]
    again = [place for place, check in enumerate(checks) if check.outcome is GateOutcome.BROKEN]
    if job is not None and wanted.confirm and again:
        told = ", ".join(f'"{asked.gates[place].text}"' for place in again)
        tell(f"broken: {told}; the load is carried out once more before that is believed")
        second = _measured(root, job, asked, wanted.times, tell)
        checks = _confirmed(asked, checks, decisions, again, second, past)
        runs += [run.id for run in second]
    warnings = (past.warning,) if past.warning else ()
    baseline = past.baseline or (past.runs[-1] if past.runs else None)
    return Judged(
        checks=checks,
        baseline=_baseline(past, found),
        candidate=_candidate(asked, new),
        runs=tuple(runs),
        warnings=warnings,
        unused=known.unused,
        settings=()
        if baseline is None
        else tuple(
            one for one in differences(baseline, new[-1]) if one.section not in ("asked", "commit", "core")
        ),
    )


def tag_broken(root: Path, runs: Sequence[str]) -> None:
    """Mark runs that were found broken, so that they do not stand for the past of later ones."""
    for id in runs:
        set_tag(root / id, BROKEN, present=True)


def history_checks(
    gates: Sequence[Gate], found: Sequence[Found], decisions: Sequence[Decision]
) -> tuple[GateCheck, ...]:
    """Return what became of each gate. Pure."""
    return tuple(
        GateCheck(
            gate=gate,
            cell=(),
            workload=gate.workload,
            outcome=decision.outcome,
            reason=decision.reason,
            baseline=one.baseline,
            candidate=one.candidate,
            unit=GATE_METRICS[gate.metric].unit,
            ratio=decision.ratio,
            low=decision.low,
            high=decision.high,
            rounds=one.like,
            doubts=decision.doubts,
            by_round=one.by_run,
        )
        for gate, one, decision in zip(gates, found, decisions, strict=True)
    )


def _job(asked: LoadQuestion) -> Job:
    wanted = asked.wanted
    target = Target(wanted.choice.dsn, wanted.url)
    command = command_text(wanted.words) if target != Target() else ""
    return repeated_job(asked.folder, target, headers=headers_of(wanted), command=command)


def headers_of(wanted: GuardWanted) -> list[tuple[str, str]]:
    """Return the headers that were given again.

    Raises:
        UsageError: if one is none.
    """
    found = []
    for text in wanted.headers:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise UsageError("--header: write it as NAME: VALUE, such as Authorization: Bearer ...")
        found.append((name.strip(), value.strip()))
    return found


def _measured(root: Path, job: Job, asked: LoadQuestion, times: int, tell: Tell) -> list[RunFigures]:
    """Carry the load out so many times in a row."""
    found = []
    for number in range(1, times + 1):
        folder, outcome = carried_out(root, job, tell)
        if outcome is LoadOutcome.REFUSED:
            said = _trouble(folder)
            shutil.rmtree(folder, ignore_errors=True)
            raise ConnectError(f"{asked.reference.id} could not be carried out again: {said}")
        tell(f"run {folder.name}" + (f" ({number} of {times})" if times > 1 else ""))
        if outcome is LoadOutcome.INTERRUPTED:
            raise KeyboardInterrupt
        run = run_figures(folder)
        if outcome is not LoadOutcome.COMPLETE:
            raise LoadError(
                f"{asked.reference.id} could not be carried out again: {_trouble(folder)}; {run.id} keeps "
                "what was measured until then"
            )
        if run.asked != asked.reference.asked:
            raise UsageError(
                f"{run.id} was not sent the same as {asked.reference.id}: {_unlike(asked.reference, run)}"
            )
        found.append(run)
    return found


def _trouble(folder: Path) -> str:
    return build_load_result(folder).answer.removesuffix(".")


def _unlike(before: RunFigures, after: RunFigures) -> str:
    names = dict.fromkeys((*before.asked, *after.asked))
    differing = (name for name in names if before.asked.get(name) != after.asked.get(name))
    name = next(differing)
    return f"{name} was {before.asked.get(name)}, and is {after.asked.get(name)}"


def _past(root: Path, asked: LoadQuestion, new: Sequence[RunFigures]) -> LikePast:
    without = [run.id for run in new]
    before_s = min(map(seconds_of, new)) if asked.wanted.stored else float("inf")
    how = (
        f"uncork guard {asked.reference.id} --times {KNOWN_RUNS} makes some, and the next guard has them for "
        "its past"
    )
    return find_past(root, asked.reference, without=without, before_s=before_s, how=how)


def _confirmed(
    asked: LoadQuestion,
    checks: tuple[GateCheck, ...],
    decisions: Sequence[Decision],
    again: Sequence[int],
    second: Sequence[RunFigures],
    past: LikePast,
) -> tuple[GateCheck, ...]:
    """Judge once more what was broken, by the second load alone."""
    gates = [asked.gates[place] for place in again]
    found = [held_against(gate, second, past, CONFIDENCE) for gate in gates]
    judged = judge_past([one.evidence for one in found], confidence=CONFIDENCE)
    merged = list(checks)
    for place, gate, one, decision in zip(again, gates, found, judged, strict=True):
        told, holds = confirm(decisions[place], decision)
        (check,) = history_checks([gate], [one], [told])
        merged[place] = replace(check, confirmed=holds)
    return tuple(merged)


def _baseline(past: LikePast, found: Sequence[Found]) -> GuardSide:
    if past.baseline is not None:
        run = past.baseline
        return GuardSide("baseline", f"the run named {BASELINE}, {run.id}", (_day(run),), run.commit)
    many = max((one.like for one in found), default=0)
    if not many:
        return GuardSide("baseline", "its like runs of before (there are none yet)")
    first, last = past.runs[-many], past.runs[-1]
    title = f"the median of {many} like run{'s' * (many != 1)} of before"
    return GuardSide("baseline", title, (f"{_day(first)} to {_day(last)}",), last.commit)


def _candidate(asked: LoadQuestion, new: Sequence[RunFigures]) -> GuardSide:
    run = new[-1]
    times = f", {len(new)} times" if len(new) > 1 else ""
    title = run.id if asked.wanted.stored else f"{asked.reference.id} carried out again{times}"
    return GuardSide("candidate", title, (run.server,), run.commit)


def _day(run: RunFigures) -> str:
    return datetime.fromisoformat(run.started_at).strftime("%Y-%m-%d %H:%M")
