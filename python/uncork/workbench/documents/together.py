"""How loads that started together are read and reported."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from uncork.analysis.load.result import build_together_result
from uncork.model.results.load import TogetherResult
from uncork.report.load.together import answer_together, build_together_document, render_together_terminal
from uncork.workbench.documents.kinds import Kind


def read_together(folder: Path) -> TogetherResult:
    """Read a stored run, and build its result with its answer.

    Raises StoreError if its files are damaged, or it has no result yet.
    """
    return answer_together(build_together_result(folder))


KIND: Final = Kind(read_together, build_together_document, render_together_terminal)
