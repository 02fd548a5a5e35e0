"""The row of watched servers."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from uncork.analysis.database.result import stored_database_result
from uncork.model.results.database import DatabaseResult
from uncork.report.blocks import Document
from uncork.report.database.document import build_database_document
from uncork.report.database.terminal import render_database_terminal
from uncork.workbench.documents.kinds import Kind

__all__ = ["KIND"]


def _document(_: Path, result: DatabaseResult) -> Document:
    return build_database_document(result)


KIND: Final = Kind(
    stored_database_result, _document, build_database_document, partial(render_database_terminal, top=10)
)
