"""Guard a stored run: compare it with its history, or send its load to two targets side by side.

Each guard is a run of kind ``guard``. The loads that a guard against history carries out are
ordinary runs. Later guards compare with them too, unless they are found broken.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Literal

from uncork import __version__
from uncork.errors import UsageError
from uncork.model.records import build_from
from uncork.model.results.guard import GuardResult, guard_status
from uncork.report.guard.answer import answer_guard
from uncork.requests.guard import GuardRequest, Tell, command_text
from uncork.store.layout import read_manifest
from uncork.workbench.guard.history import (
    CONFIDENCE,
    Measure,
    judge_history,
    measure_experiment,
    measure_load,
    read_experiment,
    tag_broken,
)
from uncork.workbench.guard.question import (
    Judged,
    LoadQuestion,
    Question,
    read_question,
    start_guard,
    stored_target,
)
from uncork.workbench.guard.store import write_guard
from uncork.workbench.guard.targets import jobs_of, judge_targets
from uncork.workbench.run_record import RunRecord


def guard_load(root: Path, wanted: GuardRequest, notify: Tell) -> GuardResult:
    """Guard a stored load or experiment, and store the result as a run of kind ``guard``.

    If the request describes a side, two targets are measured side by side, else the run is compared
    with its history. With ``stored``, nothing is measured. `notify` receives progress messages.

    Raises:
        UsageError: if the request does not fit the run, or a secret is missing.
        SetupError: if there is no such run, or the result cannot be written.
        UncorkError: if a load cannot be carried out.
    """
    folder = stored_target(root, wanted.target)
    # "last", and a name, may mean another run tomorrow.
    words = tuple(folder.name if word == wanted.target else word for word in wanted.words)
    fixed = replace(wanted, words=words)
    manifest = read_manifest(folder)
    kind = manifest.kind
    if manifest.status == "failed":
        raise UsageError(
            f"{folder.name} failed, so nothing can be compared with it; name a run that is complete "
            "(`uncork runs --status complete` lists them)"
        )
    if kind == "experiment":
        experiment = read_experiment(folder, fixed)
        measure = None if wanted.stored else measure_experiment(root, experiment, notify)
        return _history(root, experiment, measure, notify)
    if kind == "import":
        raise UsageError(
            f"{folder.name} is a result of another tool, which a guard cannot measure again; judge the "
            "newest of its series with: uncork history METRIC --window 20"
        )
    if kind != "load":
        raise UsageError(
            f"{folder.name} is a run of kind {kind}; guard a stored load (uncork load sql, load http), a "
            "stored experiment, or an experiment file"
        )
    load = read_question(folder, fixed)
    if load.wanted.two_sides:
        return _side_by_side(root, load, notify)
    return _history(root, load, None if wanted.stored else measure_load(root, load, notify), notify)


def _history(root: Path, question: Question, measure: Measure | None, notify: Tell) -> GuardResult:
    begun = time.monotonic_ns()
    with start_guard(root, question, _question(question)) as run:
        judged = judge_history(root, question, measure, notify)
        result = _result(run, "history", question, judged, begun)
        if result.status == 3:
            tag_broken(root, judged.runs)
        write_guard(run.folder, result)
        run.reason = result.answer
    return result


def _question(asked: Question) -> str:
    question = asked.reference.question
    if asked.reference.kind == "experiment":
        return f"Does it still hold: {question}"
    now = "as it was before" if asked.wanted.stored else "now as it was before"
    return f"Is {question.removeprefix('load: ')} {now}?"


def _side_by_side(root: Path, load_question: LoadQuestion, notify: Tell) -> GuardResult:
    begun = time.monotonic_ns()
    jobs, shared = jobs_of(load_question)
    load = load_question.reference.question.removeprefix("load: ")
    question = f"Does the candidate serve {load} as well as the baseline?"
    with start_guard(root, load_question, question) as run:
        notify(f"run {run.folder.name}")
        try:
            judged = judge_targets(run, load_question, jobs, shared, notify)
        except KeyboardInterrupt:
            notify("interrupted: the turns measured so far are kept, and no gate is judged")
            raise
        result = _result(run, "side by side", load_question, judged, begun)
        write_guard(run.folder, result)
    return result


def _result(
    run: RunRecord,
    against: Literal["side by side", "history"],
    question: Question,
    judged: Judged,
    begun: int,
) -> GuardResult:
    result = build_from(
        GuardResult,
        judged,
        id=run.folder.name,
        question=run.manifest.question,
        against=against,
        status=guard_status(judged.checks),
        answer="",
        reasons=(),
        plans=(),
        confidence=CONFIDENCE,
        elapsed_ns=time.monotonic_ns() - begun,
        reproduce=command_text(question.wanted.words),
        uncork_version=__version__,
        started_at=run.manifest.started_at,
        name=question.name,
    )
    return answer_guard(result)
