"""Build the report and the JSON of a stored run of any kind, of a comparison, or of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from uncork.analysis.runs.compared import comparison_kind
from uncork.analysis.runs.comparison import PRACTICAL, compare_stored
from uncork.analysis.runs.history import stored_history
from uncork.model.results.cure import CureResult
from uncork.model.results.database import DatabaseResult
from uncork.model.results.experiment import RunResult
from uncork.model.results.figure import RunFigures
from uncork.model.results.guard import GuardResult
from uncork.model.results.history import History
from uncork.model.results.load import LoadResult, TogetherResult
from uncork.model.results.log import LogResult
from uncork.model.results.log_comparison import LogComparison
from uncork.model.results.run_comparison import RunComparison
from uncork.model.results.service import ServiceResult
from uncork.model.results.stacks import StackResult
from uncork.model.results.sweep import SweepResult
from uncork.report.blocks import Document
from uncork.report.log.comparison import build_log_comparison_document
from uncork.report.runs.comparison import build_runs_document
from uncork.report.runs.comparison_answer import answer_runs
from uncork.report.runs.history import answer_history, build_history_document
from uncork.report.stacks.document import build_stack_document
from uncork.report.write.json_document import json_text
from uncork.store.layout import Manifest, read_manifest
from uncork.workbench.documents.experiments import read_experiment
from uncork.workbench.documents.flames import compared_flames, stack_flames
from uncork.workbench.documents.kinds import kind_of
from uncork.workbench.documents.logs import compare_stored_logs
from uncork.workbench.documents.stacks import read_stacks

StoredResult = (
    RunResult
    | LoadResult
    | SweepResult
    | LogResult
    | DatabaseResult
    | StackResult
    | ServiceResult
    | RunFigures
    | GuardResult
    | CureResult
    | TogetherResult
)
"""The result of a run, by its kind."""
ComparedResult = RunComparison | LogComparison | StackResult
"""The result of comparing runs, by their kind."""


Result_co = TypeVar("Result_co", covariant=True)


@dataclass(frozen=True, slots=True)
class RunDocument(Generic[Result_co]):
    """A report on runs: a document for people and JSON for programs, both made from `result`."""

    document: Document
    json: str
    result: Result_co


def run_document(folder: Path) -> RunDocument[StoredResult]:
    """Return the report on a stored run, whatever its kind.

    Raises UncorkError if the run is damaged, or holds nothing to report.
    """
    kind = kind_of(folder)
    found = kind.read(folder)
    # To programs that read its result, an experiment that a guard measured is still an experiment.
    measured = isinstance(found, GuardResult) and read_manifest(folder).kind == "experiment"
    result = read_experiment(folder) if measured else kind.result(found)
    return RunDocument(kind.document(folder, found), kind.json(found), result)


def comparison_document(
    root: Path,
    before: Path,
    others: Sequence[Path],
    manifests: Sequence[Manifest] | None = None,
    *,
    practical: float = PRACTICAL,
    any_machine: bool = False,
) -> RunDocument[ComparedResult]:
    """Return the comparison of runs with one of them (`before`), whatever their kind.

    `root` holds the comparable runs; `manifests` are its manifests, oldest first, if already
    listed. For `practical` and `any_machine`, see `compare_stored`. Raises UncorkError if the runs
    cannot be compared, or one is damaged.
    """
    kind = comparison_kind(before, others)
    if kind == "figures":
        result = answer_runs(
            compare_stored(
                root, before, others, practical=practical, any_machine=any_machine, manifests=manifests
            )
        )
        document = build_runs_document(result, compared_flames(before, others))
        return RunDocument(document, json_text(result), result)
    if kind == "logs":
        logs = compare_stored_logs(before, others[0])
        return RunDocument(build_log_comparison_document(logs), json_text(logs), logs)
    run = read_stacks(others[0], against=before.name)
    document = build_stack_document(run.result, stack_flames(run))
    return RunDocument(document, json_text(run.result), run.result)


def history_document(
    root: Path, metric: str, subject: str, like: str, manifests: Sequence[Manifest] | None = None
) -> RunDocument[History]:
    """Return the history of a metric over the runs comparable with `like`: see `stored_history`.

    Raises UncorkError if there is no such run or metric, or the run is damaged.
    """
    found = answer_history(stored_history(root, metric, subject=subject, like=like, manifests=manifests))
    return RunDocument(build_history_document(found), json_text(found), found)
