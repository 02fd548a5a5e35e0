"""Carry out a guard of an experiment file or of a stored run, or resume one."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from uncork import __version__
from uncork.analysis.runs.listing import status_of
from uncork.errors import UsageError
from uncork.experiment.plan.order import plan_document
from uncork.model.records import build_from
from uncork.model.results.guard import GuardResult, guard_status
from uncork.model.units import format_duration
from uncork.report.guard.answer import answer_guard
from uncork.requests.guard import GuardRequest, Tell, command_text
from uncork.requests.server import ServerChoice
from uncork.requests.source import Options, run_source
from uncork.store.layout import Manifest, find_run, read_manifest
from uncork.store.query import RunReader
from uncork.store.run_documents import read_hosts
from uncork.workbench.experiment.session import Start, new_run
from uncork.workbench.guard.experiment import Guard, Measure, carry_on, guard_experiment, unhurried
from uncork.workbench.guard.history import (
    CONFIDENCE,
    MeasureRuns,
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
from uncork.workbench.guard.sides import server_choice
from uncork.workbench.guard.store import StoredRequest, read_guard, read_request, write_guard
from uncork.workbench.guard.targets import jobs_of, judge_targets
from uncork.workbench.run_record import RunRecord


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


# ---- guards of stored runs ----


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


def _history(root: Path, question: Question, measure: MeasureRuns | None, notify: Tell) -> GuardResult:
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
