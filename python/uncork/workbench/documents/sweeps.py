"""How sweeps are read and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncork.analysis.load.sweep import build_sweep_result
from uncork.model.results.sweep import SweepResult
from uncork.report.load.sweep import answer_sweep, build_sweep_document, render_sweep_terminal
from uncork.workbench.documents.kinds import Kind


def read_sweep(folder: Path) -> SweepResult:
    """Return the result of a stored sweep, with its sentences.

    Raises StoreError if its files are damaged, or it has no result yet.
    """
    return answer_sweep(build_sweep_result(folder))


KIND: Final = Kind(read_sweep, build_sweep_document, render_sweep_terminal)
