"""How experiments are read and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncork.analysis.experiment.result import build_result
from uncork.model.results.experiment import RunResult
from uncork.report.blocks import Document
from uncork.report.experiment.answer import answer_experiment
from uncork.report.experiment.document import build_document, render_terminal
from uncork.workbench.documents.flames import evidence_flames
from uncork.workbench.documents.kinds import Kind


def read_experiment(folder: Path) -> RunResult:
    """Return the result of a stored experiment, with its sentences.

    Raises StoreError if its files are damaged.
    """
    return answer_experiment(build_result(folder))


def _page(folder: Path, result: RunResult) -> Document:
    return build_document(result, evidence_flames(folder, result))


KIND: Final = Kind(read_experiment, build_document, render_terminal, _page)
