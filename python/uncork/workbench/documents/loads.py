"""How loads by SQL and HTTP are read and reported."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from uncork.analysis.load.result import build_load_result
from uncork.model.results.load import LoadResult
from uncork.report.load.answer import answer_load
from uncork.report.load.document import build_load_document, render_load_terminal
from uncork.workbench.documents.kinds import Kind


def read_load(folder: Path) -> LoadResult:
    """Return the result of a stored load, with its sentences.

    Raises StoreError if its files are damaged, or it has no result yet.
    """
    return answer_load(build_load_result(folder))


KIND: Final = Kind(read_load, build_load_document, partial(render_load_terminal, statements=True))
