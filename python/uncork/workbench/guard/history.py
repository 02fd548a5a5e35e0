"""Carry a stored load out again and hold it against the comparable runs of before."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Final

from uncork.analysis.load.result import build_load_result
from uncork.analysis.runs.comparable_runs import seconds_of
from uncork.analysis.runs.environments import unasked_differences
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.past import BROKEN, Found, LikePast, Place, find_past, held_against
from uncork.errors import ConnectError, LoadError, UsageError
from uncork.model.load import LoadOutcome
from uncork.model.results.figure import RunFigures
from uncork.model.results.gate_metrics import GATE_METRICS
from uncork.model.results.guard import GateCheck, GateOutcome, GuardSide
from uncork.model.stored_run import BASELINE
from uncork.report.words import count_words
from uncork.requests.guard import Tell, command_text, headers_of
from uncork.stats.gates.decision import Decision, confirm
from uncork.stats.gates.history_gates import judge_past
from uncork.stats.run_comparison import KNOWN_RUNS
from uncork.store.catalogue import set_tag
from uncork.workbench.guard.acknowledged import acknowledge_from
from uncork.workbench.guard.question import Judged, LoadQuestion, Question
from uncork.workbench.load.repeating import Job, Target, carried_out, repeated_job

__all__ = ["CONFIDENCE", "Measure", "judge_history", "measure_load", "tag_broken"]

Measure = Callable[[], list[RunFigures]]
"""Measures once, or several times in a row, and returns the runs."""

CONFIDENCE: Final = 0.95


def judge_history(root: Path, asked: Question, measure: Measure | None, tell: Tell) -> Judged:
    """Measure (or take the stored run, without `measure`), judge, and measure again where it is broken.

    Raises:
        UncorkError: if it cannot be measured.
    """
    places = asked.places
    new = [asked.reference] if measure is None else measure()
    past = _past(root, asked, new)
    found = [held_against(place, new, past, CONFIDENCE) for place in places]
    decisions = judge_past([one.evidence for one in found], confidence=CONFIDENCE)
    known = acknowledge_from(asked.acknowledged, _checks(places, found, decisions))
    checks = list(known.checks)
    runs = [run.id for run in new]
    again = [number for number, check in enumerate(checks) if check.outcome is GateOutcome.BROKEN]
    if measure is not None and asked.wanted.confirm and again:
        told = ", ".join(dict.fromkeys(f'"{places[number].gate.text}"' for number in again))
        tell(f"broken: {told}; measured once more before that is believed")
        second = measure()
        runs += [run.id for run in second]
        twice = [held_against(places[number], second, past, CONFIDENCE) for number in again]
        judged = judge_past([one.evidence for one in twice], confidence=CONFIDENCE)
        for number, one, decision in zip(again, twice, judged, strict=True):
            merged, holds = confirm(decisions[number], decision)
            (check,) = _checks([places[number]], [one], [merged])
            checks[number] = replace(check, confirmed=holds)
    base = past.baseline or (past.runs[-1] if past.runs else None)
    return Judged(
        checks=tuple(checks),
        baseline=_baseline(past, found),
        candidate=_candidate(asked, new),
        runs=tuple(runs),
        warnings=tuple(filter(None, (past.warning, _left_out(past)))),
        unused=known.unused,
        settings=() if base is None else unasked_differences(base, new[-1]),
    )


def measure_load(root: Path, asked: LoadQuestion, tell: Tell) -> Measure:
    """Return what carries the load out, so many times in a row as was asked for.

    Raises:
        UsageError: if a secret is missing, or the target is of another kind.
        ConnectError: if the words that name it are wrong.
    """
    wanted = asked.wanted
    target = Target(wanted.choice.dsn, wanted.url)
    command = command_text(wanted.words) if target != Target() else ""
    job = repeated_job(asked.folder, target, headers=headers_of(wanted), command=command)
    return lambda: _measured(root, job, asked, wanted.times, tell)


def tag_broken(root: Path, runs: Sequence[str]) -> None:
    """Mark runs that were found broken, so that they do not stand for the past of later ones."""
    for id in runs:
        set_tag(root / id, BROKEN, present=True)


def _checks(
    places: Sequence[Place], found: Sequence[Found], decisions: Sequence[Decision]
) -> tuple[GateCheck, ...]:
    """Return what became of each gate. Pure."""
    return tuple(
        GateCheck(
            gate=place.gate,
            cell=place.cell,
            workload=place.workload,
            outcome=decision.outcome,
            reason=decision.reason,
            baseline=one.baseline,
            candidate=one.candidate,
            unit=one.unit if one.unit is not None else GATE_METRICS[place.gate.metric].unit,
            ratio=decision.ratio,
            low=decision.low,
            high=decision.high,
            rounds=one.like,
            doubts=decision.doubts,
            by_round=one.by_run,
        )
        for place, one, decision in zip(places, found, decisions, strict=True)
    )


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


def _past(root: Path, asked: Question, new: Sequence[RunFigures]) -> LikePast:
    without = [run.id for run in new]
    before_s = min(map(seconds_of, new)) if asked.wanted.stored else float("inf")
    how = (
        f"uncork guard {asked.reference.id} --times {KNOWN_RUNS} makes some, and the next guard has them for "
        "its past"
    )
    everything = asked.wanted.everything
    return find_past(
        root, asked.reference, without=without, before_s=before_s, how=how, everything=everything
    )


def _left_out(past: LikePast) -> str:
    """Say how many comparable runs do not stand for the past; nothing if all do."""
    if not past.broken:
        return ""
    them = "it" if past.broken == 1 else "them"
    many = count_words(past.broken, "comparable run")
    return f"{many} left out: a guard found {them} broken (--all takes {them} in)"


def _baseline(past: LikePast, found: Sequence[Found]) -> GuardSide:
    if past.baseline is not None:
        run = past.baseline
        return GuardSide("baseline", f"the run named {BASELINE}, {run.id}", (_day(run),), run.commit)
    many = max((one.like for one in found), default=0)
    if not many:
        return GuardSide("baseline", "its comparable runs of before (there are none yet)")
    first, last = past.runs[-many], past.runs[-1]
    title = f"the median of {count_words(many, 'comparable run')} of before"
    return GuardSide("baseline", title, (f"{_day(first)} to {_day(last)}",), last.commit)


def _candidate(asked: Question, new: Sequence[RunFigures]) -> GuardSide:
    run = new[-1]
    times = f", {len(new)} times" if len(new) > 1 else ""
    title = run.id if asked.wanted.stored else f"{asked.reference.id} carried out again{times}"
    return GuardSide("candidate", title, (run.server,), run.commit)


def _day(run: RunFigures) -> str:
    return datetime.fromisoformat(run.started_at).strftime("%Y-%m-%d %H:%M")
