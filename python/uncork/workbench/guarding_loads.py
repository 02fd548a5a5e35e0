"""Guard a stored run: a load carried out again and held against history, or sent to two targets side by side.

Each guard is a run of its own, of kind ``guard``. Loads that it carries out whole are ordinary runs beside
it, and part of the past from then on, unless they are found broken.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

from uncork import __version__
from uncork.errors import UsageError
from uncork.model.guard import GateOutcome, GuardResult
from uncork.report.guard_answer import compose_guard_answer
from uncork.store.layout import read_manifest
from uncork.workbench.guard_history import CONFIDENCE, judge_history, tag_broken
from uncork.workbench.guard_question import (
    Judged,
    LoadQuestion,
    guard_run,
    read_question,
    stored_target,
)
from uncork.workbench.guard_store import write_guard
from uncork.workbench.guard_targets import jobs_of, judge_targets
from uncork.workbench.guard_wanted import GuardWanted, Tell, command_text

__all__ = ["guard_load"]


def guard_load(root: Path, wanted: GuardWanted, tell: Tell) -> GuardResult:
    """Guard a stored load; the result is stored as a run of kind ``guard``.

    Side by side if a side says something, else against history; ``stored`` measures nothing. `tell` hears
    what is done.

    Raises:
        UsageError: if what is asked does not fit the run, or a secret is missing.
        SetupError: if there is no such run, or the result cannot be written.
        UncorkError: if a load cannot be carried out.
    """
    folder = stored_target(root, wanted.target)
    kind = read_manifest(folder).kind
    if kind != "load":
        raise UsageError(
            f"{folder.name} is a run of kind {kind}; a guard takes a stored load (uncork load sql, load "
            "http) or an experiment file"
        )
    # Last, and a name, may mean another run tomorrow.
    words = tuple(folder.name if word == wanted.target else word for word in wanted.words)
    asked = read_question(folder, replace(wanted, words=words))
    return _side_by_side(root, asked, tell) if asked.side_by_side else _history(root, asked, tell)


def _history(root: Path, asked: LoadQuestion, tell: Tell) -> GuardResult:
    begun = time.monotonic_ns()
    what = "as it was before" if asked.wanted.stored else "now as it was before"
    question = f"Is {asked.reference.question.removeprefix('load: ')} {what}?"
    with guard_run(root, asked, question) as run:
        judged = judge_history(root, asked, tell)
        result = _result(run.folder.name, run.manifest.started_at, question, "history", asked, judged, begun)
        if result.status == 3:
            tag_broken(root, judged.runs)
        write_guard(run.folder, result)
        run.reason = result.answer
    return result


def _side_by_side(root: Path, asked: LoadQuestion, tell: Tell) -> GuardResult:
    begun = time.monotonic_ns()
    jobs, shared = jobs_of(asked)
    question = (
        f"Does the candidate bear {asked.reference.question.removeprefix('load: ')} as the baseline does?"
    )
    with guard_run(root, asked, question) as run:
        tell(f"run {run.folder.name}")
        judged = judge_targets(run, asked, jobs, shared, tell)
        result = _result(
            run.folder.name, run.manifest.started_at, question, "side by side", asked, judged, begun
        )
        write_guard(run.folder, result)
    return result


def _result(
    id: str,
    started_at: str,
    question: str,
    against: Literal["side by side", "history"],
    asked: LoadQuestion,
    judged: Judged,
    begun: int,
) -> GuardResult:
    answer, reasons = compose_guard_answer(judged.checks, (), judged.baseline, judged.candidate, against)
    outcomes = {check.outcome for check in judged.checks}
    status: Literal[0, 3, 4] = 0
    if GateOutcome.BROKEN in outcomes:
        status = 3
    elif GateOutcome.UNDECIDED in outcomes:
        status = 4
    return GuardResult(
        id=id,
        question=question,
        against=against,
        baseline=judged.baseline,
        candidate=judged.candidate,
        status=status,
        answer=answer,
        reasons=reasons,
        checks=judged.checks,
        plans=(),
        runs=judged.runs,
        confidence=CONFIDENCE,
        elapsed_ns=time.monotonic_ns() - begun,
        reproduce=command_text(asked.wanted.words),
        uncork_version=__version__,
        started_at=started_at,
        warnings=judged.warnings,
        unused=judged.unused,
        name=asked.name,
        settings=judged.settings,
    )
