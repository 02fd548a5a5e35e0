"""What a stored run of any kind says: its result, the report and its JSON; runs side by side, histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from uncork.analysis.database.result import stored_database_result
from uncork.analysis.experiment.evidence import evidence_flames
from uncork.analysis.experiment.result import build_result
from uncork.analysis.load.result import build_load_result
from uncork.analysis.load.sweep import build_sweep_result
from uncork.analysis.log.comparison import compare_logs
from uncork.analysis.log.result import stored_log_result
from uncork.analysis.runs.compared import comparison_kind
from uncork.analysis.runs.comparison import PRACTICAL, compare_stored
from uncork.analysis.runs.figures import run_figures
from uncork.analysis.runs.history import stored_history
from uncork.analysis.runs.series import compared_flames
from uncork.analysis.stacks.result import stored_stacks
from uncork.errors import StoreError
from uncork.model.results.database import DatabaseResult
from uncork.model.results.experiment import RunResult
from uncork.model.results.figure import RunFigures
from uncork.model.results.guard import GuardResult
from uncork.model.results.history import History
from uncork.model.results.load import LoadResult
from uncork.model.results.log import LogResult
from uncork.model.results.log_comparison import LogComparison
from uncork.model.results.run_comparison import RunComparison
from uncork.model.results.stacks import StackResult
from uncork.model.results.sweep import SweepResult
from uncork.report.blocks import Document
from uncork.report.database.document import build_database_document
from uncork.report.database.writers import render_database_json
from uncork.report.experiment.document import build_document
from uncork.report.guard.document import build_guard_document
from uncork.report.guard.json_document import guard_json
from uncork.report.load.document import build_load_document
from uncork.report.load.sweep_document import build_sweep_document
from uncork.report.load.sweep_writers import render_sweep_json
from uncork.report.load.writers import render_load_json
from uncork.report.log.comparison import build_log_comparison_document, render_comparison_json
from uncork.report.log.document import build_log_document
from uncork.report.log.writers import render_log_json
from uncork.report.runs.comparison import build_runs_document, render_runs_json
from uncork.report.runs.history import build_history_document, render_history_json
from uncork.report.runs.imported import build_import_document, render_import_json
from uncork.report.stacks.document import build_stack_document
from uncork.report.stacks.writers import render_stack_json
from uncork.report.write.json_document import render_json
from uncork.store.layout import Manifest, read_manifest
from uncork.workbench.guard.store import read_guard, stored_guard
from uncork.workbench.profile.stack_files import flames

__all__ = [
    "ComparedResult",
    "RunDocument",
    "StoredResult",
    "comparison_document",
    "guard_document",
    "history_document",
    "run_document",
]

StoredResult = (
    RunResult | LoadResult | SweepResult | LogResult | DatabaseResult | StackResult | RunFigures | GuardResult
)
"""What is said of a run, by its kind."""
ComparedResult = RunComparison | LogComparison | StackResult
"""What is said of runs side by side, by their kind."""


Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True, slots=True)
class RunDocument(Generic[Result_co]):
    """What is said of runs: for people, and for programs; `result` is what both are made of."""

    document: Document
    json: str
    result: Result_co


def run_document(folder: Path) -> RunDocument[StoredResult]:
    """Return the report on a stored run, whatever its kind.

    Raises:
        UncorkError: if it is damaged, or holds nothing to report.
    """
    made: RunDocument[StoredResult]
    match read_manifest(folder).kind:
        case "load":
            load = build_load_result(folder)
            made = RunDocument(build_load_document(load), render_load_json(load), load)
        case "sweep":
            sweep = build_sweep_result(folder)
            made = RunDocument(build_sweep_document(sweep), render_sweep_json(sweep), sweep)
        case "log":
            log = stored_log_result(folder)
            document = build_log_document(log, parts=len(log.templates))
            made = RunDocument(document, render_log_json(log), log)
        case "database":
            database = stored_database_result(folder)
            made = RunDocument(build_database_document(database), render_database_json(database), database)
        case "cpu":
            run = stored_stacks(folder)
            document = build_stack_document(run.result, flames(run))
            made = RunDocument(document, render_stack_json(run.result), run.result)
        case "import":
            figures = run_figures(folder)
            made = RunDocument(build_import_document(figures), render_import_json(figures), figures)
        case "guard":
            guarded = stored_guard(folder)
            made = RunDocument(guard_document(folder, guarded), guard_json(guarded), guarded)
        case "experiment" if (guard := read_guard(folder)) is not None:
            result = build_result(folder)
            made = RunDocument(guard_document(folder, guard, result), guard_json(guard), result)
        case "experiment":
            result = build_result(folder)
            document = build_document(result, evidence_flames(folder, result))
            made = RunDocument(document, render_json(result), result)
        case kind:
            raise StoreError(f"{folder}: a run of kind {kind} is not known to this uncork; update it")
    return made


def guard_document(folder: Path, guard: GuardResult, result: RunResult | None = None) -> Document:
    """Return the report on a guard, with that on the experiment that it ran (`result`), if it ran one.

    Raises:
        UncorkError: if the run is damaged.
    """
    if read_manifest(folder).kind != "experiment":
        return build_guard_document(guard)
    found = result or build_result(folder)
    return build_guard_document(guard, build_document(found), evidence_flames(folder, found))


def comparison_document(
    root: Path,
    before: Path,
    others: Sequence[Path],
    manifests: Sequence[Manifest] | None = None,
    *,
    practical: float = PRACTICAL,
    any_machine: bool = False,
) -> RunDocument[ComparedResult]:
    """Return runs beside one of them (`before`), whatever their kind.

    `root` is where like runs are looked for; `manifests` are those of its runs, oldest first, if they were
    listed already. `practical` and `any_machine` are as of `compare_stored`.

    Raises:
        UncorkError: if they cannot be compared, or one is damaged.
    """
    kind = comparison_kind(before, others)
    if kind == "figures":
        result = compare_stored(
            root, before, others, practical=practical, any_machine=any_machine, manifests=manifests
        )
        document = build_runs_document(result, compared_flames(before, others))
        return RunDocument(document, render_runs_json(result), result)
    if kind == "logs":
        logs = compare_logs(stored_log_result(before), stored_log_result(others[0]))
        return RunDocument(build_log_comparison_document(logs), render_comparison_json(logs), logs)
    run = stored_stacks(others[0], against=before.name)
    document = build_stack_document(run.result, flames(run))
    return RunDocument(document, render_stack_json(run.result), run.result)


def history_document(
    root: Path, metric: str, subject: str, like: str, manifests: Sequence[Manifest] | None = None
) -> RunDocument[History]:
    """Return how a figure went over the runs that are like one: see `stored_history`.

    Raises:
        UncorkError: if there is no such run or figure, or the run is damaged.
    """
    found = stored_history(root, metric, subject=subject, like=like, manifests=manifests)
    return RunDocument(build_history_document(found), render_history_json(found), found)
