"""How runs of kind ``database`` are read and reported."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from uncork.analysis.database.result import stored_database_result
from uncork.model.results.database import DatabaseResult
from uncork.report.database.answer import answer_database
from uncork.report.database.document import build_database_document, render_database_terminal
from uncork.workbench.documents.kinds import Kind


def read_database(folder: Path) -> DatabaseResult:
    """Return the result of a stored watch of a server, with its sentences.

    Raises StoreError if its files are damaged.
    """
    return answer_database(stored_database_result(folder))


KIND: Final = Kind(read_database, build_database_document, partial(render_database_terminal, top=10))
